"""Global memory is accessed before the kernel it depends on has ended.

**Rule.** Under `launch(pdl=True)` a role accesses global memory only after `pdl_wait()`, on every
path. (If no role waits itself, the wait is put in front of all of them.)

**If broken.** The kernel reads what its predecessor has not written yet: silent corruption, now and
then.

**Instead.** `pdl_wait()` in front of the first load, store or copy of every role.

**Source.** PTX ISA, griddepcontrol.wait; NVIDIA/cutlass#2962; Dao-AILab/flash-attention#2481.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cake.diag import Diagnostic
from cake.ir.nodes import RoleBody, Stmt
from cake.ir.program import LaunchOptions
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.memory_items import per_call
from cake.verify.rule import rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    launch(pdl=True)
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])  # CK374
        pdl_wait()
        store(y[m, lane()], v)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    launch(pdl=True)
    m = grid(M)
    r = role(warps=1)
    with r:
        pdl_wait()
        v = load(x[m, lane()])
        pdl_launch()
        store(y[m, lane()], v)
"""


@dataclass(slots=True)
class _Early:
    """Whether control may be here before the wait."""

    early: bool = True

    def copy(self) -> "_Early":
        return _Early(self.early)

    def join(self, other: "_Early") -> None:
        self.early |= other.early


class _Waits(Flow[_Early]):
    def __init__(self, ctx: Context, role: RoleBody) -> None:
        super().__init__(ctx.integers)
        self.sites = ctx.sites_of(role)
        self.found: dict[Site, None] = {}
        self._of_stmt = per_call(self.sites)
        self.run(role.body, _Early())

    def statement(self, s: Stmt, state: _Early) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self.sites[i]
            if site.call.op == "pdl_wait":
                state.early = False
            elif state.early and any(True for _ in site.accesses("global")):
                self.found[site] = None


def check(ctx: Context) -> Iterator[Diagnostic]:
    waits = any(s.call.op == "pdl_wait" for s in ctx.sites)
    if not waits or not any(o.pdl for o in ctx.program.find(LaunchOptions)):
        return
    for role in ctx.program.roles:
        for site in _Waits(ctx, role).found:
            yield RULE.at(
                site.call.loc,
                f"{site.call.op} may access global memory before pdl_wait()",
                facts={"role": role.role, "primitive": site.call.op},
                helps=(f"write pdl_wait() at the start of role {role.role}",),
            )


RULE = rule(
    code="CK374",
    name="pdl-order",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
