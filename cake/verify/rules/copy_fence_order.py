"""wgmma or TMA reads what cp.async brought, but the fence came before the copy was complete.

**Rule.** `cp_async` writes through the generic proxy. For the async proxy its data needs, in this
order: `cp_async_wait`, `fence_async`, a barrier.

**If broken.** A fence covers finished writes only, so the tensor core reads a stale tile.

**Instead.** Wait; fence; barrier; wgmma.

**Source.** PTX ISA, Async proxy; triton-lang/triton, TritonInstrument.md; tile-ai/tilelang#1919.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, 64], y: Tensor[f32, 64, 64]):
    X = smem(bf16, (64, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        cp_async(X, x[0, 0])
        cp_async_commit()
        fence_async()
        cp_async_wait(0)
        unit_sync()
        wgmma(acc, X, X.T)  # CK352
        wgmma_wait(0)
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, 64], y: Tensor[f32, 64, 64]):
    X = smem(bf16, (64, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        fence_async()
        unit_sync()
        wgmma(acc, X, X.T)
        wgmma_wait(0)
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("unfenced"):
        if h.site is not None and h.completes == "cp_async":
            yield RULE.at(
                h.at.loc,
                f"{h.subject} is read through the async proxy, but no fence follows the wait for"
                " its cp_async",
                related=[(h.site.call.loc, "copied here")],
                facts={"buffer": h.subject},
                helps=("order: cp_async_wait, fence_async, barrier, this",),
            )


RULE = rule(
    code="CK352",
    name="copy-fence-order",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
