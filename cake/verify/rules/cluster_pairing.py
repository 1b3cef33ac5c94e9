"""Arrivals and waits at the cluster barrier do not alternate.

**Rule.** In every role, `cluster_arrive` and `cluster_wait` follow one another, on every path,
and nothing is left open at the end or before a `cluster_sync`.

**If broken.** A second arrival joins the wrong generation, and a wait without arrival is illegal:
the cluster hangs. ptxas says nothing.

**Instead.** Arrive, other work, wait. In each role.

**Source.** PTX ISA, barrier.cluster.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cake.diag import Diagnostic, Span
from cake.ir.nodes import Call, RoleBody, Stmt, walk_exprs
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    cluster(2)
    m = grid(M)
    r = role(warps=1)
    with r:
        cluster_arrive()
        store(y[m, lane()], 1.0)
        cluster_arrive()  # CK373
        cluster_wait()
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    cluster(2)
    m = grid(M)
    r = role(warps=1)
    with r:
        cluster_arrive()
        store(y[m, lane()], 1.0)
        cluster_wait()
"""


@dataclass(slots=True)
class _Open:
    """Whether an arrival may be open, and whether none may be."""

    arrived: bool = False
    idle: bool = True

    def copy(self) -> "_Open":
        return _Open(self.arrived, self.idle)

    def join(self, other: "_Open") -> None:
        self.arrived |= other.arrived
        self.idle |= other.idle


class _Pairing(Flow[_Open]):
    def __init__(self, ctx: Context, role: RoleBody) -> None:
        super().__init__(ctx.integers)
        self.found: dict[Span, str] = {}
        end = self.run(role.body, _Open())
        if end.arrived:
            self.found[role.loc] = "the role may end with an arrival that is not waited for"

    def statement(self, s: Stmt, state: _Open) -> None:
        for e in walk_exprs(s):
            if not isinstance(e, Call):
                continue
            if e.op in ("cluster_arrive", "cluster_sync"):
                if state.arrived:
                    self.found[e.loc] = "an arrival may be open already"
                state.arrived = e.op == "cluster_arrive"
                state.idle = not state.arrived
            elif e.op == "cluster_wait":
                if state.idle:
                    self.found[e.loc] = "there may be no arrival to wait for"
                state.arrived, state.idle = False, True


def check(ctx: Context) -> Iterator[Diagnostic]:
    if not any(s.call.op in ("cluster_arrive", "cluster_wait") for s in ctx.sites):
        return
    for role in ctx.program.roles:
        for span, what in _Pairing(ctx, role).found.items():
            yield RULE.at(
                span,
                f"cluster barrier: {what}",
                facts={"role": role.role},
                helps=("let cluster_arrive and cluster_wait alternate on every path",),
            )


RULE = rule(
    code="CK373",
    name="cluster-pairing",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
