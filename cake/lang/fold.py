"""Compile-time arithmetic: what an expression over numbers is worth before there is a program."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

MAX_BITS = 1024
"""Of a compile-time int: beyond every use, and small enough that no file fills the memory."""


def cdiv(a: int, b: int) -> int:
    """Ceiling division."""
    return -(-a // b)


def log2_exact(n: int) -> int:
    """log2 of a power of two (ValueError otherwise)."""
    if n <= 0 or n & (n - 1):
        raise ValueError(f"{n} is not a power of two")
    return n.bit_length() - 1


def _numbers(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``apply`` for numbers only: Python would also repeat, join and format texts and tuples."""

    def checked(a: object, b: object) -> Any:
        for value in (a, b):
            if not isinstance(value, int | float):
                raise TypeError(f"it takes numbers, got {value!r}")
        result = apply(a, b)
        _fits(result.bit_length() if isinstance(result, int) else 0)
        return result

    return checked


def _fits(bits: int) -> None:
    if bits > MAX_BITS:
        raise OverflowError(f"the result has more than {MAX_BITS} bits")


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1:
        _fits(a.bit_length() * b - b)  # at least so many: checked before it is computed
    return a**b


def _shift_left(a: Any, b: Any) -> Any:
    _fits(b)
    return a << b


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": _numbers(operator.add),
    "sub": _numbers(operator.sub),
    "mul": _numbers(operator.mul),
    "div": _numbers(operator.truediv),
    "floordiv": _numbers(operator.floordiv),
    "mod": _numbers(operator.mod),
    "pow": _numbers(_power),
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and_": lambda a, b: a and b,
    "or_": lambda a, b: a or b,
    "not_": operator.not_,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": _numbers(_shift_left),
    "shr": operator.rshift,
    "min": min,
    "max": max,
    "abs": abs,
}
"""Primitives that fold when every operand is known at compile time."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cdiv": cdiv,
    "len": len,
    "log2_exact": log2_exact,
    "float": float,
    "int": int,
}
"""Compile-time functions that are not primitives."""

BINARY: dict[str, str] = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "Div": "div",
    "FloorDiv": "floordiv",
    "Mod": "mod",
    "Pow": "pow",
    "BitAnd": "bitand",
    "BitOr": "bitor",
    "BitXor": "bitxor",
    "LShift": "shl",
    "RShift": "shr",
}
COMPARE: dict[str, str] = {
    "Lt": "lt",
    "LtE": "le",
    "Gt": "gt",
    "GtE": "ge",
    "Eq": "eq",
    "NotEq": "ne",
}
UNARY: dict[str, str] = {"USub": "neg", "Not": "not_"}
