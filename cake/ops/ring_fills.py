"""The fills of a ring: what a producer writes into a slot between its acquire and its commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Const,
    Expr,
    For,
    If,
    Static,
    Stmt,
    TileLoop,
    VarRef,
    View,
    While,
    child_blocks,
    walk_exprs,
)
from cake.ir.program import Pipeline
from cake.ops.base import Access, lookup
from cake.ops.tiles import view_bytes

FillKind = Literal["copy", "store", "cp_async"]
Site = Bracket | Call
"""Where a fill begins: a fill bracket, or a call of ``acquire``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """One place in the producer that fills a stage.

    ``bytes``: what the copies of one producing unit bring into this CTA's stage; None if the paths
    through the fill disagree or it cannot be known, and ``why`` says so. ``commits`` are the
    ``commit`` calls that end an explicit fill. ``early``: the producer arrives when it acquires.
    """

    site: Site
    commits: tuple[Call, ...]
    bytes: int | None
    kinds: frozenset[FillKind]
    why: str | None = None
    early: bool = False


def accesses(call: Call, action: Literal["read", "write"]) -> Iterator[tuple[Access, View]]:
    """The shared-memory views that a call reads or writes, with how it does so."""
    primitive = lookup(call.op)
    for effect in () if primitive is None else primitive.effects(call):
        if isinstance(effect, Access) and effect.action == action and effect.space == "smem":
            view = call.args[effect.operand]
            if isinstance(view, View):
                yield effect, view


