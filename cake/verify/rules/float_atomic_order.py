"""Floating-point sums by atomics depend on the order in which threads arrive.

**Rule.** A kernel whose results must repeat bit by bit adds in a fixed order.

**If broken.** Sums differ in the last bits from run to run.

**Instead.** Reduce in registers and shared memory; write partial sums to a workspace and add them
in a fixed order. If run-to-run differences are accepted, nothing needs to change.

**Source.** Dao-AILab/flash-attention#1596, #1766.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.verify.context import Context
from cake.verify.footprints import footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        reduce_add(y[lane()], load(x[m, lane()]))  # CK328
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    r = role(warps=1)
    with r:
        total = 0.0
        for m in range(M):
            total = total + load(x[m, lane()])
        store(y[lane()], total)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for f in footprints(ctx):
        if f.access.action == "atomic" and f.dtype.is_float and "add" in f.site.call.op:
            yield RULE.at(
                f.site.call.loc,
                f"sums in {f.place.tensor} depend on the order of arrival: they differ in the last"
                " bits from run to run",
                facts={"tensor": f.place.tensor},
                helps=("add in a fixed order if results must repeat",),
            )


RULE = rule(
    code="CK328",
    name="float-atomic-order",
    gate="data consistency",
    severity=Severity.NOTE,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
