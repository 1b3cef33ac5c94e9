"""Shared memory is written without a barrier after other threads used it.

**Rule.** Before a buffer is written again, all threads that read or wrote its old content have met
the writers at a barrier: `unit_sync` within a unit, `role_sync` or `cta_sync` between units. In a
loop this concerns the next round's write too.

**If broken.** A slow thread reads what belongs to the next round, or two writes end in any order.

**Instead.** Read, barrier, write; or alternate between two stages with one barrier a round.

**Source.** PTX ISA, Memory Consistency Model; deepseek-ai/DeepEP#657; tile-ai/tilelang#2613.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128]):
    X = smem(f32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        for m in range(M):
            store(X[i], load(x[m, i]))  # CK343
            role_sync()
            store(y[m, i], load(X[127 - i]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128]):
    X = smem(f32, (128,), stages=2)
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        for m in range(M):
            store(X[m % 2][i], load(x[m, i]))
            role_sync()
            store(y[m, i], load(X[m % 2][127 - i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("write-unsynced"):
        if h.site is None:
            continue
        who = "other units" if h.units else "other threads of the unit"
        barrier = "role_sync() or cta_sync()" if h.units else "unit_sync()"
        yield RULE.at(
            h.at.loc,
            f"{h.subject} is written without a barrier after {who} used it",
            related=[(h.site.call.loc, "used here")],
            facts={"buffer": h.subject, "between": "units" if h.units else "threads"},
            helps=(f"put {barrier} between that access and this write",),
        )


RULE = rule(
    code="CK343",
    name="write-without-barrier",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
