"""A proxy fence is not followed by a barrier before the async proxy reads.

**Rule.** A proxy fence covers the writes of the threads that execute it, and the thread that starts
the TMA store or wgmma must be ordered behind all of them: first the fence, then the barrier.

**If broken.** Only the issuing thread's own writes are sure to be seen.

**Instead.** Write; `fence_async()`; `unit_sync()` (or `role_sync`, `cta_sync`); TMA store.

**Source.** PTX ISA, Async proxy; pytorch/ao#4278.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    m = grid(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 1.0)
        unit_sync()
        fence_async()
        tma_store(y[m, 0], E)  # CK351
        tma_store_commit()
        tma_store_wait(0)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    m = grid(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 1.0)
        fence_async()
        unit_sync()
        tma_store(y[m, 0], E)
        tma_store_commit()
        tma_store_wait(0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("fenced-late"):
        if h.site is not None:
            barrier = "role_sync() or cta_sync()" if h.units else "unit_sync()"
            yield RULE.at(
                h.at.loc,
                f"{h.subject} is read through the async proxy without a barrier after the fence",
                related=[(h.site.call.loc, "written here")],
                facts={"buffer": h.subject},
                helps=(f"fence first, then {barrier}, then this",),
            )


RULE = rule(
    code="CK351",
    name="proxy-fence-late",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
