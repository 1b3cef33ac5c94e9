"""Steps of a ring on its four sides, and whether two sides take equally many for all sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cake.ir.nodes import Bracket, Call, ResourceRef, RoleBody, Stmt
from cake.ops.rings import ring_step
from cake.verify.concrete import Sample
from cake.verify.counts import count, equal
from cake.verify.poly import ZERO, Poly
from cake.verify.sites import Around, Site, brackets_of, controls, varying_condition
from cake.verify.trace import Undecided, events

if TYPE_CHECKING:
    from cake.verify.context import Context

StepKind = Literal["acquire", "commit", "wait", "release", "sync"]

_SIDES: dict[str, tuple[StepKind, StepKind]] = {
    "fill": ("acquire", "commit"),
    "use": ("wait", "release"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a ring that a statement takes: by a call, or by a bracket, which takes both of its
    side. ``sync`` is a barrier, of which ``ring`` is the reach: "cta" or "cluster"."""

    ring: str
    kind: StepKind
    stmt: Stmt
    place: Bracket | Call


def steps_of(role: RoleBody, sites: Iterable[Site]) -> Iterator[Step]:
    """Every step that a role's body takes; ``sites`` are its calls."""
    for bracket, _ in brackets_of(role):
        for kind in _SIDES[bracket.side]:
            yield Step(bracket.pipeline, kind, bracket, bracket)
    for site in sites:
        step, ref = ring_step(site.call), site.call.args[0] if site.call.args else None
        if step is not None and isinstance(ref, ResourceRef):
            yield Step(ref.name, step, site.stmt, site.call)
        elif site.call.op.endswith("_sync"):
            yield Step(site.call.op.removesuffix("_sync"), "sync", site.stmt, site.call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two counts that should be equal for all sizes.

    ``proved`` says that they are; else ``sample`` is a size at which they are ``first`` and
    ``second``, or None if no difference was found.
    """

    proved: bool
    sample: Sample | None = None
    first: int = 0
    second: int = 0


def compare(
    ctx: Context, a: tuple[RoleBody, str, StepKind], b: tuple[RoleBody, str, StepKind]
) -> Comparison:
    """Compare the steps of two roles (or of one role twice): (role, ring, kind) each."""
    if equal(counted(ctx, *a), counted(ctx, *b), ctx.integers):
        return Comparison(proved=True)
    for sample in ctx.samples:
        found = [_at(ctx, role, ring, kind, sample) for role, ring, kind in (a, b)]
        first, second = found
        if first is not None and second is not None and first != second:
            return Comparison(proved=False, sample=sample, first=first, second=second)
    return Comparison(proved=False)


def counted(ctx: Context, role: RoleBody, ring: str, kind: StepKind) -> Poly:
    """Steps of a kind that a role takes, as a polynomial."""
    steps = Counter(id(step.stmt) for step in ctx.steps(role.role, ring, kind))
    return count(role.body, lambda s: steps[id(s)], ctx.integers) if steps else ZERO


def _at(ctx: Context, role: RoleBody, ring: str, kind: str, sample: Sample) -> int | None:
    try:
        found = Counter((e.what, e.kind) for e in events(ctx.program, role.role, sample))
    except Undecided:
        return None
    return found[ring, kind]  # type: ignore[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedStep:
    """A step of a ring that not all who share the ring may take: ``cause`` decides differently for
    threads of a unit, or for units of the role (``units``)."""

    ring: str
    role: str
    place: Bracket | Call
    cause: Stmt
    units: bool


def divided_steps(ctx: Context) -> Iterator[DividedStep]:
    """Steps of rings under control flow that differs between threads or units."""
    for role in ctx.program.roles:
        places: list[tuple[Bracket | Call, str, tuple[Around, ...]]] = [
            (b, b.pipeline, around) for b, around in brackets_of(role)
        ]
        for site in ctx.sites_of(role):
            if ring_step(site.call) is not None:
                ref = site.call.args[0]
                assert isinstance(ref, ResourceRef)
                places.append((site.call, ref.name, site.around))
        differing = ctx.across_units(role.role)
        for place, ring, around in places:
            cause = varying_condition(around)
            units = cause is None
            if units:
                causes = (a.stmt for a in around if any(map(differing.differs, controls(a.stmt))))
                cause = next(causes, None)
            if cause is not None:
                yield DividedStep(ring=ring, role=role.role, place=place, cause=cause, units=units)


def takes_none(ctx: Context, role: RoleBody, ring: str, kind: StepKind) -> bool:
    """Whether a role has no step of a kind at all."""
    return counted(ctx, role, ring, kind) == ZERO
