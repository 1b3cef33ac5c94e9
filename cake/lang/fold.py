"""Compile-time arithmetic: what an expression over numbers is worth before there is a program."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def cdiv(a: int, b: int) -> int:
    """Ceiling division."""
    return -(-a // b)


def log2_exact(n: int) -> int:
    """log2 of a power of two (ValueError otherwise)."""
    if n <= 0 or n & (n - 1):
        raise ValueError(f"{n} is not a power of two")
    return n.bit_length() - 1


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
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
    "shl": operator.lshift,
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
