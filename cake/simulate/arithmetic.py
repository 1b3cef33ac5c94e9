"""What numbers are in a simulation: floats of the element types, or elements of a prime field.

In *ring* arithmetic every float is an element of the integers modulo a prime, kept as a float that
holds it exactly. Sums and products are exact, so that their order does not matter: two runs or two
schedules that compute the same polynomial of the inputs agree bit by bit, and where they do not,
the algebra is wrong (a term twice or not at all, another element's term), not the rounding.

A finite float is a whole number times a power of two, hence an element of the field, and sums and
products of floats without rounding correspond to those of the field. Division multiplies by the
inverse. Functions without an exact meaning (exp2, rsqrt, abs, floor) hash their argument: equal
arguments agree, an identity such as exp2(a + b) = exp2(a) exp2(b) does not hold. Floats are
compared as the numbers 0 ... modulus - 1. Infinities and NaN stay what they are, so that masks
work; casts between floats change nothing; integers are integers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from cake.ir.dtypes import DTYPES, E4M3, E5M2, DType, numpy_dtype
from cake.ir.nodes import Call, Expr, walk_exprs, walk_stmts
from cake.ir.program import Program, Smem, Tmem
from cake.ir.types import element_dtype

ArithmeticName = Literal["float", "ring"]

MODULUS = 251
"""All smaller numbers are exact in bf16 and wider types, and f32 holds products of two exactly."""
NARROW = {E4M3: 13, E5M2: 7}
"""The same for the types of 8 bits, which hold whole numbers up to 16 and 8."""
EXACT = frozenset({"add", "sub", "mul", "neg", "fma", "select", "min", "max"})
"""Elementwise primitives that the ring computes as they are: what they give is reduced."""
DIGITS = 53
"""Of a float64."""


class Floats:
    """The arithmetic of the element types."""

    modulus: int | None = None

    def function(self, name: str, numpy: Callable[..., Any]) -> Callable[..., Any]:
        """What an elementwise primitive computes, given its numpy function."""
        return numpy

    def exact(self, value: Any) -> Any:
        """An exact sum in float64, before it is rounded to its type."""
        return value

    def settle(self, value: Any) -> Any:
        """A result or a constant, as this arithmetic represents it."""
        return value

    def result(self, call: Call, value: Any, operand: Callable[[Expr], Any]) -> Any:
        """The result of a primitive, given that of its meaning and how to evaluate an operand."""
        return value


class Ring(Floats):
    """The integers modulo a prime."""

    def __init__(self, modulus: int) -> None:
        self.modulus: int = modulus
        # Powers of two repeat with a period that divides modulus - 1.
        self._powers = np.array([pow(2, i, modulus) for i in range(modulus - 1)], np.int64)
        inverses = [pow(i, -1, modulus) for i in range(1, modulus)]
        self._inverses = np.array([0, *inverses], np.int64)

    def function(self, name: str, numpy: Callable[..., Any]) -> Callable[..., Any]:
        if name == "div":
            return self._divide
        if name in EXACT:
            return numpy

        def run(*values: Any) -> Any:
            native = np.asarray(numpy(*values))
            if not _is_float(native.dtype):
                return native
            hashed = self.inverse(values[0]) if name == "rcp" else self._hash(name, *values)
            finite = np.logical_and.reduce([np.isfinite(v) for v in values])
            return np.where(finite, hashed, native)

        return run

    def exact(self, value: Any) -> Any:
        """The residues of finite float64 numbers; others stay."""
        value = np.asarray(value, np.float64)
        finite = np.isfinite(value)
        numbers = np.where(finite, value, 0.0)
        whole = np.rint(numbers)
        if np.array_equal(whole, numbers) and (np.abs(numbers) < 2.0**DIGITS).all():
            found = np.mod(numbers, self.modulus)
        else:
            fraction, exponent = np.frexp(numbers)
            digits = np.ldexp(fraction, DIGITS).astype(np.int64)
            power = self._powers[np.mod(exponent.astype(np.int64) - DIGITS, self.modulus - 1)]
            found = (np.mod(digits, self.modulus) * power % self.modulus).astype(np.float64)
        return np.where(finite, found, value)

    def settle(self, value: Any) -> Any:
        """In place where that is possible: registers are told apart by their arrays."""
        if isinstance(value, tuple):
            return tuple(self.settle(v) for v in value)
        dtype = getattr(value, "dtype", None)
        if dtype is None or not _is_float(dtype):
            return value
        found = self.exact(value).astype(dtype)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = found
            return value
        return found[()]

    def result(self, call: Call, value: Any, operand: Callable[[Expr], Any]) -> Any:
        if call.op == "cast" and call.args[0] is not None:
            source = element_dtype(call.args[0].type)
            to = element_dtype(call.type)
            if source is not None and source.is_int and to is not None and to.is_float:
                # The residue of the integer, not of what rounding makes of it.
                number = np.asarray(operand(call.args[0])).astype(np.int64)
                value = np.mod(number, self.modulus).astype(numpy_dtype(to))
        return self.settle(value)

    def inverse(self, value: Any) -> Any:
        """Of each residue; 0, which has none, gives a number of its own."""
        number = np.mod(np.asarray(self.exact(value), np.float64), self.modulus)
        number = np.where(np.isfinite(number), number, 0).astype(np.int64)
        return np.where(number == 0, self._hash("rcp", number), self._inverses[number])

    def _divide(self, a: Any, b: Any) -> Any:
        with np.errstate(all="ignore"):
            native = np.divide(a, b)
        finite = np.isfinite(a) & np.isfinite(b)
        return np.where(finite, self.exact(np.asarray(a, np.float64) * self.inverse(b)), native)

    def _hash(self, name: str, *values: Any) -> Any:
        """A residue for each tuple of residues; the name of the function tells functions apart."""
        mixed: Any = np.uint32(zlib.crc32(name.encode()))
        for value in values:
            number = np.asarray(self.exact(value))
            bits = np.where(np.isfinite(number), number, 0).astype(np.uint32)
            with np.errstate(over="ignore"):
                mixed = (mixed ^ bits) * np.uint32(0x9E3779B1)
                mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x85EBCA6B)
        return (mixed ^ (mixed >> np.uint32(13))) % np.uint32(self.modulus)


FLOATS = Floats()


def arithmetic_of(name: ArithmeticName, programs: Iterable[Program]) -> Floats:
    """The arithmetic for programs that share their tensors.

    The modulus of a ring is the largest prime whose residues all float types of the programs hold.
    """
    if name == "float":
        return FLOATS
    types = {dtype for program in programs for dtype in _types(program)}
    return _ring(min((NARROW.get(dtype, MODULUS) for dtype in types), default=MODULUS))


def residues(array: Any, modulus: int) -> Any:
    """The elements of the ring of that modulus that the floats of an array stand for, as int64.

    ``array`` is finite, of any shape and float type.
    """
    return _ring(modulus).exact(np.asarray(array).astype(np.float64)).astype(np.int64)


@lru_cache
def _ring(modulus: int) -> Ring:
    return Ring(modulus)


def _types(program: Program) -> Iterator[DType]:
    """Element types of a program's memory and values."""
    yield from (t.dtype for t in program.tensors)
    yield from (r.dtype for r in program.resources if isinstance(r, Smem | Tmem))
    for role in program.roles:
        for s in walk_stmts(role.body):
            for e in walk_exprs(s):
                dtype = element_dtype(e.type)
                if dtype is not None:
                    yield dtype


@lru_cache
def _floats() -> frozenset[Any]:
    return frozenset(numpy_dtype(d) for d in DTYPES.values() if d.is_float)


def _is_float(dtype: Any) -> bool:
    return dtype in _floats()
