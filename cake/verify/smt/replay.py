"""One thread's way to a call, executed on numbers: the test of what the solver found.

A solver's answer rests on a translation. Before it becomes an error, the role's text is executed
for the thread, sizes and coordinates of the answer, with the machine's 32-bit arithmetic, up to
the call in question. What comes from memory is unknown; where it decides the way, there is no
confirmation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TypeVar

from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Const,
    DimRef,
    Do,
    Expr,
    For,
    If,
    Static,
    Stmt,
    TileLoop,
    VarRef,
    While,
    child_blocks,
    walk_stmts,
)
from cake.ir.program import Grid, ScalarParam, Tiles
from cake.ir.types import WARP, Scalar
from cake.verify.concrete import OPERATORS, Value
from cake.verify.context import Context
from cake.verify.disjoint import CTA
from cake.verify.integers import INT_LIMIT, unit_key
from cake.verify.poly import Poly
from cake.verify.sites import Around, Site

MAX_STEPS = 20_000
"""Statements executed on the way to a call."""


T = TypeVar("T")
Check = Callable[["Replay"], T | None]


class Ended(Exception):
    """The thread may trap before it comes to the call, or the way there is too long."""


class Replay:
    """A thread of a program. ``picked``: values of atoms (:mod:`cake.verify.integers`).

    ``values`` holds what names have; ``shown`` sizes, coordinates and loop variables for a message;
    ``wrapped`` the calls whose value did not fit into their type.
    """

    def __init__(self, ctx: Context, site: Site, picked: Mapping[str, int]) -> None:
        self.ctx = ctx
        self.site = site
        self.picked = picked
        self.values: dict[str, Value] = {}
        self.shown: dict[str, int] = {}
        self.wrapped: set[int] = set()
        self._steps = 0

    def find(self, check: Check[T]) -> T | None:
        """What ``check`` finds where the thread comes to the call; None if it does not come."""
        try:
            if not self._launch():
                return None
            return self._descend(self.site.role.body, self.site.around, check)
        except Ended:
            return None

    def poly(self, p: Poly) -> int | None:
        """The value of a polynomial over sizes."""
        integers = self.ctx.integers
        sizes = {}
        for name in self.ctx.program.dims:
            ((key,), factor) = integers.values[name].terms[0]
            sizes[key] = self.shown[name] // factor
        value = integers.atoms.evaluate(p, sizes)
        return value if isinstance(value, int) else None

    # -- the launch --------------------------------------------------------------------------------

    def _launch(self) -> bool:
        """Give sizes, coordinates and the thread their values; False if no launch has them."""
        program = self.ctx.program
        for name in program.dims:
            p = self.ctx.integers.values[name]
            self._show(name, p.terms[0][1] * self.picked.get(p.terms[0][0][0], 1))
        for parameter in program.params:
            if isinstance(parameter, ScalarParam) and parameter.dtype.is_int:
                self._show(parameter.name, self.picked.get(parameter.name, 1))
        self._lets()
        if any(self.value(g.cond) is not True for g in program.guards):
            return False
        for grid in (*program.find(Grid), *program.find(Tiles)):
            extents = [self.value(e) for e in grid.extents]
            counts = [n for n in extents if isinstance(n, int) and n > 0]
            if len(counts) < len(extents) or prod(counts) >= INT_LIMIT:
                return False
            if isinstance(grid, Grid):
                for name, count in zip(grid.vars, counts, strict=True):
                    self._show(name, self.picked.get(name, 0))
                    if not 0 <= self.shown[name] < count:
                        return False
        self._lets()
        return self._thread()

    def _lets(self) -> None:
        for let in self.ctx.program.lets:
            self.values[let.targets[0]] = self.value(let.value)

    def _thread(self) -> bool:
        role = self.ctx.roles[self.site.role.role]
        unit = self.picked.get(unit_key(role.name), 0)
        if self.site.role.unit is not None:
            self._show(self.site.role.unit, unit)
        lane = self.picked.get(f"%lane{WARP}", 0)
        warp = self.picked.get("%warp4", 0)
        self.thread = self.picked.get(f"%thread{role.unit_threads}", warp * WARP + lane)
        self.shown["thread of the unit"] = self.thread
        in_tiles = any(isinstance(loop, TileLoop) for loop in self.site.loops)
        # Beside coordinates, which CTA has them depends on the order of the walk.
        self.cta = None if in_tiles or self.ctx.program.find(Grid) else self.picked.get(CTA, 0)
        return 0 <= unit < role.units and 0 <= self.thread < role.unit_threads

    def _show(self, name: str, value: int) -> None:
        self.values[name] = self.shown[name] = value

    # -- the way -----------------------------------------------------------------------------------

    def _descend(self, block: Block, around: tuple[Around, ...], check: Check[T]) -> T | None:
        target = around[0].stmt if around else self.site.stmt
        for s in block:
            if s is target:
                return self._enter(around[0], around[1:], check) if around else check(self)
            self._execute(s)
        return None

    def _enter(self, a: Around, rest: tuple[Around, ...], check: Check[T]) -> T | None:
        s = a.stmt
        if isinstance(s, While):
            return self._repeat(s, rest, check)
        if isinstance(s, If):
            if self.value(s.cond) is not a.branch:
                return None
            return self._descend(s.then if a.branch else s.orelse, rest, check)
        if isinstance(s, For) and not self._round(s):
            return None
        if isinstance(s, TileLoop) and not self._tile(s):
            return None
        assert isinstance(s, For | TileLoop | Bracket)
        return self._descend(s.body, rest, check)

    def _repeat(self, s: While, rest: tuple[Around, ...], check: Check[T]) -> T | None:
        while self.value(s.cond) is True:
            before = dict(self.values)
            found = self._descend(s.body, rest, check)
            if found is not None:
                return found
            self.values = before
            self._block(s.body)
        return None

    def _round(self, s: For) -> bool:
        """Come to the picked round of a loop; False if the loop has no such round."""
        rounds = self._rounds(s)
        if rounds is None:
            return False
        known = self.ctx.integers.loops.get(id(s))
        turn = self.picked.get(str(known[0]), 0) if known is not None else 0
        if not 0 <= turn < len(rounds):
            return False
        if self._changed(s.body):
            for i in rounds[:turn]:
                self.values[s.var] = i
                self._block(s.body)
        self._show(s.var, rounds[turn])
        return True

    def _rounds(self, s: For) -> range | None:
        start, stop, step = (self.value(e) for e in (s.start, s.stop, s.step))
        if not isinstance(start, int) or not isinstance(stop, int) or not isinstance(step, int):
            return None
        return range(start, stop, step) if step > 0 else None

    def _tile(self, s: TileLoop) -> bool:
        tiles = self.ctx.program.resource(s.tiles)
        assert isinstance(tiles, Tiles)
        self._forget(s.body)
        keys = map(str, self.ctx.integers.variables[id(s)])
        for name, key, extent in zip(s.vars, keys, tiles.extents, strict=True):
            self._show(name, self.picked.get(key, 0))
            count = self.value(extent)
            if not isinstance(count, int) or not 0 <= self.shown[name] < count:
                return False
        return True

    # -- other statements --------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for s in block:
            self._execute(s)

    def _execute(self, s: Stmt) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise Ended
        if isinstance(s, Do) and s.call.op == "trap" and self.value(s.call.args[0]) is not False:
            raise Ended
        if isinstance(s, Assign):
            value = self.value(s.value) if len(s.targets) == 1 else None
            self.values |= dict.fromkeys(s.targets, value)
        elif isinstance(s, If) and (cond := self.value(s.cond)) is not None:
            self._block(s.then if cond else s.orelse)
        elif isinstance(s, Bracket):
            self._block(s.body)
        elif isinstance(s, For) and (rounds := self._rounds(s)) is not None:
            for i in rounds if self._changed(s.body) else ():
                self.values[s.var] = i
                self._block(s.body)
        else:
            for block in child_blocks(s):
                self._forget(block)

    def _changed(self, block: Block) -> set[str]:
        """Names of values that a block changes."""
        found = {t for s in walk_stmts(block) if isinstance(s, Assign) for t in s.targets}
        return found & self.values.keys()

    def _forget(self, block: Block) -> None:
        self.values |= dict.fromkeys(self._changed(block))

    # -- expressions -------------------------------------------------------------------------------

    def value(self, e: Expr | None) -> Value:
        """The value of a scalar expression as the machine computes it; None if it is unknown."""
        if isinstance(e, Const | Static):
            return e.value if isinstance(e.value, int | float | bool) else None
        if isinstance(e, VarRef | DimRef):
            return self.values.get(e.name)
        return self._call(e) if isinstance(e, Call) else None

    def _call(self, e: Call) -> Value:
        if e.op in ("lane", "warp", "thread", "elect"):
            lane, warp = self.thread % WARP, self.thread // WARP
            return {"lane": lane, "warp": warp, "thread": self.thread, "elect": lane == 0}[e.op]
        if e.op == "block_index":
            return self.cta
        args = [self.value(a) for a in e.args]
        if e.op == "select":
            return None if args[0] is None else args[1] if args[0] else args[2]
        if e.op in ("and_", "or_"):
            decides = e.op == "or_"
            if decides in (args[0], args[1]):
                return decides
        if any(a is None for a in args) or not isinstance(e.type, Scalar):
            return None
        if e.op == "cast":
            return self._fitted(e, int(args[0] or 0)) if e.type.dtype.is_int else args[0]
        if e.op not in OPERATORS or not (e.type.dtype.is_int or e.type.dtype.kind == "bool"):
            return None
        try:
            result: Value = OPERATORS[e.op](*args)
        except (ZeroDivisionError, ValueError):
            return None
        return self._fitted(e, result) if isinstance(result, int) else result

    def _fitted(self, e: Call, value: int) -> int:
        """A value in the bits of its type, as two's complement."""
        assert isinstance(e.type, Scalar)
        if isinstance(value, bool) or not e.type.dtype.is_int:
            return value
        size = 1 << e.type.dtype.bits
        low = 0 if e.type.dtype.kind == "uint" else -(size // 2)
        fitted = (value - low) % size + low
        if fitted != value and e.op != "cast":
            self.wrapped.add(id(e))
        return fitted
