"""Which values may differ between the units of a role, or between the CTAs of a cluster.

``Scalar.varying`` says what differs within a unit. A role of several units runs one body in each,
and a barrier or a ring that all of them share needs control flow that is equal in all of them.
Values that come from memory are taken to be equal if they come from one place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cake.ir.nodes import (
    Assign,
    Block,
    Call,
    Expr,
    For,
    RoleBody,
    SetElement,
    VarRef,
    child_blocks,
    walk_exprs,
)
from cake.ir.types import Scalar
from cake.ops.base import Access, lookup
from cake.verify.sites import controls


@dataclass(frozen=True, slots=True)
class Differing:
    """Names and calls whose values differ; ``calls`` are primitives that make a difference."""

    names: frozenset[str]
    calls: frozenset[str]

    def differs(self, e: Expr) -> bool:
        """Whether an expression may have different values."""
        return any(self._source(x) for x in (e, *walk_exprs(e)))

    def _source(self, e: Expr) -> bool:
        if isinstance(e, VarRef):
            return e.name in self.names
        if isinstance(e, Call):
            return e.op in self.calls or _is_update(e)
        return False


def across_units(role: RoleBody, units: int) -> Differing:
    """What differs between the units of a role (nothing if it has one)."""
    if units == 1:
        return Differing(frozenset(), frozenset())
    start = frozenset() if role.unit is None else frozenset({role.unit})
    return _spread(role.body, Differing(start, frozenset()))


def across_cluster(role: RoleBody) -> Differing:
    """What differs between the CTAs of a cluster because it comes from the CTA's rank."""
    return _spread(role.body, Differing(frozenset(), frozenset({"cta_rank"})))


def _spread(body: Block, start: Differing) -> Differing:
    """Follow differences through assignments and conditions until nothing changes."""
    known = start
    while True:
        names = set(known.names)
        _block(body, known, names, under=False)
        if names == known.names:
            return known
        known = Differing(frozenset(names), start.calls)


def _block(block: Block, known: Differing, names: set[str], under: bool) -> None:
    for s in block:
        if isinstance(s, Assign):
            if under or known.differs(s.value) or _per_thread(s.value):
                names.update(s.targets)
        elif isinstance(s, SetElement):
            names.update(_base(s.array))
        inner = under or any(known.differs(e) for e in controls(s))
        if isinstance(s, For) and inner:
            names.add(s.var)
        for body in child_blocks(s):
            _block(body, known, names, inner)


def _base(e: Expr) -> Iterable[str]:
    return (x.name for x in (e, *walk_exprs(e)) if isinstance(x, VarRef))


def _per_thread(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.varying


def _is_update(e: Call) -> bool:
    """An atomic gives each executing unit another value."""
    primitive = lookup(e.op)
    effects = () if primitive is None else primitive.effects(e)
    return any(isinstance(f, Access) and f.action == "atomic" for f in effects)
