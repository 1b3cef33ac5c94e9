"""Integer polynomials over named atoms: the normal form in which expressions are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Monomial = tuple[str, ...]
"""Sorted atom keys, one for each factor; () is the constant."""


@dataclass(frozen=True, slots=True)
class Poly:
    """``sum(coefficient * product(atoms))``; terms are sorted and have no zero coefficients."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        return Poly(tuple(sorted((m, c) for m, c in terms.items() if c)))

    @staticmethod
    def number(value: int) -> Poly:
        return Poly((((), value),) if value else ())

    @staticmethod
    def atom(key: str) -> Poly:
        return Poly((((key,), 1),))

    def __add__(self, other: Poly | int) -> Poly:
        other = _poly(other)
        terms = dict(self.terms)
        for m, c in other.terms:
            terms[m] = terms.get(m, 0) + c
        return Poly.of(terms)

    def __neg__(self) -> Poly:
        return Poly(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: Poly | int) -> Poly:
        return self + -_poly(other)

    def __mul__(self, other: Poly | int) -> Poly:
        other = _poly(other)
        terms: dict[Monomial, int] = {}
        for m, c in self.terms:
            for n, d in other.terms:
                key = tuple(sorted(m + n))
                terms[key] = terms.get(key, 0) + c * d
        return Poly.of(terms)

    def __rsub__(self, other: int) -> Poly:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def constant(self) -> int | None:
        """The value if the polynomial is a number."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def atoms(self) -> frozenset[str]:
        return frozenset(a for m, _ in self.terms for a in m)

    @property
    def degree(self) -> int:
        return max((len(m) for m, _ in self.terms), default=0)

    def split(self, key: str) -> tuple[Poly, Poly] | None:
        """``(a, b)`` with ``self == a * key + b`` and no ``key`` in b; None if it is not linear."""
        a: dict[Monomial, int] = {}
        b: dict[Monomial, int] = {}
        for m, c in self.terms:
            n = m.count(key)
            if n > 1:
                return None
            if n:
                rest = list(m)
                rest.remove(key)
                a[tuple(rest)] = c
            else:
                b[m] = c
        return Poly.of(a), Poly.of(b)

    def replace(self, values: Mapping[str, Poly]) -> Poly:
        """Polynomials put in place of atoms."""
        if self.atoms.isdisjoint(values):
            return self
        total = Poly(())
        for m, c in self.terms:
            product = Poly.number(c)
            for key in m:
                product = product * values.get(key, Poly.atom(key))
            total = total + product
        return total

    def divide(self, n: int) -> tuple[Poly, Poly]:
        """``(q, r)`` with ``self == n * q + r``: terms that n divides go into q whole."""
        q: dict[Monomial, int] = {}
        r: dict[Monomial, int] = {}
        for m, c in self.terms:
            if m:
                (q if c % n == 0 else r)[m] = c // n if c % n == 0 else c
            else:
                q[m], r[m] = c // n, c % n
        return Poly.of(q), Poly.of(r)

    def modulo(self, n: int) -> Poly:
        """The congruent polynomial with coefficients in [0, n)."""
        return Poly.of({m: c % n for m, c in self.terms})

    def __str__(self) -> str:
        return " + ".join(self._parts()).replace("+ -", "- ") or "0"

    def _parts(self) -> Iterator[str]:
        for m, c in sorted(self.terms, key=lambda t: (not t[0], t)):
            factors = [*([] if m and c == 1 else [str(c)]), *m]
            yield "*".join(factors) if not (m and c == -1) else "-" + "*".join(m)


ZERO = Poly(())


def _poly(x: Poly | int) -> Poly:
    return Poly.number(x) if isinstance(x, int) else x
