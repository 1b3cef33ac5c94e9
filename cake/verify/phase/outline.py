"""What of a role's body the phase simulation has to execute: its outline.

Most of a kernel computes values that decide nothing here. The outline keeps the primitives that
have effects, the scalars from which stages, phases, places and trip counts follow, the uses of
registers that an engine may own, and the control flow around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from cake.diag import Span
from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Expr,
    For,
    If,
    Stmt,
    TensorRef,
    TileLoop,
    VarRef,
    While,
    child_blocks,
    walk_calls,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Program
from cake.ir.types import Slot, is_array
from cake.ops.base import Access, Effects, SyncEffect, lookup
from cake.verify.phase.registers import OwnedRegisters

IGNORED = frozenset({"pdl", "memory"})
"""Mechanisms outside the abstract machine: other kernels, and scopes beyond the cluster."""


class Weight(IntEnum):
    """How much is lost if a block is executed only once, with unknown scalars."""

    NOTHING = 0
    ACCESSES = 1
    """Places of accesses."""
    EVENTS = 2
    """Phases, groups or copies: control flow around them must be known."""


@dataclass(frozen=True, slots=True)
class Act:
    """A primitive with effects; ``target`` is the variable that takes its result, if one does."""

    call: Call
    effects: Effects
    target: str | None


@dataclass(frozen=True, slots=True)
class Ring:
    """A fill or use bracket begins (``enter``) or ends."""

    bracket: Bracket
    enter: bool


@dataclass(frozen=True, slots=True)
class Let:
    """An assignment of scalars that matter."""

    targets: tuple[str, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Registers:
    """Uses of registers that some engine may own."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    place: Span


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop. ``assigned`` are scalars that its body changes.

    ``shared``: other roles meet in its body, so that they must agree on its trip count.
    """

    stmt: For | While | TileLoop
    body: tuple[Node, ...]
    weight: Weight
    assigned: tuple[str, ...]
    shared: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """An ``if``. ``shared``: other roles meet in its blocks, so that they must agree on it."""

    stmt: If
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]
    weight: Weight
    assigned: tuple[str, ...]
    shared: bool


Node = Act | Ring | Let | Registers | Repeat | Branch


def loops_around(nodes: Iterable[Node], loop: Span | None = None) -> Iterator[tuple[Span, Span]]:
    """For the place of each event, the head of the innermost loop around it."""
    for n in nodes:
        if isinstance(n, Act | Ring) and loop is not None:
            yield (n.call if isinstance(n, Act) else n.bracket).loc, loop
        elif isinstance(n, Branch):
            yield from loops_around((*n.then, *n.orelse), loop)
        elif isinstance(n, Repeat):
            at = n.stmt.loc
            head = replace(at, end_line=at.line, end_col=at.col + 1)
            yield from loops_around(n.body, head)


class Outliner:
    """Outlines the roles of one program. ``written`` are the tensors that it writes."""

    def __init__(self, program: Program) -> None:
        self.written = frozenset(_written(program))
        self.alone = len(program.roles) == 1

    def outline(self, body: Block) -> tuple[Node, ...]:
        """The outline of a role's body."""
        return _RoleOutline(self.written, body, self.alone).result


