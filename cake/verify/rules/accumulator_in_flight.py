"""An accumulator is read or written while wgmma still owns it.

**Rule.** Between `wgmma` and the `wgmma_wait` that covers it, its accumulator is touched by further
wgmma only. Products on one accumulator queue up and need no waits between them.

**If broken.** ptxas inserts a wait of its own (C7517) or serialises all products: the kernel is
slow, and nothing says so.

**Instead.** Wait first, then read. To overlap, keep two accumulators.

**Source.** PTX ISA, wgmma.wait_group; sgl-project/sglang#10572.
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
        wgmma(acc, a, C.T)
        acc = acc * 2.0  # CK345
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
        wgmma(acc, a, C.T)
        wgmma(acc, a, C.T)
        wgmma_wait(0)
        acc = acc * 2.0
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("register-in-flight"):
        if h.site is not None and h.action == "write":
            yield RULE.at(
                h.at.loc,
                f"{h.subject} is touched while {h.site.call.op} may still be writing it",
                related=[(h.site.call.loc, "in flight since here")],
                facts={"variable": h.subject},
                helps=(f"put wgmma_wait({max(0, h.age - 1)}) before this",),
            )


RULE = rule(
    code="CK345",
    name="accumulator-in-flight",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
