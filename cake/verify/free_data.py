"""Integers that come from a tensor nobody writes: of which nothing is known but a range."""

from __future__ import annotations

from cake.ir.nodes import (
    Assign,
    Call,
    Const,
    Element,
    Expr,
    RoleBody,
    SetElement,
    Static,
    TensorRef,
    VarRef,
    walk_stmts,
)
from cake.ir.types import Scalar
from cake.verify.context import Context
from cake.verify.footprints import footprints

Range = tuple[int, int]
"""Least and largest value, every one between them possible."""


class FreeData:
    """``range(e)``: the values that an expression of a role may take, if data choose among them."""

    def __init__(self, ctx: Context, role: RoleBody) -> None:
        self._written = {f.place.tensor for f in footprints(ctx) if f.access.action != "read"}
        self._text = ctx.integers.text
        self._asked: set[str] = set()
        self._values: dict[str, list[Expr | None]] = {}
        for s in walk_stmts(role.body):
            if isinstance(s, Assign):
                whole = s.value if len(s.targets) == 1 else None
                for name in s.targets:
                    self._values.setdefault(name, []).append(whole)
            elif isinstance(s, SetElement) and isinstance(s.array, VarRef):
                self._values.setdefault(f"{s.array.name}[]", []).append(s.value)

    def range(self, e: Expr | None) -> Range | None:
        """The range of free data; None for anything else."""
        if isinstance(e, VarRef):
            return self._defined(e.name)
        if isinstance(e, Element) and isinstance(e.base, VarRef):
            return self._defined(f"{e.base.name}[]")
        if not isinstance(e, Call) or not isinstance(e.type, Scalar) or not e.type.dtype.is_int:
            return None
        if e.op == "load":
            place = e.args[0]
            free = isinstance(place, TensorRef) and place.tensor not in self._written
            return _whole(e.type.dtype.bits) if free else None
        if e.op == "cast":
            return self.range(e.args[0])
        if e.op == "select":
            return self._selected(*e.args[:3])
        for data, other in (e.args[:2], e.args[1::-1]) if len(e.args) == 2 else ():
            found = self.range(data)
            if found is not None and self.range(other) is None:
                return _changed(e.op, found, _number(other), e.type.dtype.bits)
        return None

    def _defined(self, name: str) -> Range | None:
        """The range of a name that is assigned once, or of elements that are all set alike."""
        values = self._values.get(name, [])
        if name in self._asked or not (name.endswith("[]") or len(values) == 1):
            return None
        self._asked.add(name)  # What is computed from itself is no free data.
        found = {self.range(v) for v in values}
        self._asked.remove(name)
        return found.pop() if len(found) == 1 else None

    def _selected(self, cond: Expr | None, data: Expr | None, other: Expr | None) -> Range | None:
        """``select(x < n, x, c)``."""
        found, number = self.limited(data, cond), _number(other)
        inside = found is not None and number is not None and found[0] <= number <= found[1]
        return found if inside else None

    def limited(self, data: Expr | None, cond: Expr | None) -> Range | None:
        """The range of data where a comparison of it with a number holds."""
        found = self.range(data)
        if not isinstance(cond, Call) or found is None or len(cond.args) < 2:
            return None
        left, limit = cond.args[0], _number(cond.args[1])
        same = left is not None and data is not None and self._text(left) == self._text(data)
        if not same or limit is None:
            return None
        low, high = found
        ends = {
            "lt": (low, min(high, limit - 1)),
            "le": (low, min(high, limit)),
            "ge": (max(low, limit), high),
            "gt": (max(low, limit + 1), high),
        }.get(cond.op)
        return None if ends is None or ends[0] > ends[1] else ends

    def usual(self, cond: Expr) -> bool:
        """Whether a condition asks no more than that free data are not negative."""
        data = cond.args[0] if isinstance(cond, Call) and cond.args else None
        whole = self.range(data)
        return whole is not None and self.limited(data, cond) == (0, whole[1])


def _whole(bits: int) -> Range:
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _changed(op: str, found: Range, number: int | None, bits: int) -> Range | None:
    """The range of data after an operation with something else, a ``number`` if it is known."""
    low, high = found
    if op in ("add", "sub"):
        return found if found == _whole(bits) else None
    if number is None:
        return None
    if op == "min":
        return min(low, number), min(high, number)
    if op == "max":
        return max(low, number), max(high, number)
    mask = op == "bitand" and number >= 0 and not number & (number + 1)
    return (0, number) if mask and high >= number else None


def _number(e: Expr | None) -> int | None:
    value = e.value if isinstance(e, Const | Static) else None
    return value if isinstance(value, int) else None
