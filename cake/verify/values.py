"""What integer variables hold, in terms of dimensions, loop variables and thread indices.

A name that is assigned once stands for its value. One that changes is followed through the text:
each use gets the value it has there. A counter that every round of a loop advances equally, modulo
a number of stages or not, is an expression of the loop's variable; what else a loop or a branch
changes is a fresh atom behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Const,
    Expr,
    For,
    If,
    RoleBody,
    Static,
    Stmt,
    TileLoop,
    VarRef,
    While,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Grid, Program, Role, Tiles
from cake.ir.types import WARP, Scalar
from cake.verify.poly import ZERO, Poly

if TYPE_CHECKING:
    from cake.verify.integers import Integers

Advance = tuple[int, int | None]
"""How an assignment advances a counter: by how much, and modulo what."""


def assign_values(integers: Integers) -> None:
    """Say what every use of a name in a program stands for."""
    program = integers.program
    meanings: dict[str, Expr] = {}
    extents = _names_of_extents(program)
    for let in program.lets:
        if let.targets[0] in extents:
            _let(integers, let, meanings)
    for decl in (*program.find(Grid), *program.find(Tiles)):
        integers.assume_launched(decl)
    for grid in program.find(Grid):
        for name, extent in zip(grid.vars, grid.extents, strict=True):
            integers.values[name] = _variable(integers, name, _number(integers, extent))
    for let in program.lets:
        if let.targets[0] not in extents:
            _let(integers, let, meanings)
    for role in program.roles:
        _RoleValues(integers, role, meanings).run()


def _names_of_extents(program: Program) -> set[str]:
    """Kernel-level names from which extents of the grid or of tiles are computed."""
    decls = (*program.find(Grid), *program.find(Tiles))
    found = {name for decl in decls for e in decl.extents for name in _names(e)}
    for let in reversed(program.lets):
        if let.targets[0] in found:
            found |= _names(let.value)
    return found


def _names(e: Expr) -> set[str]:
    return {x.name for x in (e, *walk_exprs(e)) if isinstance(x, VarRef)}


def _let(integers: Integers, let: Assign, meanings: dict[str, Expr]) -> None:
    """Give a kernel-level name its value."""
    for e in walk_exprs(let):
        if isinstance(e, VarRef) and e.name in meanings:
            integers.meanings[id(e)] = meanings[e.name]
    meanings[let.targets[0]] = let.value
    value = integers.poly(let.value)
    if value is not None:
        integers.values[let.targets[0]] = value


def _variable(integers: Integers, key: str, stop: Poly) -> Poly:
    """A variable that runs from 0 to below ``stop``."""
    return integers.atoms.add(key, lows=[0], highs=[stop - 1], exact=True)


def _number(integers: Integers, e: Expr) -> Poly:
    found = integers.poly(e)
    assert found is not None
    return found


class _RoleValues:
    """Walks the body of one role. ``now`` is what its names hold, ``meanings`` the expressions of
    those that are assigned once. (Names are unique within a role only.)"""

    def __init__(self, integers: Integers, role: RoleBody, meanings: dict[str, Expr]) -> None:
        self.integers = integers
        self.role = role
        decl = integers.program.resource(role.role)
        assert isinstance(decl, Role)
        self.decl = decl
        count: Counter[str] = Counter()
        for s in walk_stmts(role.body):
            if isinstance(s, Assign):
                count.update(s.targets)
        self.changing = {name for name, n in count.items() if n > 1}
        self.now: dict[str, Poly] = {}
        self.meanings = dict(meanings)
        self._fresh = 0

    def run(self) -> None:
        if self.role.unit is not None:
            key = f"%unit.{self.role.role}"
            units = Poly.number(self.decl.units)
            self.now[self.role.unit] = _variable(self.integers, key, units)
        self._block(self.role.body, 0)

    def _block(self, block: Block, depth: int) -> None:
        for s in block:
            self._uses(s)
            if isinstance(s, Assign):
                self._assign(s)
            elif isinstance(s, For):
                self._loop(s, depth)
            elif isinstance(s, TileLoop):
                self._tiles(s, depth)
            elif isinstance(s, If):
                self._branches(s, depth)
            elif isinstance(s, While):
                self._forget(s.body)
                self._block(s.body, depth)
                self._forget(s.body)
            elif isinstance(s, Bracket):
                self._block(s.body, depth)

    def _uses(self, s: Stmt) -> None:
        """Give thread indices and names that change their values in this statement."""
        threads = self.decl.unit_threads
        sizes = {"lane": WARP, "warp": threads // WARP, "thread": threads}
        for e in walk_exprs(s):
            if isinstance(e, VarRef):
                if e.name in self.now:
                    self._occurs(e, self.now[e.name])
                if e.name in self.meanings:
                    self.integers.meanings[id(e)] = self.meanings[e.name]
            elif isinstance(e, Call) and e.op in sizes:
                n = sizes[e.op]
                key = f"%{e.op}{n}"
                one = self.integers.atoms.add(key, [0], [n - 1], exact=True) if n > 1 else ZERO
                self.integers.occurrences[id(e)] = one

    def _occurs(self, e: Expr, value: Poly) -> None:
        """One node may be used in several statements: its value must be the same in all."""
        known = self.integers.occurrences.get(id(e), value)
        self.integers.occurrences[id(e)] = value if known == value else self._new("shared")

    def _new(self, name: str) -> Poly:
        self._fresh += 1
        return self.integers.atoms.add(f"{name}@{self.role.role}.{self._fresh}")

    def _assign(self, s: Assign) -> None:
        if s.targets[0] not in self.changing:
            self.meanings[s.targets[0]] = s.value
        value = self.integers.poly(s.value) if len(s.targets) == 1 else None
        for name in s.targets:
            self.now[name] = self._new(name) if value is None else value

    def _branches(self, s: If, depth: int) -> None:
        before = dict(self.now)
        ends = []
        for inner in (s.then, s.orelse):
            self.now = dict(before)
            self._block(inner, depth)
            ends.append(self.now)
        then, orelse = ends
        self.now = {
            name: value if orelse.get(name) == value else self._new(name)
            for name, value in then.items()
        }

    def _loop(self, s: For, depth: int) -> None:
        found = self.integers.range_of(s)
        if found is None:
            self._forget(s.body)
            self.now[s.var] = self._new(s.var)
            self.integers.variables[id(s)] = (self.now[s.var],)
            self._block(s.body, depth + 1)
            self._forget(s.body)
            return
        start, stop, step = found
        count = self.integers.floordiv(stop - start + (step - 1), step)
        turn = self.integers.atoms.add(f"i{depth}[{count}]", [0], [count - 1], exact=True)
        self.integers.loops[id(s)] = (turn, count)
        self.now[s.var] = start + turn * step
        self.integers.variables[id(s)] = (self.now[s.var],)
        counters = self._counters(s.body)
        self._forget(s.body, keep=set(counters))
        entered = {name: self.now[name] for name in counters}
        for name, advance in counters.items():
            self.now[name] = self._advanced(entered[name], advance, turn)
        self._block(s.body, depth + 1)
        self._forget(s.body, keep=set(counters))
        turns = self.integers.extreme("max", ZERO, count)
        for name, advance in counters.items():
            self.now[name] = self._advanced(entered[name], advance, turns)

    def _tiles(self, s: TileLoop, depth: int) -> None:
        tiles = self.integers.program.resource(s.tiles)
        assert isinstance(tiles, Tiles)
        self._forget(s.body)
        for i, (name, extent) in enumerate(zip(s.vars, tiles.extents, strict=True)):
            stop = _number(self.integers, extent)
            self.now[name] = _variable(self.integers, f"{tiles.name}.{i}", stop)
        self.integers.variables[id(s)] = tuple(self.now[name] for name in s.vars)
        self._block(s.body, depth + 1)
        self._forget(s.body)

    def _forget(self, block: Block, keep: set[str] | None = None) -> None:
        """What a block changes has an unknown value."""
        for name in _assigned(block) & self.changing & self.now.keys() - (keep or set()):
            self.now[name] = self._new(name)

    def _advanced(self, start: Poly, advance: Advance, turns: Poly) -> Poly:
        by, n = advance
        value = start + turns * by
        return value if n is None else self.integers.mod(value, n)

    def _counters(self, body: Block) -> dict[str, Advance]:
        """Names that every round advances equally, by assignments in the body itself."""
        found: dict[str, Advance | None] = {}
        for s in _straight(body):
            names = _assigned((s,)) & self.changing & self.now.keys()
            step = _advance(s) if isinstance(s, Assign) and len(s.targets) == 1 else None
            for name in names:
                found[name] = _sum(found.get(name, (0, None)), step, name in found)
        return {
            name: advance
            for name, advance in found.items()
            if advance is not None and self._in_range(self.now[name], advance[1])
        }

    def _in_range(self, p: Poly, n: int | None) -> bool:
        return n is None or (
            self.integers.proved(p) and self.integers.proved(Poly.number(n - 1) - p)
        )


def _straight(block: Block) -> Iterator[Stmt]:
    """The statements of a block that run exactly once in it, those of ring brackets included."""
    for s in block:
        if isinstance(s, Bracket):
            yield from _straight(s.body)
        else:
            yield s


def _assigned(block: Block) -> set[str]:
    return {t for s in walk_stmts(block) if isinstance(s, Assign) for t in s.targets}


def _sum(a: Advance | None, b: Advance | None, second: bool) -> Advance | None:
    """Two advances after one another; None if they do not agree on the modulus."""
    if a is None or b is None or (second and a[1] != b[1]):
        return None
    return a[0] + b[0], b[1]


def _advance(s: Assign) -> Advance | None:
    """``x + c``, ``(x + c) % n`` or ``select(x == n - 1, 0, x + 1)`` assigned to x."""
    e, name = s.value, s.targets[0]
    if not isinstance(e, Call) or not isinstance(e.type, Scalar) or not e.type.dtype.is_int:
        return None
    if e.op == "add":
        by = _plus(e, name)
        return None if by is None else (by, None)
    if e.op == "mod":
        by, n = _plus(e.args[0], name), _const(e.args[1])
        return None if by is None or n is None or n < 1 else (by, n)
    if e.op == "select" and _const(e.args[1]) == 0 and isinstance(e.args[0], Call):
        cond, by = e.args[0], _plus(e.args[2], name)
        last = _const(cond.args[1]) if cond.op == "eq" and len(cond.args) > 1 else None
        ahead = _plus(cond.args[0], name) if cond.args else None
        if by == 1 and last is not None and ahead in (0, 1):
            return 1, last + 1 - ahead
    return None


def _plus(e: Expr | None, name: str) -> int | None:
    """c of ``name + c``."""
    if isinstance(e, VarRef):
        return 0 if e.name == name else None
    if isinstance(e, Call) and e.op == "add":
        a, b = e.args[:2]
        for x, y in ((a, b), (b, a)):
            if isinstance(x, VarRef) and x.name == name:
                return _const(y)
    return None


def _const(e: Expr | None) -> int | None:
    return e.value if isinstance(e, Const | Static) and isinstance(e.value, int) else None
