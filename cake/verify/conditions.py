"""Syntax of conditions and guards: what they compare, and the constants in them."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import Call, Const, DimRef, Expr, Static, TensorRef, walk_calls
from cake.ir.program import Program
from cake.ops.base import Access, lookup
from cake.verify.poly import Poly

COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq"})


def comparison(op: str, a: Poly, b: Poly, holds: bool) -> list[Poly]:
    """What is not negative if ``a op b`` has the truth value ``holds``."""
    if op == "eq":
        return [a - b, b - a] if holds else []
    if op in ("gt", "ge"):
        a, b, op = b, a, {"gt": "lt", "ge": "le"}[op]
    if holds:
        return [b - a - 1] if op == "lt" else [b - a]
    return [a - b] if op == "lt" else [a - b - 1]


def conjuncts(cond: Expr) -> Iterator[Expr]:
    """The parts of a conjunction."""
    if isinstance(cond, Call) and cond.op == "and_":
        for a in cond.args:
            if a is not None:
                yield from conjuncts(a)
    else:
        yield cond


def divisibility(cond: Expr) -> tuple[str, int] | None:
    """(dimension, n) of ``dimension % n == 0``."""
    if not isinstance(cond, Call) or cond.op != "eq":
        return None
    for left, right in (cond.args[:2], cond.args[1::-1]):
        if isinstance(left, Call) and left.op == "mod" and constant(right) == 0:
            dim, n = left.args[0], constant(left.args[1])
            if isinstance(dim, DimRef) and n:
                return dim.name, n
    return None


def constant(e: Expr | None) -> int | None:
    """A compile-time integer."""
    if isinstance(e, Const | Static) and isinstance(e.value, int):
        return None if isinstance(e.value, bool) else e.value
    return None


def written_tensors(program: Program) -> Iterator[str]:
    """Tensors and workspaces that the kernel writes."""
    for role in program.roles:
        for call in walk_calls(role.body):
            primitive = lookup(call.op)
            for effect in () if primitive is None else primitive.effects(call):
                place = call.args[effect.operand] if isinstance(effect, Access) else None
                if isinstance(place, TensorRef) and effect.action != "read":
                    yield place.tensor
