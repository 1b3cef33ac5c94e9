"""Integer expressions of a program as polynomials, with the ranges of all their atoms.

``require(N % 64 == 0)`` makes the dimension N the product of 64 and a new atom, so that tile
counts become exact. Atoms are named by what they are, not by the author's variables: a loop
variable by its depth and range, a load from a tensor that nobody writes by its place. So
expressions of two roles are equal if they have equal values. What variables hold is found by
:mod:`cake.verify.values`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import gcd, lcm

from cake.ir.nodes import Call, Const, DimRef, Expr, For, Static, TensorRef, VarRef
from cake.ir.program import Grid, Program, Smem, Tiles
from cake.ir.types import DIM_LIMIT, Scalar
from cake.ops.base import Access, lookup
from cake.verify.atoms import Atoms, Bound
from cake.verify.concrete import may_be_empty
from cake.verify.conditions import (
    COMPARISONS,
    comparison,
    conjuncts,
    constant,
    divisibility,
    written_tensors,
)
from cake.verify.poly import ZERO, Poly
from cake.verify.values import assign_values

_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL_INSIDE = re.compile(r"\b(?!min\(|max\()[A-Za-z_]\w*\(")
_CALL = re.compile(r"(?!min\(|max\()[A-Za-z_]\w*\(")

INT_LIMIT = 2**31
"""i32 values, and the number of tiles, are below this."""
THREAD = "%"
"""Keys of atoms that differ between threads or units contain this, as PTX's %laneid does."""
FRESH = "@"
"""Keys of atoms that may have another value each time control comes by contain this."""


