"""A tile is read while the copy that brings it may still be in flight.

**Rule.** Between `cp_async` and the first read of its tile stands a `cp_async_wait(n)` that leaves
only newer groups: n is the number of groups committed after the one that is read. A TMA or bulk
copy outside a ring is waited for with `barrier_wait`.

**If broken.** Some threads see the old tile, often only in the last steps or on a faster GPU.

**Instead.** Issue, commit, wait(groups newer than the one needed), barrier, read. With S stages and
one commit a step that is `cp_async_wait(S - 2)`.

**Source.** PTX ISA, cp.async.wait_group; csarofeen/pytorch#2457; tile-ai/tilelang#2505, #3137.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    require(M % 8 == 0)
    X = smem(f32, (8, 32), stages=3)
    r = role(warps=1)
    with r:
        total = 0.0
        for p in static_range(2):
            cp_async(X[p], x[p * 8, 0])
            cp_async_commit()
        for k in range(M // 8):
            cp_async_wait(2)
            unit_sync()
            total = total + load(X[k % 3][0, lane()])  # CK340
            cp_async(X[(k + 2) % 3], x[(k + 2) * 8, 0])
            cp_async_commit()
        cp_async_wait(0)
        store(y[lane()], total)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    require(M % 8 == 0)
    X = smem(f32, (8, 32), stages=3)
    r = role(warps=1)
    with r:
        total = 0.0
        for p in static_range(2):
            cp_async(X[p], x[p * 8, 0])
            cp_async_commit()
        for k in range(M // 8):
            cp_async_wait(1)
            unit_sync()
            total = total + load(X[k % 3][0, lane()])
            cp_async(X[(k + 2) % 3], x[(k + 2) * 8, 0])
            cp_async_commit()
        cp_async_wait(0)
        store(y[lane()], total)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("read-in-flight"):
        if h.site is None or (h.age == 0 and h.completes == "cp_async"):
            continue
        newer = max(0, h.age - 1)
        wait = f"cp_async_wait({newer})" if h.completes == "cp_async" else "barrier_wait(...)"
        yield RULE.at(
            h.at.loc,
            f"{h.subject} is read while a copy into it may be in flight: {newer} groups were"
            " committed after the copy's own, and no wait covers it",
            related=[(h.site.call.loc, "the copy starts here")],
            facts={"buffer": h.subject, "newer_groups": newer},
            helps=(f"wait with {wait}, then a barrier, before this",),
        )


RULE = rule(
    code="CK340",
    name="copy-read-in-flight",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
