"""What lowering derives for a ring: bytes of a fill, arrival counts, fences.

Verifier, simulator and emitter all take these numbers from :func:`ring_facts`, so they agree by
construction.

* A fill is *early* if only TMA and bulk copies write the stage. Its producer arrives on the full
  barrier as soon as the slot is free, and the bytes of the copies keep the phase open. Any other
  fill is *late*: the producer arrives at the commit, and bytes of copies among the stores are
  announced without an arrival when the slot is acquired.
* Each producer warp arrives once a fill, so the full barrier counts producer warps: no warp can
  still be spinning on an older phase when the barrier moves on twice (parity has one bit). A ring
  that only cp.async writes counts threads instead: each thread's arrival is triggered by its own
  copies (cp.async.mbarrier.arrive.noinc), and the producer does not wait for them.
* Generic writes (st, stmatrix, cp.async) that consumers read through the async proxy are fenced by
  the producer before it arrives. A fence covers finished writes only, so cp.async is then waited
  for first.
* Each consumer warp arrives once on the empty barrier, of every CTA of the cluster if the ring is
  multicast.

PTX ISA, "Parallel Synchronization: mbarrier" and "Memory Consistency Model: proxies".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
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
    walk_calls,
    walk_exprs,
)
from cake.ir.program import Cluster, Pipeline, Program, Role
from cake.ir.types import SmemView
from cake.ops.base import Access, lookup

FillKind = Literal["copy", "store", "cp_async"]
Side = Literal["fill", "use"]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RingFacts:
    """Derived figures of one ring.

    ``full_count`` and ``empty_count`` are arrivals a phase. ``arrival`` says who arrives on full.
    ``fence``: a late fill ends with a proxy fence; ``drain``: it waits for cp.async before.
    ``consumer_proxies``: through which proxies the consumer reads the buffers. ``stray``: writes of
    the producer to a buffer of the ring outside any fill of it.
    """

    pipeline: str
    stages: int
    fills: tuple[Fill, ...]
    arrival: Literal["warps", "threads"]
    full_count: int
    empty_count: int
    consumer_proxies: frozenset[str]
    fence: bool
    drain: bool
    stray: tuple[Call, ...]

    @property
    def bytes(self) -> int | None:
        """Bytes of one unit's fill if all fills agree, else None."""
        found = {f.bytes for f in self.fills}
        return found.pop() if len(found) == 1 else None

    @property
    def fill_kinds(self) -> frozenset[FillKind]:
        return frozenset(k for f in self.fills for k in f.kinds)

    def fill(self, site: Site) -> Fill:
        """The fill that begins at ``site`` (KeyError if there is none)."""
        for f in self.fills:
            if f.site is site:
                return f
        raise KeyError(f"no fill of {self.pipeline} begins at {site.loc}")

    def fill_ended_by(self, commit: Call) -> Fill:
        """The fill that a ``commit`` ends (KeyError if it ends none)."""
        for f in self.fills:
            if any(c is commit for c in f.commits):
                return f
        raise KeyError(f"the commit at {commit.loc} ends no fill of {self.pipeline}")


@lru_cache(maxsize=256)
def ring_facts(program: Program, pipeline: str) -> RingFacts:
    """Derive the figures of a ring from the program's statements and its primitives' effects."""
    ring = program.resource(pipeline)
    assert isinstance(ring, Pipeline)
    producer, consumer = _role(program, ring.producer), _role(program, ring.consumer)
    walk = _FillWalk(ring)
    walk.block(program.body_of(ring.producer), walk.open)
    fills = walk.finish()
    proxies = frozenset(_read_proxies(program.body_of(ring.consumer), ring))
    kinds = {k for f in fills for k in f.kinds}
    threads = "cp_async" in kinds and "store" not in kinds and "async" not in proxies
    peers = _cluster_size(program) if ring.multicast else 1
    return RingFacts(
        pipeline=pipeline,
        stages=ring.stages,
        fills=tuple(
            replace(f, early=not threads and f.kinds == frozenset({"copy"})) for f in fills
        ),
        arrival="threads" if threads else "warps",
        full_count=producer.warps * (32 if threads else 1),
        empty_count=consumer.warps * peers,
        consumer_proxies=proxies,
        fence="async" in proxies and bool(kinds - {"copy"}),
        drain="cp_async" in kinds and not threads,
        stray=tuple(walk.stray),
    )


def _role(program: Program, name: str) -> Role:
    role = program.resource(name)
    assert isinstance(role, Role)
    return role


def _cluster_size(program: Program) -> int:
    return next((c.size for c in program.find(Cluster)), 1)


def accesses(call: Call, action: Literal["read", "write"]) -> Iterator[tuple[Access, View]]:
    """The shared-memory views that a call reads or writes, with how it does so."""
    primitive = lookup(call.op)
    for effect in () if primitive is None else primitive.effects(call):
        if isinstance(effect, Access) and effect.action == action and effect.space == "smem":
            view = call.args[effect.operand]
            if isinstance(view, View):
                yield effect, view


def _read_proxies(body: Block, ring: Pipeline) -> Iterator[str]:
    for call in walk_calls(body):
        for access, view in accesses(call, "read"):
            if view.base in ring.buffers:
                yield access.proxy


def view_bytes(view: View) -> int:
    """Bytes of a shared-memory tile."""
    assert isinstance(view.type, SmemView)
    bits = view.type.dtype.bits
    for extent in view.type.shape:
        bits *= extent
    return bits // 8


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
