"""Shared memory is read where nothing has been written to it yet.

**Rule.** On every path, a buffer is written before it is read, the path round a loop that runs zero
times included.

**If broken.** An empty row or sequence yields what the CTA before left behind.

**Instead.** Fill the buffer before the loop, or put the read under the same condition.

**Source.** compute-sanitizer, initcheck; MoonshotAI/FlashKDA#24.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.init_flow import MAYBE, ZERO_ROUNDS
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))
    r = role(warps=1)
    with r:
        for m in range(M // 2):
            store(X[lane()], load(x[m, lane()]))
        unit_sync()
        store(y[lane()], load(X[31 - lane()]))  # CK361
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    require(M > 0)
    X = smem(f32, (32,))
    r = role(warps=1)
    with r:
        for m in range(M):
            store(X[lane()], load(x[m, lane()]))
        unit_sync()
        store(y[lane()], load(X[31 - lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for unset in ctx.unset:
        if not unset.buffer:
            continue
        if unset.grade == MAYBE:
            open_ = f"whether {unset.name} is written before line {unset.at.loc.line}"
            yield Uncovered(open_, decider="L2")
            continue
        when = " if a loop before runs zero times" if unset.grade == ZERO_ROUNDS else ""
        yield RULE.at(
            unset.at.loc,
            f"{unset.name} is read here, but nothing has been written to it{when}",
            facts={"buffer": unset.name},
            helps=("fill it before",),
        )


RULE = rule(
    code="CK361",
    name="smem-unset",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
