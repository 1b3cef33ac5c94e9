"""A flag is released before a TMA store's writes are complete.

**Rule.** Before data that TMA stored is published (a store or atomic with `order="release"`), the
store is waited for with `tma_store_wait(n, read=False)`. The default wait only says that shared
memory has been read.

**If broken.** The other CTA sees the flag and reads old memory.

**Instead.** `tma_store_wait(0, read=False)`; then the releasing store.

**Source.** PTX ISA, cp.async.bulk.wait_group, `.read`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake.diag import Diagnostic
from cake.ir.nodes import RoleBody, Stmt
from cake.ops.base import Access, SyncEffect, static
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.memory_items import per_call
from cake.verify.rule import rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32], flag: Tensor[i32, "M"]):
    m = grid(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 1.0)
        fence_async()
        unit_sync()
        tma_store(y[m, 0], E)
        tma_store_commit()
        tma_store_wait(0)
        store(flag[m], 1, order="release")  # CK329
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32], flag: Tensor[i32, "M"]):
    m = grid(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 1.0)
        fence_async()
        unit_sync()
        tma_store(y[m, 0], E)
        tma_store_commit()
        tma_store_wait(0, read=False)
        store(flag[m], 1, order="release")
"""


@dataclass(slots=True)
class _Writing:
    """TMA stores whose writes may be incomplete."""

    sites: set[Site] = field(default_factory=set)

    def copy(self) -> "_Writing":
        return _Writing(set(self.sites))

    def join(self, other: "_Writing") -> None:
        self.sites |= other.sites


class _Publishing(Flow[_Writing]):
    def __init__(self, ctx: Context, role: RoleBody) -> None:
        super().__init__(ctx.integers)
        self.sites = ctx.sites_of(role)
        self.found: dict[Site, Site] = {}
        self._of_stmt = per_call(self.sites)
        self.run(role.body, _Writing())

    def statement(self, s: Stmt, state: _Writing) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self.sites[i]
            if _releases(site):
                for store in state.sites:
                    self.found[site] = store
            for e in site.effects:
                if isinstance(e, Access) and e.space == "global" and e.completes == "bulk_group":
                    state.sites.add(site)
                elif e == SyncEffect("drain", "bulk_group") and not static(site.call, "read"):
                    state.sites.clear()


def _releases(site: Site) -> bool:
    names = [p.name for p in site.primitive.params]
    return "order" in names and static(site.call, "order") in ("release", "acq_rel")


def check(ctx: Context) -> Iterator[Diagnostic]:
    if not any(map(_releases, ctx.sites)):
        return
    for role in ctx.program.roles:
        for site, store in _Publishing(ctx, role).found.items():
            yield RULE.at(
                site.call.loc,
                "this publishes what a TMA store may still be writing",
                related=[(store.call.loc, "the store starts here")],
                facts={"role": role.role},
                helps=("write tma_store_wait(0, read=False) before it",),
            )


RULE = rule(
    code="CK329",
    name="store-publish",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
