"""Another CTA's shared memory is read without a cluster barrier before.

**Rule.** Between a CTA's writes to its shared memory and the reads of a peer (`peer=`) stands a
cluster barrier that both take part in: `cluster_sync`, or `cluster_arrive` and `cluster_wait`.

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
from cake.verify.rule import rule
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
    """Buffers written since the last cluster barrier; None stands for the kernel's start."""

    written: set[str | None] = field(default_factory=lambda: {None})

    def copy(self) -> "_Fresh":
        return _Fresh(set(self.written))

    def join(self, other: "_Fresh") -> None:
        self.written |= other.written


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
                if _remote(site):
                    if access.action == "read" and state.written & {None, view.base}:
                        self.found[site] = view.base
                elif access.action != "read":
                    state.written.add(view.base)
            if any(e in _BARRIERS for e in site.effects):
                state.written.clear()


def _remote(site: Site) -> bool:
    names = [p.name for p in site.primitive.params]
    return "peer" in names and operand(site.call, "peer") is not None


def check(ctx: Context) -> Iterator[Diagnostic]:
    if not any(map(_remote, ctx.sites)):
        return
    for role in ctx.program.roles:
        for site, buffer in _Peers(ctx, role).found.items():
            yield RULE.at(
                site.call.loc,
                f"{buffer} of another CTA is read, but no cluster barrier orders its write before",
                facts={"buffer": buffer, "role": role.role},
                helps=("write cluster_sync() between the write and this",),
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