def fills_of(ring: Pipeline, body: Block) -> tuple[tuple[Fill, ...], tuple[Call, ...]]:
    """The fills in a producer's body, and its writes to buffers of the ring outside any fill."""
    walk = _FillWalk(ring)
    walk.block(body, walk.open)
    return tuple(walk.finish()), tuple(walk.stray)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A fill in force: what has been put into the slot so far."""

    site: Site
    bytes: int | None = 0
    kinds: frozenset[FillKind] = frozenset()
    why: str | None = None

    def spoiled(self, why: str) -> _Open:
        return replace(self, bytes=None, why=self.why or why)


class _FillWalk:
    """Walks a producer's body with the slots in force, by the name of the slot."""

    def __init__(self, ring: Pipeline) -> None:
        self.ring = ring
        self.open: dict[str, _Open] = {}
        self.ended: list[tuple[_Open, Call | None]] = []
        self.stray: list[Call] = []

    def block(self, block: Block, state: dict[str, _Open]) -> None:
        for s in block:
            self.statement(s, state)

    def statement(self, s: Stmt, state: dict[str, _Open]) -> None:
        for e in walk_exprs(s):
            if isinstance(e, Call):
                self.call(e, state)
        if isinstance(s, Assign) and self.is_ring_call(s.value, "acquire"):
            assert isinstance(s.value, Call)
            if (lost := state.get(s.targets[0])) is not None:
                self.ended.append((lost.spoiled("the slot is acquired again uncommitted"), None))
            state[s.targets[0]] = _Open(site=s.value)
        elif isinstance(s, Bracket) and s.pipeline == self.ring.name and s.side == "fill":
            state[s.slot] = _Open(site=s)
            self.block(s.body, state)
            self.ended.append((state.pop(s.slot), None))
        elif isinstance(s, If):
            self.branch(s, state)
        elif isinstance(s, For | TileLoop | While):
            self.loop(s, state)
        else:
            for body in child_blocks(s):
                self.block(body, state)

    def is_ring_call(self, e: Expr, op: str) -> bool:
        if not isinstance(e, Call) or e.op != op:
            return False
        return getattr(e.args[0], "name", None) == self.ring.name

    def call(self, call: Call, state: dict[str, _Open]) -> None:
        if self.is_ring_call(call, "commit"):
            name = getattr(call.args[1], "name", "")
            if name in state:
                self.ended.append((state.pop(name), call))
            return
        for access, view in accesses(call, "write"):
            if view.base in self.ring.buffers:
                self.write(call, access, view, state)

    def write(self, call: Call, access: Access, view: View, state: dict[str, _Open]) -> None:
        kind: FillKind = "store"
        if access.completes == "mbarrier":
            if _names_barrier(call):
                return
            kind = "copy"
        elif access.completes == "cp_async":
            kind = "cp_async"
        name = view.stage.name if isinstance(view.stage, VarRef) else ""
        if name not in state:
            self.stray.append(call)
            return
        fill = state[name]
        size = view_bytes(view) if kind == "copy" else 0
        total = None if fill.bytes is None else fill.bytes + size
        state[name] = replace(fill, bytes=total, kinds=fill.kinds | {kind})

    def branch(self, s: If, state: dict[str, _Open]) -> None:
        then, orelse = dict(state), dict(state)
        self.block(s.then, then)
        self.block(s.orelse, orelse)
        state.clear()
        for name in then.keys() | orelse.keys():
            a, b = then.get(name), orelse.get(name)
            one = a or b
            assert one is not None
            if a is None or b is None:
                state[name] = one.spoiled(f"only one branch of the `if` at {s.loc} ends the fill")
            elif a.bytes != b.bytes:
                why = f"the branches of the `if` at {s.loc} copy {a.bytes} and {b.bytes} bytes"
                state[name] = replace(a, kinds=a.kinds | b.kinds).spoiled(why)
            else:
                state[name] = replace(a, kinds=a.kinds | b.kinds, why=a.why or b.why)

    def loop(self, s: For | TileLoop | While, state: dict[str, _Open]) -> None:
        before = dict(state)
        self.block(s.body, state)
        for name in before.keys() | state.keys():
            a, b = before.get(name), state.get(name)
            if a is None or b is None or a.site is not b.site:
                one = b or a
                assert one is not None
                state[name] = one.spoiled(f"the loop at {s.loc} carries the fill round")
            elif a.bytes is not None and b.bytes is not None and a.bytes != b.bytes:
                n = _trips(s)
                why = f"the loop at {s.loc} copies in a number of iterations known only at run time"
                state[name] = (
                    b.spoiled(why)
                    if n is None
                    else replace(b, bytes=a.bytes + n * (b.bytes - a.bytes))
                )

    def finish(self) -> list[Fill]:
        for fill in self.open.values():
            self.ended.append((fill.spoiled("the fill is never committed"), None))
        fills: dict[int, Fill] = {}
        for fill, commit in self.ended:
            commits = () if commit is None else (commit,)
            new = Fill(
                site=fill.site, commits=commits, bytes=fill.bytes, kinds=fill.kinds, why=fill.why
            )
            old = fills.get(id(fill.site))
            fills[id(fill.site)] = new if old is None else _joined(old, new)
        return list(fills.values())


def _joined(a: Fill, b: Fill) -> Fill:
    """Two ends of one explicit fill."""
    same = a.bytes == b.bytes
    why = a.why or b.why
    if not same and why is None:
        why = f"the fill ends after {a.bytes} bytes on one path and {b.bytes} on another"
    return replace(
        a,
        commits=a.commits + b.commits,
        bytes=a.bytes if same else None,
        kinds=a.kinds | b.kinds,
        why=why,
    )


def _names_barrier(call: Call) -> bool:
    """Whether a copy completes on a raw mbarrier instead of its ring."""
    primitive = lookup(call.op)
    assert primitive is not None
    given = zip(primitive.params, call.args, strict=True)
    return any(p.name == "barrier" and a is not None for p, a in given)


def _trips(s: For | TileLoop | While) -> int | None:
    """Iterations of a loop if its range is known at compile time."""
    if not isinstance(s, For):
        return None
    bounds = (s.start, s.stop, s.step)
    values = [e.value for e in bounds if isinstance(e, Const | Static)]
    return len(range(*map(int, values))) if len(values) == 3 else None
