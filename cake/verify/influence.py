"""From which tensors the values of a program come: followed through names and shared memory.

Every assignment to a name and every store to a buffer counts, wherever it stands; what only decides
whether they happen does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import (
    Assign,
    Call,
    Expr,
    For,
    RoleBody,
    SetElement,
    Stmt,
    TensorRef,
    VarRef,
    View,
    walk_exprs,
    walk_stmts,
)
from cake.ops.base import Access, lookup
from cake.verify.context import Context

Tensors = frozenset[str]
_NONE: Tensors = frozenset()


class Influence:
    """``tensors(e, role)``: the tensors that an expression of a role is computed from."""

    def __init__(self, ctx: Context) -> None:
        self._names: dict[tuple[str, str], Tensors] = {}
        self._buffers: dict[str, Tensors] = {}
        while self._pass(ctx):
            pass

    def tensors(self, e: Expr, role: str) -> Tensors:
        """The tensors whose elements reach a value."""
        found: set[str] = set()
        for x in (e, *walk_exprs(e)):
            if isinstance(x, VarRef):
                found |= self._names.get((role, x.name), _NONE)
            elif isinstance(x, Call):
                found |= self._read(x)
        return frozenset(found)

    def _read(self, call: Call) -> Tensors:
        found = _NONE
        for access, place in _accesses(call):
            if access.action == "write":
                continue
            if isinstance(place, TensorRef):
                found |= {place.tensor}
            elif isinstance(place, View):
                found |= self._buffers.get(place.base, _NONE)
        return found

    def _pass(self, ctx: Context) -> bool:
        """Take up every assignment and store once; whether anything is new."""
        before = sum(map(len, (*self._names.values(), *self._buffers.values())))
        for role in ctx.program.roles:
            for s in walk_stmts(role.body):
                self._statement(s, role)
        return before != sum(map(len, (*self._names.values(), *self._buffers.values())))

    def _statement(self, s: Stmt, role: RoleBody) -> None:
        if isinstance(s, Assign):
            for name in s.targets:
                self._add(role, name, self.tensors(s.value, role.role))
        elif isinstance(s, SetElement):
            for x in (s.array, *walk_exprs(s.array)):
                if isinstance(x, VarRef):
                    self._add(role, x.name, self.tensors(s.value, role.role))
        elif isinstance(s, For):
            for e in (s.start, s.stop, s.step):
                self._add(role, s.var, self.tensors(e, role.role))
        for x in walk_exprs(s):
            if isinstance(x, Call):
                self._stored(x, role)

    def _stored(self, call: Call, role: RoleBody) -> None:
        for access, place in _accesses(call):
            if access.action != "read" and isinstance(place, View):
                values = [a for a in call.args if a is not None and a is not place]
                new = frozenset(t for a in values for t in self.tensors(a, role.role))
                new |= {a.tensor for a in values if isinstance(a, TensorRef)}
                self._buffers[place.base] = self._buffers.get(place.base, _NONE) | new

    def _add(self, role: RoleBody, name: str, new: Tensors) -> None:
        key = (role.role, name)
        self._names[key] = self._names.get(key, _NONE) | new


def _accesses(call: Call) -> Iterator[tuple[Access, Expr]]:
    primitive = lookup(call.op)
    for effect in () if primitive is None else primitive.effects(call):
        place = call.args[effect.operand] if isinstance(effect, Access) else None
        if isinstance(effect, Access) and place is not None:
            yield effect, place