class Integers:
    """Normal forms of a program's integer expressions.

    ``values``: what dimensions and kernel-level names stand for. By the identity of a node,
    because names are unique within a role only: ``occurrences``, what a use of a name stands for;
    ``meanings``, the expression that defines a name used there and assigned once; ``loops``, the
    number of a loop's present round (from 0) and how many rounds there are (negative means none);
    ``variables``, the values of a loop's variables. ``assumed``: polynomials that the guards keep
    from being negative. ``conditions``: for the key of a condition, what it compares with 0;
    ``truths``, conditions as polynomials, by the identity of the expression. ``origins``: by key,
    an expression that an atom without a normal form stands for.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.atoms = Atoms()
        self.values: dict[str, Poly] = {}
        self.occurrences: dict[int, Poly] = {}
        self.written = frozenset(written_tensors(program))
        self.assumed: list[Poly] = []
        self.conditions: dict[str, Poly] = {}
        self.truths: dict[int, Poly] = {}
        self.loops: dict[int, tuple[Poly, Poly]] = {}
        self.variables: dict[int, tuple[Poly, ...]] = {}
        self.meanings: dict[int, Expr] = {}
        self.origins: dict[str, Expr] = {}
        self._cache: dict[int, Poly | None] = {}
        self._texts: dict[int, str] = {}
        self._dims()
        for guard in program.guards:
            for part in conjuncts(guard.cond):
                self.assumed += self.facts(part)
        assign_values(self)

    def assume_launched(self, decl: Grid | Tiles) -> None:
        """A launch has less than 2^31 tiles."""
        tiles = Poly.number(1)
        for e in decl.extents:
            tiles = tiles * (self.poly(e) or self.atoms.add(self.text(e)))
        self.assumed.append(INT_LIMIT - 1 - tiles)

    def _dims(self) -> None:
        """Dimensions by their divisors; the launch checks that they are below DIM_LIMIT."""
        divisors = dict.fromkeys(self.program.dims, 1)
        for guard in self.program.guards:
            for part in conjuncts(guard.cond):
                if (found := divisibility(part)) is not None and found[0] in divisors:
                    divisors[found[0]] = lcm(divisors[found[0]], found[1])
        for name, n in divisors.items():
            key = name if n == 1 else f"{name}/{n}"
            least = 0 if may_be_empty(self.program, name) else 1
            self.values[name] = self.atoms.add(key, lows=[least], highs=[(DIM_LIMIT - 1) // n]) * n

    # -- expressions -------------------------------------------------------------------------------

    def poly(self, e: Expr) -> Poly | None:
        """Normal form of an integer expression; None if it is not an integer."""
        key = id(e)
        if key not in self._cache:
            self._cache[key] = self._poly(e)
        return self._cache[key]

    def _poly(self, e: Expr) -> Poly | None:
        if isinstance(e, Const | Static):
            value = constant(e)
            return None if value is None else Poly.number(value)
        if not isinstance(e.type, Scalar) or not e.type.dtype.is_int:
            return None
        if id(e) in self.occurrences:
            return self.occurrences[id(e)]
        if isinstance(e, VarRef | DimRef):
            return self.values.get(e.name) or self.atoms.add(e.name)
        if isinstance(e, Call):
            return self._call(e)
        return self._opaque(e)

    def _call(self, e: Call) -> Poly:
        args = [None if a is None else self.poly(a) for a in e.args]
        if e.op == "cast" and args[0] is not None:
            return args[0]
        if e.op == "neg" and args[0] is not None:
            return -args[0]
        found = None
        if len(args) == 2 and args[0] is not None and args[1] is not None:
            found = self._binary(e.op, args[0], args[1])
        elif e.op == "select":
            found = self._wrapped(e)
        return self._opaque(e) if found is None else found

    def _opaque(self, e: Expr) -> Poly:
        """An atom for an expression that has no normal form."""
        key = self.text(e)
        self.origins.setdefault(key, e)
        return self.atoms.add(key)

    def _binary(self, op: str, a: Poly, b: Poly) -> Poly | None:
        n = b.constant
        if op == "add":
            return a + b
        if op == "sub":
            return a - b
        if op == "mul":
            return a * b
        if op in ("min", "max"):
            return self.extreme(op, a, b)
        if n is None or n < 0:
            return None
        if op == "shl":
            return a * (1 << n) if n < 63 else None
        if op == "shr" and n < 63:
            op, n = "floordiv", 1 << n
        if op == "floordiv" and n:
            return self.floordiv(a, n)
        return self.mod(a, n) if op == "mod" and n else None

    def _wrapped(self, e: Call) -> Poly | None:
        """``select(x == n - 1, 0, x + 1)`` is ``(x + 1) % n`` for x in [0, n)."""
        cond, zero, other = e.args
        following = None if other is None else self.poly(other)
        if not isinstance(cond, Call) or cond.op != "eq" or constant(zero) != 0:
            return None
        a, b = (None if x is None else self.poly(x) for x in cond.args[:2])
        if a is None or b is None or following is None:
            return None
        n = (following + b - a).constant
        if n is None or n < 1 or not self._within(following - 1, n):
            return None
        return self.mod(following, n)

    def floordiv(self, p: Poly, n: int) -> Poly:
        """``p // n``, rounded down; exact parts leave the division."""
        q, r = p.divide(n)
        shared = gcd(n, *(c for m, c in r.terms if m))
        if shared > 1:
            r, n = r.divide(shared)[0], n // shared
        if self._within(r, n):
            return q
        lows, highs = [Bound(r - (n - 1), n)], [Bound(r, n)]
        return q + self.atoms.add(f"({r})//{n}", lows, highs, division=(r, n, False))

    def mod(self, p: Poly, n: int) -> Poly:
        """``p % n``, not negative."""
        r = p.divide(n)[1]
        if self._within(r, n):
            return r
        r = self.residue(r, n)
        return self.atoms.add(f"({r}) mod {n}", [0], [n - 1], division=(r, n, True))

    def residue(self, p: Poly, n: int) -> Poly:
        """A polynomial that is congruent to ``p`` modulo n, without remainders modulo n."""
        parts: dict[str, Poly] = {}
        for key in p.atoms:
            division = self.atoms.get(key).division
            if division is not None and division[2] and division[1] % n == 0:
                parts[key] = division[0]
        return p.replace(parts).modulo(n)

    def _within(self, r: Poly, n: int) -> bool:
        return self.atoms.nonnegative(r) and self.atoms.nonnegative(Poly.number(n - 1) - r)

    def interval(self, p: Poly, fixed: Mapping[str, int] | None = None) -> tuple[float, float]:
        """See :meth:`Atoms.interval`."""
        return self.atoms.interval(p, fixed)

    def extreme(self, op: str, a: Poly, b: Poly) -> Poly:
        """``min`` or ``max`` of two polynomials."""
        for x, y in ((a, b), (b, a)):
            if self.atoms.nonnegative(y - x):
                return x if op == "min" else y
        first, second = sorted((a, b), key=lambda p: p.terms)
        low, key = op == "min", f"{op}({first},{second})"
        return self.atoms.add(key, [a, b], [a, b], cases_low=low, cases_high=not low)

    def question(self, key: str) -> Poly | None:
        """For a condition, a minimum or a maximum: the polynomial on whose sign it turns."""
        if key in self.conditions:
            return self.conditions[key]
        atom = self.atoms.get(key)
        if atom.cases_low or atom.cases_high:
            first, second = atom.lows
            return first.value - second.value
        return None

    def answers(self, key: str) -> tuple[Poly, Poly]:
        """The value of such an atom if its question is not negative, and if it is."""
        if key in self.conditions:
            return Poly.number(1), ZERO
        atom = self.atoms.get(key)
        first, second = (b.value for b in atom.lows)
        return (second, first) if atom.cases_low else (first, second)

    # -- names of other expressions ----------------------------------------------------------------

    def text(self, e: Expr) -> str:
        """A key that equal expressions share; fresh if the value may differ from use to use."""
        if id(e) not in self._texts:
            self._texts[id(e)] = self._text(e)
        return self._texts[id(e)]

    def _text(self, e: Expr) -> str:
        if isinstance(e, Const | Static):
            return repr(e.value)
        if isinstance(e, VarRef | DimRef):
            p = self.poly(e)
            return e.name if p is None else str(p)
        if isinstance(e, Call) and self._stable(e):
            return f"{e.op}({','.join('' if a is None else self._operand(a) for a in e.args)})"
        if isinstance(e, TensorRef):
            return f"{e.tensor}[{','.join(map(self._operand, e.index))}]"
        return f"{type(e).__name__.lower()}{FRESH}{e.loc.line}:{e.loc.col}#{len(self._texts)}"

    def _operand(self, e: Expr) -> str:
        p = self.poly(e)
        return self.text(e) if p is None else str(p)

    def _stable(self, e: Call) -> bool:
        """Whether a call gives the same value wherever its operands are the same."""
        primitive = lookup(e.op)
        effects = () if primitive is None else primitive.effects(e)
        for effect in effects:
            if not isinstance(effect, Access) or effect.action != "read":
                return False
            place = e.args[effect.operand]
            if not isinstance(place, TensorRef) or place.tensor in self.written:
                return False
        return primitive is not None and not primitive.convergent

    def mentions(self, atom: str, names: frozenset[str]) -> bool:
        """Whether an atom is one of ``names``, or computed from one."""
        words = set(_WORD.findall(atom))
        return any(n in words if n.isidentifier() else n in atom for n in names)

    def stages(self, buffer: str) -> int:
        """Stages of a shared-memory buffer, 1 if it has none."""
        decl = self.program.resource(buffer)
        return decl.stages or 1 if isinstance(decl, Smem) else 1

    def range_of(self, s: For) -> tuple[Poly, Poly, int] | None:
        """Start, stop and step of a loop; None if the step is not known."""
        start, stop, step = self.poly(s.start), self.poly(s.stop), self.poly(s.step)
        n = None if step is None else step.constant
        if start is None or stop is None or n is None or n < 1:
            return None
        return start, stop, n

    # -- conditions --------------------------------------------------------------------------------

    def facts(self, cond: Expr, holds: bool = True) -> list[Poly]:
        """Polynomials that are not negative if ``cond`` has the truth value ``holds``."""
        cond = self.meanings.get(id(cond), cond)
        if not isinstance(cond, Call):
            return []
        if cond.op == "not_" and cond.args[0] is not None:
            return self.facts(cond.args[0], not holds)
        if cond.op == ("and_" if holds else "or_"):
            return [f for a in cond.args if a is not None for f in self.facts(a, holds)]
        if cond.op not in COMPARISONS or None in cond.args[:2]:
            return []
        a, b = (self.poly(x) for x in cond.args[:2] if x is not None)
        if a is None or b is None:
            return []
        return comparison(cond.op, a, b, holds)

    def proved(self, p: Poly, given: Sequence[Poly] = ()) -> bool:
        """Whether ``p >= 0`` follows from the guards, the ranges and ``given[i] >= 0``."""
        return self.atoms.nonnegative(p, (*self.assumed, *given))


def unit_key(role: str) -> str:
    """Key of a role's unit index."""
    return f"{THREAD}unit.{role}"


def from_data(atom: str) -> bool:
    """Whether an atom's value comes from memory, or is not followed."""
    return FRESH in atom or _CALL.match(atom) is not None


def rests_on_data(atom: str) -> bool:
    """Whether an atom's value, or the range that it has, depends on such a value."""
    return FRESH in atom or _CALL_INSIDE.search(atom) is not None
