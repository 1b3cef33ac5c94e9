"""A copy is read although its group was never closed.

**Rule.** `cp_async_wait` waits for committed groups only: `cp_async_commit()` stands between the
copies and the wait that is meant for them.

**If broken.** The wait returns at once, and the tile is read before it is there.

**Instead.** One commit a stage, in front of the wait. A commit without copies is fine and keeps the
count of groups even.

**Source.** PTX ISA, cp.async.commit_group; csarofeen/pytorch#2457.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 8, 32], y: Tensor[f32, 32]):
    X = smem(f32, (8, 32))
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_wait(0)
        unit_sync()
        store(y[lane()], load(X[0, lane()]))  # CK341
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 8, 32], y: Tensor[f32, 32]):
    X = smem(f32, (8, 32))
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[lane()], load(X[0, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("read-in-flight"):
        if h.site is not None and h.age == 0 and h.completes == "cp_async":
            yield RULE.at(
                h.at.loc,
                f"{h.subject} is read, but the group of the copy into it is still open",
                related=[(h.site.call.loc, "this copy is not committed")],
                facts={"buffer": h.subject},
                helps=("write cp_async_commit() before the wait",),
            )


RULE = rule(
    code="CK341",
    name="copy-not-committed",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
