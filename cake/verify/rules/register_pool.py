"""The register budgets of all roles exceed the registers that the CTA starts with.

**Rule.** Summed over all warps, budgets are at most the CTA's threads times the registers each
thread has at entry. Those follow from the block's size and `launch(min_blocks=...)`: 65536
registers shared out, rounded down to a multiple of 8. Warps without a budget keep that number.

**If broken.** setmaxnreg.inc spins until registers are released that nobody will release: the
kernel hangs. ptxas says nothing.

**Instead.** Take from the copying role what the computing roles need: 24/240/240 and 40/232/232
both use up the 504 x 128 registers of three warpgroups.

**Source.** PTX ISA, setmaxnreg; NVIDIA/cutlass#2007; tile-ai/tilelang#2406, #2559.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.types import WARP
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 256))
    load = role(warpgroups=1, regs=40)
    math = role(warpgroups=2, regs=240)  # CK302
    with load:
        pass
    with math as wg:
        i = n * 256 + wg * 128 + thread()
        store(y[i], 1.0, mask=i < N)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 256))
    load = role(warpgroups=1, regs=24)
    math = role(warpgroups=2, regs=240)
    with load:
        pass
    with math as wg:
        i = n * 256 + wg * 128 + thread()
        store(y[i], 1.0, mask=i < N)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    plan = ctx.plan
    if ctx.target.setmaxnreg is None or all(g.regs is None for g in plan.groups):
        return
    pool = plan.entry_regs * plan.threads
    wanted = sum(
        (plan.entry_regs if g.regs is None else g.regs) * g.warps * WARP for g in plan.groups
    )
    if wanted > pool:
        greediest = max((r for r in ctx.roles.values() if r.regs), key=lambda r: r.regs or 0)
        shares = ", ".join(f"{g.regs or plan.entry_regs} x {g.warps * WARP}" for g in plan.groups)
        yield RULE.at(
            greediest.loc,
            f"the roles ask for {wanted} registers ({shares}), the CTA starts with {pool}"
            f" ({plan.entry_regs} for each of {plan.threads} threads)",
            facts={"wanted": wanted, "pool": pool, "entry": plan.entry_regs},
            helps=(f"lower the budgets by {wanted - pool} registers in all",),
        )


RULE = rule(
    code="CK302",
    name="register-pool",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
