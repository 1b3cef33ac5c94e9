"""Registers and shared-memory buffers that are read before anything was written to them.

A register array declared without a fill, and every buffer, holds nothing at first. How sure that is
later, is a grade: on every path (``UNWRITTEN``), if the loops before run zero times
(``ZERO_ROUNDS``), or after a condition of which one branch writes (``MAYBE``). The first write
counts as the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cake.ir.nodes import (
    Assign,
    Call,
    Const,
    Expr,
    If,
    RoleBody,
    SetElement,
    Static,
    Stmt,
    VarRef,
    walk_exprs,
)
from cake.ir.types import Scalar
from cake.ops.base import Access, operand
from cake.verify.flow import Flow, Loop
from cake.verify.integers import Integers
from cake.verify.memory_items import local_view, per_call
from cake.verify.register_flow import aliases
from cake.verify.sites import Site, controls
from cake.verify.uniformity import Differing

MAYBE, ZERO_ROUNDS, UNWRITTEN = 1, 2, 3
_EMPTY = frozenset({"fragment", "registers", "row_vector", "col_vector"})


@dataclass(slots=True)
class Missing:
    """Grade of each name and buffer that may hold nothing."""

    grades: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Missing:
        return Missing(dict(self.grades))

    def join(self, other: Missing) -> None:
        names = self.grades.keys() | other.grades.keys()
        both = {n: (self.grades.get(n, 0), other.grades.get(n, 0)) for n in names}
        self.grades = {n: min(g) if all(g) else MAYBE for n, g in both.items()}

    def after_round(self, end: Missing) -> None:
        """Before the next round of a loop: it has run, or not at all."""
        self.grades = {n: min(g, end.grades.get(n, ZERO_ROUNDS)) for n, g in self.grades.items()}


@dataclass(frozen=True, slots=True)
class Unset:
    """A read of something that may hold nothing, with the grade."""

    at: Call | Stmt
    name: str
    grade: int
    buffer: bool


class InitFlow(Flow[Missing]):
    """Follows one role; ``buffers`` are those that only this role accesses."""

    def __init__(
        self,
        integers: Integers,
        role: RoleBody,
        sites: tuple[Site, ...],
        buffers: frozenset[str],
        differing: Differing,
    ) -> None:
        super().__init__(integers)
        self.differing = differing
        self.role = role
        self.sites = sites
        self.buffers = buffers
        self.found: dict[tuple[int, str], Unset] = {}
        self._of_stmt = per_call(sites)
        self._alias = aliases(sites)

    def follow(self) -> tuple[Unset, ...]:
        """Run the role from start to end."""
        self.run(self.role.body, Missing(dict.fromkeys(self.buffers, UNWRITTEN)))
        return tuple(self.found.values())

    def join_branches(self, s: If, then: Missing, orelse: Missing) -> None:
        either = then.grades.keys() ^ orelse.grades.keys() if self._partly(s) else set[str]()
        then.join(orelse)
        self._share(then, either)

    def join_round(self, s: Loop, head: Missing, end: Missing) -> None:
        either = head.grades.keys() - end.grades.keys() if self._partly(s) else set[str]()
        head.after_round(end)
        self._share(head, either)

    def _partly(self, s: Stmt) -> bool:
        """Whether some threads may run a block while others do not."""
        return any(_varies(e) or self.differing.differs(e) for e in controls(s))

    def _share(self, state: Missing, names: set[str]) -> None:
        """What some threads write to shared memory is written for all of them."""
        for name in names & self.buffers:
            state.grades.pop(name, None)

    def statement(self, s: Stmt, state: Missing) -> None:
        if not state.grades and not (isinstance(s, Assign) and _empty(s)):
            return
        written = self._written(s)
        for e in walk_exprs(s):
            if isinstance(e, VarRef) and id(e) not in written:
                name = self._alias.get(e.name, e.name)
                self._read(s, name, state)
        for i in self._of_stmt.get(id(s), ()):
            self._memory(self.sites[i], state)
        for name in written.values():
            state.grades.pop(name, None)
        if isinstance(s, Assign):
            for name in s.targets:
                if name not in self._alias:
                    state.grades.pop(name, None)
            if _empty(s):
                state.grades[s.targets[0]] = UNWRITTEN

    def _read(self, at: Call | Stmt, name: str, state: Missing, buffer: bool = False) -> None:
        grade = state.grades.get(name)
        if grade is not None:
            known = self.found.get((id(at), name))
            lowest = grade if known is None else min(grade, known.grade)
            self.found[id(at), name] = Unset(at, name, lowest, buffer)
            del state.grades[name]  # one report is enough

    def _memory(self, site: Site, state: Missing) -> None:
        for effect in site.effects:
            view = local_view(site, effect)
            if view is None or not isinstance(effect, Access):
                continue
            if effect.action != "write":
                self._read(site.call, view.base, state, buffer=True)
            state.grades.pop(view.base, None)

    def _written(self, s: Stmt) -> dict[int, str]:
        """Uses of names that a statement writes without reading, or only opens with ``lanes``."""
        found: dict[int, str] = {}
        if isinstance(s, SetElement):
            for e in (s.array, *walk_exprs(s.array)):
                if isinstance(e, VarRef):
                    found[id(e)] = self._alias.get(e.name, e.name)
        for i in self._of_stmt.get(id(s), ()):
            call = self.sites[i].call
            if call.op == "lanes" and isinstance(s, Assign) and s.value is call:
                found[id(call.args[0])] = ""
            if call.op == "wgmma" and may_start(call):
                acc = call.args[0]
                found[id(acc)] = acc.name if isinstance(acc, VarRef) else ""
        return found


def _varies(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.varying


def _empty(s: Assign) -> bool:
    """Whether a statement declares registers that hold nothing."""
    return isinstance(s.value, Call) and s.value.op in _EMPTY and operand(s.value, "fill") is None


def may_start(call: Call) -> bool:
    """Whether a product starts from zero, always or under a condition of its own."""
    init = operand(call, "init")
    return init is not None and not (isinstance(init, Const | Static) and init.value is False)
