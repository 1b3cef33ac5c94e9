"""What is known about the atoms of polynomials, and proofs of ``p >= 0`` from it.

Every atom has lower and upper bounds that mention only atoms made before it, so a proof replaces
atoms by their bounds, youngest first, until a number is left. It is sound and incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import floor, gcd, inf, prod
from typing import Any

import numpy as np

from cake.verify.poly import ZERO, Poly

MAX_DEPTH = 24
"""Replacements in one proof; real indices need fewer than ten."""
MAX_TABLE = 4096
"""Combinations of values that are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Bound:
    """``scale * atom`` is at least (or at most) ``value``; ``scale`` is positive."""

    value: Poly
    scale: int = 1


Division = tuple[Poly, int, bool]
"""``(p, n, False)`` is ``p // n``, ``(p, n, True)`` is ``p % n``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """An opaque part of an integer expression.

    ``exact``: for all values of older atoms, both bounds are attained (a loop variable, if the
    loop runs at all). ``cases_low``, ``cases_high``: the atom is one of the bounds on that side (a
    minimum or maximum), so a proof must hold for each of them; otherwise any one will do.
    ``division`` says what a quotient or remainder is made of.
    """

    key: str
    rank: int
    lows: tuple[Bound, ...] = ()
    highs: tuple[Bound, ...] = ()
    exact: bool = False
    cases_low: bool = False
    cases_high: bool = False
    division: Division | None = None


class Atoms:
    """The atoms of a program."""

    def __init__(self) -> None:
        self._known: dict[str, Atom] = {}
        self._proved: dict[tuple[Poly, tuple[Poly, ...]], bool] = {}
        self._steps: dict[tuple[Poly, int], bool] = {}
        self._ranges: dict[tuple[str, tuple[tuple[str, int], ...]], tuple[float, float]] = {}

    def get(self, key: str) -> Atom:
        """An atom by key (KeyError if there is none)."""
        return self._known[key]

    def add(
        self,
        key: str,
        lows: Iterable[Bound | Poly | int] = (),
        highs: Iterable[Bound | Poly | int] = (),
        *,
        exact: bool = False,
        cases_low: bool = False,
        cases_high: bool = False,
        division: Division | None = None,
    ) -> Poly:
        """The polynomial of one atom; an atom that exists keeps what is known about it."""
        if key not in self._known:
            self._known[key] = Atom(
                key=key,
                rank=len(self._known),
                lows=tuple(map(_bound, lows)),
                highs=tuple(map(_bound, highs)),
                exact=exact,
                cases_low=cases_low,
                cases_high=cases_high,
                division=division,
            )
        return Poly.atom(key)

    def youngest(self, p: Poly) -> Atom:
        """The atom of ``p`` made last."""
        return max((self._known[a] for a in p.atoms), key=lambda atom: atom.rank)

    def nonnegative(self, p: Poly, given: Sequence[Poly] = ()) -> bool:
        """Whether ``p >= 0`` follows from the bounds, and from ``given[i] >= 0``."""
        key = (p, tuple(given))
        if key not in self._proved:
            self._proved[key] = self._nonnegative(tightened(p), [tightened(g) for g in given])
        return self._proved[key]

    def _nonnegative(self, p: Poly, given: Sequence[Poly]) -> bool:
        if self._prove(p, MAX_DEPTH) or self._tabulated(p):
            return True
        useful = [g for g in given if not g.atoms.isdisjoint(p.atoms)]
        return any(
            self._prove(p - sum_of(some), MAX_DEPTH)
            for n in (1, 2)
            for some in combinations(useful, n)
        )

    def _prove(self, p: Poly, depth: int) -> bool:
        value = p.constant
        if value is not None:
            return value >= 0
        if depth == 0:
            return False
        key = (p, depth)
        if key not in self._steps:
            self._steps[key] = self._replaced(p, depth)
        return self._steps[key]

    def _replaced(self, p: Poly, depth: int) -> bool:
        """Whether ``p >= 0`` follows from the bounds of its youngest atom."""
        atom = self.youngest(p)
        parts = p.split(atom.key)
        if parts is None:
            return False
        factor, rest = parts
        sign = self.sign(factor, depth - 1)
        if sign == 0:
            return False
        if atom.division is not None and factor.constant in (1, -1) and not atom.division[2]:
            return self._prove(_whole(atom.division, rest, sign), depth - 1)
        bounds = atom.lows if sign > 0 else atom.highs
        cases = atom.cases_low if sign > 0 else atom.cases_high
        tries = (
            self._prove(tightened(factor * b.value + rest * b.scale), depth - 1) for b in bounds
        )
        return bool(bounds) and (all(tries) if cases else any(tries))

    def _tabulated(self, p: Poly) -> bool:
        """Whether ``p >= 0`` holds for all values of its atoms, if those are few."""
        leaves = sorted({leaf for key in p.atoms for leaf in self._leaves(key)})
        ends = [self._range(leaf, {}) for leaf in leaves]
        counts = [high - low + 1 for low, high in ends]
        if not leaves or min(counts) < 1 or prod(counts) > MAX_TABLE:
            return False
        axes = np.ix_(*(np.arange(int(low), int(high) + 1) for low, high in ends))
        table = self.evaluate(p, dict(zip(leaves, axes, strict=True)))
        return table is not None and bool(np.all(table >= 0))

    def interval(self, p: Poly, fixed: Mapping[str, int] | None = None) -> tuple[float, float]:
        """Numbers between which ``p`` lies for all values of its atoms, those in ``fixed`` having
        one value; infinite if unbounded."""
        low = high = 0.0
        for m, c in p.terms:
            a, b = _product([self._range(key, fixed or {}) for key in m])
            low += min(c * a, c * b)
            high += max(c * a, c * b)
        return low, high

    def _range(self, key: str, fixed: Mapping[str, int]) -> tuple[float, float]:
        if key in fixed:
            return fixed[key], fixed[key]
        known = (key, tuple(fixed.items()))
        if known not in self._ranges:
            self._ranges[known] = self._bounds(self._known[key], fixed)
        return self._ranges[known]

    def _bounds(self, atom: Atom, fixed: Mapping[str, int]) -> tuple[float, float]:
        if atom.division is not None:
            p, n, remainder = atom.division
            low, high = (_floor(x / n) for x in self.interval(p, fixed))
            if not remainder:
                return low, high
            if low == high:
                first, last = self.interval(p, fixed)
                return first - n * low, last - n * low
            return 0, n - 1
        lows = [self.interval(b.value, fixed)[0] / b.scale for b in atom.lows]
        highs = [self.interval(b.value, fixed)[1] / b.scale for b in atom.highs]
        low = (min if atom.cases_low else max)(lows, default=-inf)
        high = (max if atom.cases_high else min)(highs, default=inf)
        return -_floor(-low), _floor(high)

    def attained(self, p: Poly, fixed: Mapping[str, int]) -> bool:
        """Whether some values of the atoms attain both ends of ``interval(p, fixed)``: every term
        has variables of its own, and each of them runs from end to end."""
        seen: set[str] = set()
        for m, _ in p.terms:
            leaves = {leaf for key in m for leaf in self._leaves(key)} - fixed.keys()
            if len(m) > 1 and len(leaves) > 1:
                return False
            if seen & leaves or not all(self._runs_freely(leaf, fixed) for leaf in leaves):
                return False
            seen |= leaves
        return True

    def _leaves(self, key: str) -> set[str]:
        division = self._known[key].division
        if division is None:
            return {key}
        return {leaf for inner in division[0].atoms for leaf in self._leaves(inner)}

    def _runs_freely(self, key: str, fixed: Mapping[str, int]) -> bool:
        atom = self._known[key]
        bounds = {a for b in (*atom.lows, *atom.highs) for a in b.value.atoms}
        plain = {leaf for a in bounds for leaf in self._leaves(a)} <= fixed.keys()
        low, high = self._range(key, fixed)
        return atom.exact and plain and low <= high

    def divisors_of(self, key: str) -> set[int]:
        """The numbers by which expressions with this atom are divided."""
        return {
            a.division[1]
            for a in self._known.values()
            if a.division is not None and any(key in self._inside(x) for x in a.division[0].atoms)
        }

    def _inside(self, key: str) -> set[str]:
        """An atom with those that it is a quotient, remainder, minimum or maximum of."""
        atom = self._known[key]
        parts = [] if atom.division is None else [atom.division[0]]
        if atom.cases_low or atom.cases_high:
            parts += [b.value for b in atom.lows]
        return {key}.union(*(self._inside(a) for p in parts for a in p.atoms))

    def evaluate(self, p: Poly, values: Mapping[str, Any]) -> Any:
        """``p`` with numbers (or arrays) for its atoms; None if one has neither a value nor is a
        division of atoms that have."""
        total: Any = 0
        for m, c in p.terms:
            product: Any = c
            for key in m:
                factor = self._evaluate(key, values)
                if factor is None:
                    return None
                product = product * factor
            total = total + product
        return total

    def _evaluate(self, key: str, values: Mapping[str, Any]) -> Any:
        if key in values:
            return values[key]
        division = self._known[key].division
        if division is None:
            return None
        p, n, remainder = division
        value = self.evaluate(p, values)
        if value is None:
            return None
        return value % n if remainder else value // n

    def sign(self, p: Poly, depth: int = MAX_DEPTH) -> int:
        """1 if ``p >= 0`` is proved, -1 if ``p <= 0`` is, else 0."""
        if self._prove(p, depth):
            return 1
        return -1 if self._prove(-p, depth) else 0


def _whole(division: Division, rest: Poly, sign: int) -> Poly:
    """What is not negative exactly if ``sign * (p // n) + rest`` is not."""
    p, n, _ = division
    return tightened(p + rest * n if sign > 0 else rest * n + (n - 1) - p)


def _product(factors: list[tuple[float, float]]) -> tuple[float, float]:
    low = high = 1.0
    for a, b in factors:
        ends = [x * y if x and y else 0.0 for x in (low, high) for y in (a, b)]
        low, high = min(ends), max(ends)
    return low, high


def _floor(x: float) -> float:
    return floor(x) if abs(x) < inf else x


def tightened(p: Poly) -> Poly:
    """``p`` divided by the factor that all its atoms share: ``p >= 0`` is the same for integers."""
    factor = 0
    for m, c in p.terms:
        if m:
            factor = gcd(factor, c)
    return p.divide(factor)[0] if factor > 1 else p


def sum_of(parts: Iterable[Poly]) -> Poly:
    """Sum of polynomials."""
    result = ZERO
    for p in parts:
        result = result + p
    return result


def _bound(b: Bound | Poly | int) -> Bound:
    if isinstance(b, int):
        return Bound(Poly.number(b))
    return Bound(b) if isinstance(b, Poly) else b
