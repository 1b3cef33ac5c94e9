"""Registers that wgmma reads as its A operand change while it is in flight.

**Rule.** A fragment given to `wgmma` as A stays as it is until `wgmma_wait` covers the product.

**If broken.** The product takes some elements of the next tile, or ptxas serialises all products.

**Instead.** Two fragments in turn, or wait before the next one is loaded.

**Source.** PTX ISA, wgmma.mma_async; triton-lang/triton#8964.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 64, 64]):
    C = smem(bf16, (64, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C, a)
        fence_async()
        unit_sync()
        acc = fragment(f32, (64, 64), fill=0.0)
        for k in range(4):
            a = cast(fragment(f32, (64, 64), fill=2.0), bf16)  # CK346
            wgmma(acc, a, C.T)
        wgmma_wait(0)
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 64, 64]):
    C = smem(bf16, (64, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C, a)
        fence_async()
        unit_sync()
        acc = fragment(f32, (64, 64), fill=0.0)
        for k in range(4):
            a = cast(fragment(f32, (64, 64), fill=2.0), bf16)
            wgmma(acc, a, C.T)
            wgmma_wait(0)
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("register-in-flight"):
        if h.site is not None and h.action == "read":
            yield RULE.at(
                h.at.loc,
                f"{h.subject} changes while {h.site.call.op} may still be reading it",
                related=[(h.site.call.loc, "in flight since here")],
                facts={"variable": h.subject},
                helps=("wait before this, or use another fragment",),
            )


RULE = rule(
    code="CK346",
    name="operand-in-flight",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
