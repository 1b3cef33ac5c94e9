"""Facts about a program that rules share, each computed when a rule first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, wraps
from typing import Any, TypeVar

from cake.ir.nodes import (
    Expr,
    Node,
    RoleBody,
    Stmt,
    View,
)
from cake.ir.program import Cluster, NamedBarrier, Pipeline, Program, Role, Smem
from cake.ir.types import Scalar
from cake.ops.layout import SmemLayout, smem_layout
from cake.ops.rings import RingFacts, ring_facts
from cake.ops.warps import WarpPlan, warp_plan
from cake.targets import get
from cake.targets.model import Target
from cake.verify.concrete import Sample, samples
from cake.verify.counts import condition
from cake.verify.init_flow import InitFlow, Unset
from cake.verify.integers import Integers
from cake.verify.memory_flow import MemoryFlow
from cake.verify.memory_items import Hazard, HazardKind, views
from cake.verify.poly import Poly
from cake.verify.questions import Answer, Question
from cake.verify.register_flow import RegisterFlow
from cake.verify.ring_steps import DividedStep, Step, StepKind, divided_steps, steps_of
from cake.verify.sites import Around, Site, controls, sites_of
from cake.verify.uniformity import Differing, across_cluster, across_units

_Made = TypeVar("_Made")


class Context:
    """A program under verification."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.target: Target = get(program.target)
        self.made: dict[Callable[[Context], Any], Any] = {}
        """Results of analyses that are made :func:`once`."""
        self.blamed: set[str] = set()
        """Rings that a rule has rejected already. Rules about the consequences stay silent."""
        self._partial_texts: dict[tuple[int, bool], tuple[str, ...]] = {}
        self.unsettled: list[Stmt] = []
        """Loops that the flows gave up on, once ``hazards`` are known."""
        self.questions: list[Question] = []
        """What rules of L0 and L1 have left for the solver, and its answers."""
        self.answers: dict[Question, Answer] = {}
        self.given_up = 0
        """Searches of the solver that came to no end."""

    @cached_property
    def plan(self) -> WarpPlan:
        return warp_plan(self.program)

    @cached_property
    def layout(self) -> SmemLayout:
        return smem_layout(self.program)

    @cached_property
    def rings(self) -> dict[str, tuple[Pipeline, RingFacts]]:
        """Each ring with its derived figures."""
        found: tuple[Pipeline, ...] = self.program.find(Pipeline)
        return {p.name: (p, ring_facts(self.program, p.name)) for p in found}

    @cached_property
    def owner(self) -> dict[str, Pipeline]:
        """The ring of each buffer that belongs to exactly one."""
        rings = [ring for ring, _ in self.rings.values()]
        owners = {b: [r for r in rings if b in r.buffers] for r in rings for b in r.buffers}
        return {b: found[0] for b, found in owners.items() if len(found) == 1}

    @cached_property
    def aliases(self) -> dict[str, frozenset[str]]:
        """For each buffer that shares bytes of a pool with others, those others."""
        pooled = [b.name for b in self.program.find(Smem) if b.pool is not None]
        found = {a: frozenset(b for b in pooled if self._overlap(a, b)) for a in pooled}
        return {a: others for a, others in found.items() if others}

    def _overlap(self, a: str, b: str) -> bool:
        x, y = self.layout.buffers[a], self.layout.buffers[b]
        return a != b and x.offset < y.offset + y.bytes and y.offset < x.offset + x.bytes

    @cached_property
    def smem_uses(self) -> dict[str, dict[str, Site]]:
        """For each accessed buffer, the first site of each kind of access."""
        found: dict[str, dict[str, Site]] = {}
        for site in self.sites:
            for access, view in site.accesses("smem"):
                if isinstance(view, View):
                    found.setdefault(view.base, {}).setdefault(access.action, site)
        return found

    @cached_property
    def divided(self) -> tuple[DividedStep, ...]:
        """Steps of rings that not everyone takes; how often they happen says nothing then."""
        return tuple(divided_steps(self))

    def countable(self) -> Iterator[Pipeline]:
        """Rings whose steps every unit takes alike, and which no rule has rejected."""
        divided = {step.ring for step in self.divided}
        return (r for r, _ in self.rings.values() if r.name not in divided | self.blamed)

    @cached_property
    def named_barriers(self) -> dict[str, NamedBarrier]:
        return {b.name: b for b in self.program.find(NamedBarrier)}

    @cached_property
    def _steps(self) -> dict[tuple[str, str, StepKind], list[Step]]:
        found: dict[tuple[str, str, StepKind], list[Step]] = {}
        for role in self.program.roles:
            for step in steps_of(role, self.sites_of(role)):
                found.setdefault((role.role, step.ring, step.kind), []).append(step)
        return found

    def steps(self, role: str, ring: str, kind: StepKind) -> list[Step]:
        """The steps of a kind that a role's body takes."""
        return self._steps.get((role, ring, kind), [])

    def ring_places(self, ring: str) -> tuple[list[Node], list[Node]]:
        """Where a ring is filled and where it is used: brackets, or calls of acquire and wait."""
        roles = [r.role for r in self.program.roles]
        fills = [step.place for r in roles for step in self.steps(r, ring, "acquire")]
        uses = [step.place for r in roles for step in self.steps(r, ring, "wait")]
        return sorted(fills, key=lambda p: p.loc), sorted(uses, key=lambda p: p.loc)

    def mask_of(self, site: Site) -> Expr | None:
        """The per-thread condition under which a call acts, if it has one."""
        names = [p.name for p in site.primitive.params]
        return site.call.args[names.index("mask")] if "mask" in names else None

    def given(self, site: Site, mask: Expr | None = None) -> tuple[Poly, ...]:
        """What is not negative where a call executes: from its conditions and its mask."""
        return self.facts((*site.conditions, *([] if mask is None else [(mask, True)])))

    def facts(self, conditions: Iterable[tuple[Expr, bool]]) -> tuple[Poly, ...]:
        """What is not negative where conditions have these truth values."""
        return tuple(f for c, holds in conditions for f in self.integers.facts(c, holds))

    def reach(self, p: Poly) -> tuple[int, int] | None:
        """The values between which ``p`` surely runs, for some size."""
        ends = []
        for sample in self.samples:
            fixed = self.fixed(sample)
            if self.integers.atoms.attained(p, fixed):
                low, high = self.integers.interval(p, fixed)
                ends.append((int(low), int(high)))
        return max(ends, key=lambda e: e[1] - e[0], default=None)

    def fixed(self, sample: Sample) -> dict[str, int]:
        """The values that atoms of dimensions have at a sample's sizes."""
        found: dict[str, int] = {}
        for name, size in sample.sizes.items():
            value = self.integers.values.get(name, Poly.atom(name))
            ((key,), factor) = value.terms[0]
            found[key] = size // factor
        return found

    def body(self, role: str) -> RoleBody:
        """A role's body with its unit variable."""
        return next(r for r in self.program.roles if r.role == role)

    @cached_property
    def roles(self) -> dict[str, Role]:
        return {r.name: r for r in self.program.role_decls()}

    @cached_property
    def cluster(self) -> int:
        """CTAs of a cluster; 1 without one."""
        return next((c.size for c in self.program.find(Cluster)), 1)

    @cached_property
    def integers(self) -> Integers:
        return Integers(self.program)

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """Sizes that are tried where a proof fails."""
        return tuple(samples(self.program, self.integers))

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Every primitive call."""
        return tuple(s for role in self.program.roles for s in self.sites_of(role))

    @cached_property
    def _sites(self) -> dict[str, tuple[Site, ...]]:
        return {role.role: sites_of(role) for role in self.program.roles}

    def sites_of(self, role: RoleBody) -> tuple[Site, ...]:
        """The primitive calls of a role."""
        return self._sites[role.role]

    @cached_property
    def hazards(self) -> tuple[Hazard, ...]:
        """Unsettled accesses that later statements meet, in all roles."""
        found: list[Hazard] = []
        for role in self.program.roles:
            sites = self.sites_of(role)
            registers = RegisterFlow(self.integers, role, sites)
            found += registers.follow()
            handed = frozenset(
                view.base
                for other in self.sites
                for access, view in views(other)
                if other.role is not role and access.proxy == "async" and access.action == "read"
            )
            memory = MemoryFlow(
                self.program, self.integers, role, sites, self.rings, handed, self.aliases
            )
            memory.partial = tuple(self.partial(site) for site in sites)
            found += memory.follow()
            self.unsettled += [*registers.unsettled, *memory.unsettled]
        return tuple(found)

    def partial(self, site: Site) -> frozenset[str]:
        """The conditions round a call that some threads or units of the role may not meet."""
        return frozenset(text for a in site.around for text in self._partial_at(site.role.role, a))

    def _partial_at(self, role: str, a: Around) -> tuple[str, ...]:
        key = (id(a.stmt), a.branch)
        if key not in self._partial_texts:
            differing, sign = self.across_units(role), "" if a.branch else "not "
            self._partial_texts[key] = tuple(
                f"{sign}{condition(e, self.integers)}"
                for e in controls(a.stmt)
                if differing.differs(e) or (isinstance(e.type, Scalar) and e.type.varying)
            )
        return self._partial_texts[key]

    def roles_of(self, buffer: str) -> set[str]:
        """Roles that access a shared-memory buffer."""
        return self._users.get(buffer, set())

    @cached_property
    def _users(self) -> dict[str, set[str]]:
        users: dict[str, set[str]] = {}
        for site in self.sites:
            for _, view in site.accesses("smem"):
                if isinstance(view, View):
                    users.setdefault(view.base, set()).add(site.role.role)
        return users

    @cached_property
    def unset(self) -> tuple[Unset, ...]:
        """Reads of registers and buffers that may hold nothing yet, in all roles."""
        written = {b for b, used in self.smem_uses.items() if used.keys() & {"write", "atomic"}}
        rings = {b for ring, _ in self.rings.values() for b in ring.buffers}
        found: list[Unset] = []
        for role in self.program.roles:
            mine = {b for b, roles in self._users.items() if roles == {role.role}} & written - rings
            sites, differing = self.sites_of(role), self.across_units(role.role)
            found += InitFlow(self.integers, role, sites, frozenset(mine), differing).follow()
        return tuple(found)

    def hazards_of(self, *kinds: HazardKind) -> Iterator[Hazard]:
        """Certain hazards of these kinds."""
        return (h for h in self.hazards if h.kind in kinds and h.certain)

    @cached_property
    def _across_units(self) -> dict[str, Differing]:
        return {r.role: across_units(r, self.roles[r.role].units) for r in self.program.roles}

    @cached_property
    def _across_cluster(self) -> dict[str, Differing]:
        return {r.role: across_cluster(r) for r in self.program.roles}

    def across_units(self, role: str) -> Differing:
        """What differs between the units of a role."""
        return self._across_units[role]

    def across_cluster(self, role: str) -> Differing:
        """What differs between the CTAs of a cluster."""
        return self._across_cluster[role]


def once(analysis: Callable[[Context], _Made]) -> Callable[[Context], _Made]:
    """Keep what an analysis outside this module finds with the program, for the next who asks."""

    @wraps(analysis)
    def kept(ctx: Context) -> _Made:
        if analysis not in ctx.made:
            ctx.made[analysis] = analysis(ctx)
        found: _Made = ctx.made[analysis]
        return found

    return kept
