"""Integers that come from a tensor nobody writes: of which nothing is known but a range."""

from __future__ import annotations

from cake.ir.nodes import Assign, Call, Const, Expr, RoleBody, Static, TensorRef, VarRef, walk_stmts
from cake.ir.types import Scalar
from cake.verify.context import Context
from cake.verify.footprints import footprints

Range = tuple[int, int]
"""Least and largest value, every one between them possible."""


class FreeData:
    """``range(e)``: the values that an expression of a role may take, if data choose among them."""

    def __init__(self, ctx: Context, role: RoleBody) -> None:
        self._written = {f.place.tensor for f in footprints(ctx) if f.access.action != "read"}
        self._values: dict[str, Expr | None] = {}
        for s in walk_stmts(role.body):
            if isinstance(s, Assign):
                for name in s.targets:
                    once = name not in self._values and len(s.targets) == 1
                    self._values[name] = s.value if once else None

    def range(self, e: Expr | None) -> Range | None:
        """The range of free data; None for anything else."""
        if isinstance(e, VarRef):
            return self.range(self._values.get(e.name))
        if not isinstance(e, Call) or not isinstance(e.type, Scalar) or not e.type.dtype.is_int:
            return None
        if e.op == "load":
            place, bits = e.args[0], e.type.dtype.bits
            free = isinstance(place, TensorRef) and place.tensor not in self._written
            return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if free else None
        if e.op == "cast":
            return self.range(e.args[0])
        for data, bound in (e.args[:2], e.args[1::-1]) if len(e.args) == 2 else ():
            found, limit = self.range(data), _number(bound)
            if found is not None and limit is not None:
                return _limited(e.op, found, limit)
        return None


def _limited(op: str, found: Range, limit: int) -> Range | None:
    low, high = found
    if op == "min":
        return min(low, limit), min(high, limit)
    if op == "max":
        return max(low, limit), max(high, limit)
    mask = op == "bitand" and limit >= 0 and not limit & (limit + 1)
    return (0, limit) if mask and high >= limit else None


def _number(e: Expr | None) -> int | None:
    value = e.value if isinstance(e, Const | Static) else None
    return value if isinstance(value, int) else None
