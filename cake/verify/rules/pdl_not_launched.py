"""Statements of dependent launch in a schedule that is not launched so.

**Rule.** `pdl_wait()` and `pdl_launch()` belong to a schedule with `launch(pdl=True)`.

**If broken.** They do nothing: the kernel starts after its predecessor has ended, and its successor
after it has.

**Instead.** Add `launch(pdl=True)`, or remove the statements.

**Source.** CUDA C++ Programming Guide, programmatic dependent launch.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.program import LaunchOptions
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        pdl_wait()  # CK375
        store(y[m, lane()], load(x[m, lane()]))
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    launch(pdl=True)
    m = grid(M)
    r = role(warps=1)
    with r:
        pdl_wait()
        store(y[m, lane()], load(x[m, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    if any(o.pdl for o in ctx.program.find(LaunchOptions)):
        return
    for site in ctx.sites:
        if site.call.op in ("pdl_wait", "pdl_launch"):
            yield RULE.at(
                site.call.loc,
                f"{site.call.op} has no effect: the schedule is not launched with pdl=True",
                facts={"primitive": site.call.op},
                helps=("write launch(pdl=True) before the roles",),
            )


RULE = rule(
    code="CK375",
    name="pdl-not-launched",
    gate="schedule semantics",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
