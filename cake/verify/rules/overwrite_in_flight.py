"""Shared memory is written while an asynchronous instruction may still read or write it.

**Rule.** A tile that wgmma or a TMA store reads stays as it is until `wgmma_wait` or
`tma_store_wait` covers the instruction; a tile that a copy fills, until the copy is waited for.

**If broken.** The engine picks up bytes of the next tile: a wrong result, not an error. Sanitizers
do not see it.

**Instead.** Wait before the write; with n tiles used in turn, leave at most n - 1 groups pending.

**Source.** PTX ISA, wgmma.wait_group, cp.async.bulk.wait_group; NVIDIA/Fuser#3561, #5448.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    E = smem(f32, (1, 32), stages=2)
    r = role(warps=1)
    with r:
        for m in range(M):
            tma_store_wait(2)
            store(E[m % 2][0, lane()], load(x[m, lane()]))  # CK344
            fence_async()
            unit_sync()
            tma_store(y[m, 0], E[m % 2])
            tma_store_commit()
        tma_store_wait(0)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    E = smem(f32, (1, 32), stages=2)
    r = role(warps=1)
    with r:
        for m in range(M):
            tma_store_wait(1)
            store(E[m % 2][0, lane()], load(x[m, lane()]))
            fence_async()
            unit_sync()
            tma_store(y[m, 0], E[m % 2])
            tma_store_commit()
        tma_store_wait(0)
"""

_WAITS = {
    "wgmma": "wgmma_wait",
    "bulk_group": "tma_store_wait",
    "cp_async": "cp_async_wait",
    "mbarrier": "barrier_wait",
}


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("write-in-flight"):
        if h.site is None:
            continue
        wait = _WAITS.get(h.completes, "a wait")
        newer = max(0, h.age - 1)
        yield RULE.at(
            h.at.loc,
            f"{h.subject} is written while {h.site.call.op} may still be using it",
            related=[(h.site.call.loc, f"in flight since here, {newer} groups ago")],
            facts={"buffer": h.subject, "operation": h.site.call.op, "newer_groups": newer},
            helps=(f"let {wait} cover it before this write: at most {newer} groups pending",),
        )


RULE = rule(
    code="CK344",
    name="overwrite-in-flight",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