class _RoleOutline:
    def __init__(self, written: frozenset[str], body: Block, alone: bool) -> None:
        self.written = written
        self.alone = alone
        self.registers = OwnedRegisters(body)
        self._effects: dict[int, Effects] = {}
        self._weights: dict[int, Weight] = {}
        self.scalars = self._needed(body)
        self.result = tuple(self._block(body))

    # -- what matters ------------------------------------------------------------------------------

    def effects(self, call: Call) -> Effects:
        """The effects of a call that the abstract machine knows."""
        if id(call) not in self._effects:
            primitive = lookup(call.op)
            found = () if primitive is None else primitive.effects(call)
            self._effects[id(call)] = tuple(e for e in found if self._matters(e, call))
        return self._effects[id(call)]

    def _matters(self, effect: Access | SyncEffect, call: Call) -> bool:
        if isinstance(effect, SyncEffect):
            return effect.what not in IGNORED and effect != SyncEffect("fence", "tcgen05")
        if effect.space == "regs":
            return effect.completes != "now"
        place = call.args[effect.operand]
        if isinstance(place, TensorRef) and place.tensor not in self.written:
            return effect.completes == "mbarrier"
        return True

    def _calls(self, s: Stmt) -> Iterator[Call]:
        """Calls with effects in a statement's own expressions, inner ones first."""
        for e in reversed(tuple(walk_exprs(s))):
            if isinstance(e, Call) and self.effects(e):
                yield e

    def _weight(self, s: Stmt) -> Weight:
        """The weight of a statement with everything in it."""
        if id(s) not in self._weights:
            found = [_weight_of(e) for call in self._calls(s) for e in self.effects(call)]
            found += [self._weight(x) for block in child_blocks(s) for x in block]
            if isinstance(s, Bracket):
                found.append(Weight.EVENTS)
            if self.registers.uses(s) is not None:
                found.append(Weight.ACCESSES)
            self._weights[id(s)] = max(found, default=Weight.NOTHING)
        return self._weights[id(s)]

    def _needed(self, body: Block) -> frozenset[str]:
        """Scalars from which places and control flow of effects follow, directly or not."""
        names: set[str] = set()
        sources: list[tuple[frozenset[str], frozenset[str]]] = []
        for s in walk_stmts(body):
            if self._weight(s):
                names.update(scalars_in(_heads(s)))
            for call in self._calls(s):
                names.update(scalars_in(a for a in call.args if a is not None))
            if isinstance(s, Assign):
                sources.append((frozenset(s.targets), frozenset(scalars_in((s.value,)))))
            elif heads := frozenset(scalars_in(_heads(s))):
                inside = (x for b in child_blocks(s) for x in walk_stmts(b))
                targets = frozenset(t for x in inside if isinstance(x, Assign) for t in x.targets)
                sources.append((targets, heads))
        before = -1
        while len(names) != before:
            before = len(names)
            for targets, needed in sources:
                if not names.isdisjoint(targets):
                    names |= needed
        return frozenset(names)

    # -- the outline -------------------------------------------------------------------------------

    def _block(self, block: Block) -> Iterator[Node]:
        for s in block:
            used = self.registers.uses(s)
            if used is not None:
                yield Registers(*used, s.loc)
            yield from self._statement(s)

    def _statement(self, s: Stmt) -> Iterator[Node]:
        if isinstance(s, Assign):
            yield from self._assignment(s)
            return
        yield from (Act(c, self.effects(c), None) for c in self._calls(s))
        if isinstance(s, Bracket):
            yield Ring(s, enter=True)
            yield from self._block(s.body)
            yield Ring(s, enter=False)
        elif isinstance(s, If):
            then, orelse = tuple(self._block(s.then)), tuple(self._block(s.orelse))
            if then or orelse:
                assigned = tuple(_assigned((*then, *orelse)))
                yield Branch(s, then, orelse, self._weight(s), assigned, self._shared(s))
        elif isinstance(s, For | While | TileLoop):
            body = tuple(self._block(s.body))
            if body:
                assigned = tuple(_assigned(body))
                yield Repeat(s, body, self._weight(s), assigned, self._shared(s))

    def _assignment(self, s: Assign) -> Iterator[Node]:
        takes = isinstance(s.value, Call) and isinstance(s.value.type, Slot)
        for call in self._calls(s):
            target = s.targets[0] if call is s.value else None
            yield Act(call, self.effects(call), target)
        if not takes and self.scalars.intersection(s.targets):
            yield Let(s.targets, s.value)

    def _shared(self, s: Stmt) -> bool:
        """Whether other roles take part in something inside a statement."""
        if self.alone:
            return False
        return any(self._meets(x) for b in child_blocks(s) for x in walk_stmts(b))

    def _meets(self, s: Stmt) -> bool:
        """Whether a statement takes part in a barrier that other roles may take part in."""
        found = (e for call in self._calls(s) for e in self.effects(call))
        return isinstance(s, Bracket) or any(
            isinstance(e, SyncEffect)
            and e.action in ("wait", "arrive", "barrier")
            and e.what not in ("unit", "role")
            for e in found
        )


def _weight_of(effect: Access | SyncEffect) -> Weight:
    if isinstance(effect, SyncEffect):
        return Weight.EVENTS
    return Weight.ACCESSES if effect.completes == "now" else Weight.EVENTS


def _heads(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that decide what happens in the blocks of a statement."""
    if isinstance(s, If | While):
        return (s.cond,)
    return (s.start, s.stop, s.step) if isinstance(s, For) else ()


def scalars_in(expressions: Iterable[Expr]) -> Iterator[str]:
    """The scalars that expressions mention."""
    for e in expressions:
        for x in (e, *walk_exprs(e)):
            if isinstance(x, VarRef) and not is_array(x.type):
                yield x.name


def _assigned(nodes: Iterable[Node]) -> Iterator[str]:
    """Scalars that an outline changes."""
    for n in nodes:
        if isinstance(n, Let):
            yield from n.targets
        elif isinstance(n, Repeat | Branch):
            yield from n.assigned
            if isinstance(n, Repeat) and isinstance(n.stmt, For):
                yield n.stmt.var
        elif isinstance(n, Act) and n.target is not None and isinstance(n.call.type, Slot):
            yield n.target


def _written(program: Program) -> Iterator[str]:
    """Tensors and workspaces that the program writes."""
    for role in program.roles:
        for call in walk_calls(role.body):
            primitive = lookup(call.op)
            for effect in () if primitive is None else primitive.effects(call):
                if isinstance(effect, Access) and effect.action != "read":
                    place = call.args[effect.operand]
                    if isinstance(place, TensorRef):
                        yield place.tensor
