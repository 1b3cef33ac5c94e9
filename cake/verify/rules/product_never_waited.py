"""A product is still in flight where its accumulator ends.

**Rule.** Every `wgmma` is covered by a `wgmma_wait` before its accumulator goes out of scope or the
role ends.

**If broken.** The registers are given to other values while the tensor core still writes them; the
product itself is lost.

**Instead.** `wgmma_wait(0)` after the last product.

**Source.** PTX ISA, wgmma.wait_group; NVIDIA/Fuser#3561, #3573.
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
        store(y[0, 0], acc)
        wgmma(acc, a, C.T)  # CK347
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
        wgmma(acc, a, C.T)
        wgmma_wait(0)
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("register-lost"):
        if h.site is not None:
            yield RULE.at(
                h.site.call.loc,
                f"the product into {h.subject} is never waited for",
                related=[(h.at.loc, f"{h.subject} ends with this")],
                facts={"variable": h.subject},
                helps=("write wgmma_wait(0) after the last product",),
            )


RULE = rule(
    code="CK347",
    name="product-never-waited",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
