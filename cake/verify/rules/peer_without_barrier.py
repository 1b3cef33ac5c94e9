"""Another CTA's shared memory is used without a cluster barrier.

**Rule.** Between a CTA's writes to its shared memory and the reads of a peer (`peer=`), and between
those and the next writes, stands a cluster barrier that both take part in: `cluster_sync`, or
`cluster_arrive` and `cluster_wait`.

**If broken.** The peer reads what was there before; or the CTA has not started yet.

**Instead.** Write; `cluster_sync()`; read with `peer=`.

**Source.** PTX ISA, barrier.cluster, mapa; NVIDIA/cutlass#3316; sgl-project/sglang#38829.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake.diag import Diagnostic
from cake.ir.nodes import RoleBody, Stmt, View
from cake.ops.base import SyncEffect, operand
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.memory_items import per_call
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    cluster(2)
    m = grid(M)
    X = smem(f32, (32,))
    r = role(warps=1)
    with r:
        store(X[lane()], load(x[m, lane()]))
        unit_sync()
        store(y[m, lane()], load(X[lane()], peer=1 - cta_rank()))  # CK376
        cluster_sync()
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M % 2 == 0)
    cluster(2)
    m = grid(M)
    X = smem(f32, (32,))
    r = role(warps=1)
    with r:
        store(X[lane()], load(x[m, lane()]))
        cluster_sync()
        store(y[m, lane()], load(X[lane()], peer=1 - cta_rank()))
        cluster_sync()
"""

_BARRIERS = (SyncEffect("barrier", "cluster"), SyncEffect("wait", "cluster"))


@dataclass(slots=True)
class _Fresh:
    """Buffers written, and buffers read in other CTAs, since the last cluster barrier; None stands
    for the kernel's start."""

    written: set[str | None] = field(default_factory=lambda: {None})
    read: set[str] = field(default_factory=set)

    def copy(self) -> "_Fresh":
        return _Fresh(set(self.written), set(self.read))

    def join(self, other: "_Fresh") -> None:
        self.written |= other.written
        self.read |= other.read


class _Peers(Flow[_Fresh]):
    def __init__(self, ctx: Context, role: RoleBody) -> None:
        super().__init__(ctx.integers)
        self.sites = ctx.sites_of(role)
        self.found: dict[Site, str] = {}
        self._of_stmt = per_call(self.sites)
        self.run(role.body, _Fresh())

    def statement(self, s: Stmt, state: _Fresh) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self.sites[i]
            for access, view in site.accesses("smem"):
                assert isinstance(view, View)
                # Stages, and the CTA's start: the phase simulation tells them apart.
                if view.stage is not None:
                    continue
                if _remote(site) and access.action == "read":
                    state.read.add(view.base)
                    if state.written & {None, view.base}:
                        self.found[site] = f"{view.base} of another CTA is read after its write"
                elif access.action != "read":
                    state.written.add(view.base)
                    if view.base in state.read:
                        self.found[site] = f"{view.base} is written after other CTAs read it"
            if any(e in _BARRIERS for e in site.effects):
                state.written.clear()
                state.read.clear()


def _remote(site: Site) -> bool:
    names = [p.name for p in site.primitive.params]
    return "peer" in names and operand(site.call, "peer") is not None


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    if not any(map(_remote, ctx.sites)):
        return
    yield Uncovered("the order of accesses to shared memory of other CTAs", decider="L2")
    for role in ctx.program.roles:
        for site, what in _Peers(ctx, role).found.items():
            yield RULE.at(
                site.call.loc,
                f"{what} without a cluster barrier between",
                facts={"role": role.role},
                helps=("write cluster_sync() between the two",),
            )


RULE = rule(
    code="CK376",
    name="peer-without-barrier",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
