"""Integer expressions of a program as z3 terms.

Expressions come as polynomials over atoms (:mod:`cake.verify.integers`), so that what variables
and counters hold is known already. An atom becomes what it is made of where that is known (a
quotient, a minimum, a selection), a variable within its bounds otherwise. Integers are unbounded
here: whether they fit into 32 bits is a question of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import z3

from cake.ir.nodes import Call, Const, Expr, Static
from cake.ir.program import Grid, Tiles
from cake.ir.types import WARP, Scalar
from cake.verify.conditions import COMPARISONS, constant
from cake.verify.context import Context
from cake.verify.disjoint import CTA
from cake.verify.integers import from_data
from cake.verify.poly import Poly
from cake.verify.sites import Site

Term = Any
"""An expression of z3, which is untyped."""

_COMPARE: dict[str, Any] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
assert set(_COMPARE) > COMPARISONS

STRICT = {"le": "lt", "ge": "gt"}
"""What a comparison that admits equality becomes without it."""


class Terms:
    """The terms of one thread of one CTA.

    Two instances with different ``side`` share sizes and scalar parameters and nothing else.
    ``rules``: what holds of the variables made so far. ``from_data``: whether one of them comes
    from memory or is not followed, so that its value here may never occur. ``strict``: identities
    of comparisons that are read as strict ones.
    """

    def __init__(self, ctx: Context, side: str = "", strict: Collection[int] = ()) -> None:
        self.integers = ctx.integers
        self.program = ctx.program
        self.cluster = ctx.cluster
        self.side = side
        self.strict = strict
        self.rules: list[Term] = []
        self.from_data = False
        self.variables: dict[str, Term] = {}
        self._atoms: dict[str, Term] = {}
        self._truths: dict[str, Term] = {}
        sizes = {a for d in self.program.dims for a in self.integers.values[d].atoms}
        self._shared = sizes | {p.name for p in self.program.params}

    def admitted(self) -> list[Term]:
        """The program's guards, and that there is a CTA to run it."""
        holds = [self.truth(g.cond) for g in self.program.guards]
        for decl in (*self.program.find(Grid), *self.program.find(Tiles)):
            extents = [self.integers.poly(e) for e in decl.extents]
            holds += [self.of(p) >= 1 for p in extents if p is not None]
        return holds

    def reached(self, site: Site, mask: Expr | None) -> list[Term]:
        """What holds where a call executes: conditions, its mask, and that its loops run."""
        holds = []
        for condition, branch in site.conditions:
            truth = self.truth(condition)
            holds.append(truth if branch else z3.Not(truth))
        if mask is not None:
            holds.append(self.truth(mask))
        for loop in site.loops:
            if id(loop) in self.integers.loops:
                self.of(self.integers.loops[id(loop)][0])
            for value in self.integers.variables.get(id(loop), ()):
                self.of(value)
        return holds

    def of(self, p: Poly) -> Term:
        """The term of a polynomial."""
        total: Term = z3.IntVal(0)
        for monomial, factor in p.terms:
            product: Term = z3.IntVal(factor)
            for key in monomial:
                product = product * self.atom(key)
            total = total + product
        return z3.simplify(total)

    def atom(self, key: str) -> Term:
        """The term of an atom."""
        if key not in self._atoms:
            self._atoms[key] = self._made(key)
        return self._atoms[key]

    def _made(self, key: str) -> Term:
        known = self.integers.atoms.get(key)
        if known.division is not None:
            p, n, remainder = known.division
            return self.of(p) % n if remainder else self.of(p) / n
        if known.cases_low or known.cases_high:
            a, b = (self.of(bound.value) for bound in known.lows)
            return z3.If(a <= b, a, b) if known.cases_low else z3.If(a <= b, b, a)
        origin = self.integers.origins.get(key)
        if isinstance(origin, Call) and (made := self._structure(origin)) is not None:
            return made
        return self._variable(key)

    def _variable(self, key: str) -> Term:
        shared = key in self._shared
        variable = z3.Int(key if shared or not self.side else f"{key}|{self.side}")
        self.variables[key] = variable
        known = self.integers.atoms.get(key)
        self.rules += [variable * b.scale >= self.of(b.value) for b in known.lows]
        self.rules += [variable * b.scale <= self.of(b.value) for b in known.highs]
        if key == CTA:
            self.rules.append(variable >= 0)
        elif from_data(key):
            self.from_data = True
            origin = self.integers.origins.get(key)
            if origin is not None and isinstance(origin.type, Scalar):
                self.rules += self._range_of(origin, variable)
        self._relate_threads()
        return variable

    def sizes(self) -> list[Term]:
        """The program's run-time dimensions."""
        return [self.of(self.integers.values[d]) for d in self.program.dims]

    def _relate_threads(self) -> None:
        """A thread's number is made of its warp and lane."""
        lane, warp = self.variables.get(f"%lane{WARP}"), self.variables.get("%warp4")
        thread = self.variables.get("%thread128")
        if lane is not None and thread is not None:
            self.rules.append(thread % WARP == lane)
        if warp is not None and thread is not None:
            self.rules.append(thread / WARP == warp)
        single = self.variables.get(f"%thread{WARP}")
        if lane is not None and single is not None:
            self.rules.append(single == lane)

    def _structure(self, e: Call) -> Term | None:
        """What a call makes of its operands, None if it is not an expression of them."""
        if e.op == "select" and None not in e.args:
            condition, a, b = e.args
            first, second = self._integer(a), self._integer(b)
            if condition is None or first is None or second is None:
                return None
            return z3.If(self.truth(condition), first, second)
        if e.op == "abs" and (value := self._integer(e.args[0])) is not None:
            return z3.If(value < 0, -value, value)
        if e.op == "bitand":
            return self._low_bits(e)
        if e.op in ("floordiv", "mod"):
            return self._divided(e)
        if e.op == "cast" and _is_bool(e.args[0]) and e.args[0] is not None:
            return z3.If(self.truth(e.args[0]), z3.IntVal(1), z3.IntVal(0))
        return None

    def _divided(self, e: Call) -> Term | None:
        """A quotient or remainder; z3 rounds down only where the divisor is positive."""
        a, b = (self._integer(x) for x in e.args[:2])
        p = None if e.args[1] is None else self.integers.poly(e.args[1])
        if a is None or b is None or p is None or not self.integers.proved(p - 1):
            return None
        return a / b if e.op == "floordiv" else a % b

    def _low_bits(self, e: Call) -> Term | None:
        """``x & (2**k - 1)`` is ``x % 2**k``."""
        for value, other in (e.args[:2], e.args[1::-1]):
            mask = constant(other)
            term = self._integer(value)
            if mask is not None and mask >= 0 and mask & (mask + 1) == 0 and term is not None:
                return term % (mask + 1)
        return None

    def _integer(self, e: Expr | None) -> Term | None:
        p = None if e is None else self.integers.poly(e)
        return None if p is None else self.of(p)

    def _range_of(self, e: Expr, variable: Term) -> list[Term]:
        """The values that an expression may have."""
        assert isinstance(e.type, Scalar)
        bits = e.type.dtype.bits
        first = 0 if e.type.dtype.kind == "uint" else -(2 ** (bits - 1))
        last = first + 2**bits - 1
        if isinstance(e, Call) and e.op in ("popc", "clz"):
            first, last = 0, bits
        if isinstance(e, Call) and e.op == "cta_rank":
            first, last = 0, self.cluster - 1
        return [variable >= first, variable <= last]

    def _compared(self, e: Expr) -> Term | None:
        """An operand of a comparison; None if it is unsigned and may have wrapped below 0."""
        p = self.integers.poly(e)
        unsigned = isinstance(e.type, Scalar) and e.type.dtype.kind == "uint"
        if p is None or (unsigned and not self.integers.proved(p)):
            return None
        return self.of(p)

    def truth(self, e: Expr) -> Term:
        """The term of a condition; one that is not followed is a variable."""
        e = self.integers.meanings.get(id(e), e)
        if isinstance(e, Const | Static) and isinstance(e.value, bool):
            return z3.BoolVal(e.value)
        if isinstance(e, Call) and (made := self._condition(e)) is not None:
            return made
        key = self.integers.text(e)
        if key not in self._truths:
            self.from_data = True
            self._truths[key] = z3.Bool(f"{key}|{self.side}")
        return self._truths[key]

    def _condition(self, e: Call) -> Term | None:
        args = [a for a in e.args if a is not None]
        if e.op in ("and_", "or_", "not_"):
            parts = [self.truth(a) for a in args]
            return {"and_": z3.And, "or_": z3.Or, "not_": z3.Not}[e.op](*parts)
        if e.op in _COMPARE and len(args) == 2:
            a, b = self._compared(args[0]), self._compared(args[1])
            op = STRICT.get(e.op, e.op) if id(e) in self.strict else e.op
            return None if a is None or b is None else _COMPARE[op](a, b)
        return None


def _is_bool(e: Expr | None) -> bool:
    return e is not None and isinstance(e.type, Scalar) and e.type.dtype.kind == "bool"
