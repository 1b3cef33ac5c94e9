"""Register variables that asynchronous instructions still own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from cake.ir.nodes import Assign, Block, Call, RoleBody, SetElement, Stmt, VarRef, walk_exprs
from cake.ops.base import Access, Completion, SyncEffect, pending
from cake.verify.flow import Flow
from cake.verify.integers import Integers
from cake.verify.memory_items import OLDEST, Hazard, HazardKind, per_call
from cake.verify.sites import Site


@dataclass(frozen=True, slots=True)
class Held:
    """A variable that an instruction in flight reads or writes; ``age`` counts its groups."""

    index: int
    name: str
    action: Literal["read", "write", "atomic"]
    completes: Completion
    age: int = 0


@dataclass(slots=True)
class Holdings:
    """What may be in flight at a point of a role."""

    held: set[Held] = field(default_factory=set)

    def copy(self) -> Holdings:
        return Holdings(set(self.held))

    def join(self, other: Holdings) -> None:
        self.held |= other.held


class RegisterFlow(Flow[Holdings]):
    """Follows one role. Names opened by ``lanes`` count as the variable they open."""

    def __init__(self, integers: Integers, role: RoleBody, sites: tuple[Site, ...]) -> None:
        super().__init__(integers)
        self.role = role
        self.sites = sites
        self.hazards: dict[Hazard, None] = {}
        self._of_stmt = per_call(sites)
        self._alias = aliases(sites)
        self._owned = {h.name for i in range(len(sites)) for h in self._holds(i)}

    def follow(self) -> tuple[Hazard, ...]:
        """Run the role from start to end."""
        if self._owned:
            end = self.run(self.role.body, Holdings())
            for held in end.held:
                self._lost(held, self.role)
        return tuple(self.hazards)

    def statement(self, s: Stmt, state: Holdings) -> None:
        if state.held:
            self._touch(s, state)
        for i in self._of_stmt.get(id(s), ()):
            state.held.update(self._holds(i))
            for effect in self.sites[i].effects:
                if isinstance(effect, SyncEffect):
                    self._sync(effect, self.sites[i].call, state)

    def _sync(self, effect: SyncEffect, call: Call, state: Holdings) -> None:
        if effect.action == "commit":
            state.held = {
                replace(h, age=min(h.age + 1, OLDEST)) if h.completes == effect.what else h
                for h in state.held
            }
        elif effect.action == "drain":
            left = pending(call)
            state.held = {h for h in state.held if h.completes != effect.what or h.age <= left}

    def _holds(self, i: int) -> Iterator[Held]:
        """What an instruction owns; an accumulator that it also reads counts as written."""
        site = self.sites[i]
        owned: dict[str, Held] = {}
        for e in site.effects:
            if isinstance(e, Access) and e.space == "regs" and e.completes != "now":
                operand = site.call.args[e.operand]
                if isinstance(operand, VarRef):
                    name = self._root(operand.name)
                    if name not in owned or e.action == "write":
                        owned[name] = Held(i, name, e.action, e.completes)
        yield from owned.values()

    def _touch(self, s: Stmt, state: Holdings) -> None:
        reads, writes = self._ordinary(s)
        for held in state.held:
            if held.name in writes or (held.action == "write" and held.name in reads):
                self._add("register-in-flight", s, held)

    def _ordinary(self, s: Stmt) -> tuple[set[str], set[str]]:
        """Owned variables that a statement reads and writes other than by instructions that
        queue behind those in flight."""
        queued = {
            id(site.call.args[e.operand])
            for site in (self.sites[i] for i in self._of_stmt.get(id(s), ()))
            for e in site.effects
            if isinstance(e, Access) and e.space == "regs" and e.completes != "now"
        }
        reads = {
            self._root(e.name)
            for e in walk_exprs(s)
            if isinstance(e, VarRef) and id(e) not in queued
        }
        writes: set[str] = set()
        if isinstance(s, SetElement):
            parts = (s.array, *walk_exprs(s.array))
            writes = {self._root(e.name) for e in parts if isinstance(e, VarRef)}
        elif isinstance(s, Assign) and s.targets[0] in self._alias:
            reads.discard(self._alias[s.targets[0]])
        elif isinstance(s, Assign):
            writes.update(s.targets)
        return reads & self._owned, writes & self._owned

    def _root(self, name: str) -> str:
        return self._alias.get(name, name)

    def leave_block(self, block: Block, state: Holdings) -> None:
        if not state.held:
            return
        ended = set(declared(block))
        for held in [h for h in state.held if h.name in ended]:
            self._lost(held, block[-1])
            state.held.discard(held)

    def _lost(self, held: Held, at: Stmt) -> None:
        if held.action == "write":
            self._add("register-lost", at, held)

    def _add(self, kind: HazardKind, at: Stmt, held: Held) -> None:
        hazard = Hazard(
            kind=kind,
            at=at,
            site=self.sites[held.index],
            subject=held.name,
            age=held.age,
            completes=held.completes,
            action=held.action,
        )
        self.hazards[hazard] = None


def aliases(sites: tuple[Site, ...]) -> dict[str, str]:
    """Names bound to ``lanes(x)``, with the variable they open."""
    found: dict[str, str] = {}
    for site in sites:
        s, x = site.stmt, site.call.args[0] if site.call.args else None
        opened = site.call.op == "lanes" and isinstance(s, Assign) and s.value is site.call
        if opened and isinstance(s, Assign) and isinstance(x, VarRef):
            found[s.targets[0]] = found.get(x.name, x.name)
    return found


def declared(block: Block) -> Iterator[str]:
    """Names that a block declares."""
    for s in block:
        if isinstance(s, Assign):
            yield from (n for n, new in zip(s.targets, s.declares, strict=True) if new)
