"""The async proxy reads what ordinary stores wrote, and no proxy fence stands between.

**Rule.** TMA stores and wgmma read shared memory through the async proxy. What `store` and
`stmatrix` wrote becomes visible to it by `fence_async()` in every writing thread, on every path,
the path around a loop included.

**If broken.** The engine reads stale bytes: 86 of 100 runs mismatched in one experiment.

**Instead.** Write; `fence_async()`; barrier; then the TMA store or wgmma.

**Source.** PTX ISA, Async proxy; MoonshotAI/FlashKDA#24, #25; sgl-project/sglang#39124.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, 1, 32]):
    require(M > 0)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 0.0)
        for n in range(N // 64):
            store(E[0, lane()], load(x[0, n * 64]))
            fence_async()
        unit_sync()
        tma_store(y[0, 0], E)  # CK350
        tma_store_commit()
        tma_store_wait(0)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, 1, 32]):
    require(M > 0)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 0.0)
        for n in range(N // 64):
            store(E[0, lane()], load(x[0, n * 64]))
        fence_async()
        unit_sync()
        tma_store(y[0, 0], E)
        tma_store_commit()
        tma_store_wait(0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("unfenced"):
        if h.site is not None and h.completes != "cp_async":
            yield RULE.at(
                h.at.loc,
                f"{h.subject} is read through the async proxy, but on some path nothing fences what"
                " ordinary stores wrote",
                related=[(h.site.call.loc, "written here")],
                facts={"buffer": h.subject},
                helps=("put fence_async(), then a barrier, between the write and this",),
            )


RULE = rule(
    code="CK350",
    name="proxy-fence-missing",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
