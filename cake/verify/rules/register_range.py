"""A role's register budget is one that setmaxnreg does not take.

**Rule.** `regs=` is a multiple of 8 between 24 and 256, on a target that has setmaxnreg.

**If broken.** ptxas rejects the number. On a target without setmaxnreg every thread keeps the
registers it starts with, so the budget would mean nothing.

**Instead.** 24 or 40 for a role that only copies; what the fragments need for one that computes.

**Source.** PTX ISA, setmaxnreg; triton-lang/triton#11287.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    idle = role(warps=1, regs=16)  # CK301
    math = role(warpgroups=1, regs=240)
    with idle:
        pass
    with math:
        store(y[n * 128 + thread()], 1.0, mask=n * 128 + thread() < N)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    idle = role(warps=1, regs=24)
    math = role(warpgroups=1, regs=240)
    with idle:
        pass
    with math:
        store(y[n * 128 + thread()], 1.0, mask=n * 128 + thread() < N)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    limits = ctx.target.setmaxnreg
    for role in ctx.roles.values():
        if role.regs is None:
            continue
        if limits is None:
            yield RULE.at(
                role.loc,
                f"role {role.name} has a register budget, but {ctx.target.name} has no setmaxnreg",
                facts={"role": role.name, "target": ctx.target.name},
                helps=("leave out regs=",),
            )
        elif not limits.admits(role.regs):
            yield RULE.at(
                role.loc,
                f"role {role.name} asks for {role.regs} registers; setmaxnreg takes multiples of"
                f" {limits.step} from {limits.low} to {limits.high}",
                facts={
                    "role": role.name,
                    "value": role.regs,
                    "low": limits.low,
                    "high": limits.high,
                    "multiple_of": limits.step,
                },
                helps=(f"use {limits.low} for a role that only copies",),
            )


RULE = rule(
    code="CK301",
    name="register-budget-range",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
