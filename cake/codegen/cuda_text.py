"""Pieces of C++: numbers, types, and sums with their constants folded.

A C integer under construction is a :data:`CInt`: a Python int where it is known, else C text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.types import Scalar, Slot, Type, is_array, registers

CInt: TypeAlias = int | str

_NUMBER = re.compile(r"\d+")
_ATOM = re.compile(r"[\w.]+")
_TRAILING_ZEROS = re.compile(r"\.?0*p")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

_SCALARS = {
    "f32": "float",
    "tf32": "float",
    "f64": "double",
    "i32": "int",
    "u32": "unsigned",
    "i64": "long long",
    "bool": "bool",
}
_BY_BITS = {8: "unsigned char", 16: "unsigned short"}


def c_type(dtype: DType) -> str:
    """C type of one element; 16- and 8-bit types are their bits."""
    return _SCALARS.get(dtype.name) or _BY_BITS[dtype.bits]


def memory_type(dtype: DType) -> str:
    """C type of an element in memory."""
    return _BY_BITS[8] if dtype.name == "bool" else c_type(dtype)


def packing(dtype: DType) -> int:
    """Elements that share a word of a register array."""
    return 1 if dtype.name in _SCALARS else 32 // dtype.bits


def word_type(dtype: DType) -> str:
    """C type of the words of a register array."""
    return "unsigned" if packing(dtype) > 1 else c_type(dtype)


def words(t: Type, dtype: DType) -> int:
    """Length of the C array that holds a value of type ``t``."""
    return -(-registers(t) // packing(dtype))


def declaration(t: Type, name: str) -> str:
    """Declaration of a variable for a value of type ``t``, without the semicolon."""
    if isinstance(t, Slot):
        return f"int {name}"
    dtype = getattr(t, "dtype", None)
    if not isinstance(dtype, DType) or not (isinstance(t, Scalar) or is_array(t)):
        raise TypeError(f"{t} is not held in a variable")
    if isinstance(t, Scalar):
        return f"{c_type(dtype)} {name}"
    return f"{word_type(dtype)} {name}[{words(t, dtype)}]"


# -- numbers ---------------------------------------------------------------------------------------


def literal(value: int | float | bool, dtype: DType) -> str:
    """C expression with exactly this value; an atom, or parenthesised."""
    if dtype.name == "bool":
        return "true" if value else "false"
    if dtype.is_int:
        return _integer(int(value), dtype)
    if dtype.bits < 32:
        bits = int(np.asarray(value).astype(numpy_dtype(dtype)).view(f"u{dtype.bytes}"))
        return f"(({c_type(dtype)}){bits:#x})"
    return _float(float(value), dtype)


def _integer(value: int, dtype: DType) -> str:
    suffix = {"u32": "u", "i64": "ll"}.get(dtype.name, "")
    if dtype.kind == "int" and value == -(2 ** (dtype.bits - 1)):
        return f"(-{-value - 1}{suffix} - 1)"
    return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"


def _float(value: float, dtype: DType) -> str:
    single = dtype.bits == 32
    if not math.isfinite(value):
        bits = np.asarray(value, np.float32 if single else np.float64)
        if single:
            return f"__int_as_float({int(bits.view(np.uint32)):#010x})"
        return f"__longlong_as_double({int(bits.view(np.uint64)):#018x}ll)"
    value = float(np.float32(value)) if single else value
    suffix = "f" if single else ""
    short = repr(value)
    # A decimal that is exactly the number reads well; any other is left to a hexadecimal float.
    exact = "e" not in short and Decimal(short) == Decimal(value)
    text = short if exact else _TRAILING_ZEROS.sub("p", value.hex())
    return f"({text}{suffix})" if text.startswith("-") else f"{text}{suffix}"


# -- expressions -----------------------------------------------------------------------------------


def known(text: str) -> CInt:
    """A C integer given as text: a number if it is one."""
    return int(text) if _NUMBER.fullmatch(text) else text


def closes_at(text: str, start: int) -> int:
    """Index of the bracket that closes the one at ``start``; -1 if there is none."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return -1


def paren(text: str) -> str:
    """``text`` as an operand: in parentheses unless it binds tightest already."""
    if _ATOM.fullmatch(text):
        return text
    opening = _IDENTIFIER.match(text)
    start = opening.end() if opening else 0
    if start < len(text) and text[start] in "([" and closes_at(text, start) == len(text) - 1:
        return text
    return f"({text})"


def bare(text: str) -> str:
    """``text`` without parentheses round the whole of it."""
    while text.startswith("(") and closes_at(text, 0) == len(text) - 1:
        text = text[1:-1]
    return text


def tidy(text: str) -> str:
    """A line without parentheses round an assigned value, an argument, or other parentheses."""
    if '"' in text:
        return text
    left, equals, value = text.partition(" = ")
    if equals and value.endswith(";") and ";" not in value[:-1]:
        text = f"{left} = {bare(value[:-1])};"
    i = 1
    while i < len(text):
        before = text[i - 1] if text[i - 1] != " " else text[max(i - 2, 0)]
        if text[i] == "(" and before in "(,":
            end = closes_at(text, i)
            if 0 < end < len(text) - 1 and text[end + 1] in "),":
                text = text[:i] + text[i + 1 : end] + text[end + 1 :]
                continue
        i += 1
    return text


def total(terms: Iterable[CInt], suffix: str = "") -> CInt:
    """Sum of C integers; constants are folded into one (with ``suffix``) at the end."""
    constant = 0
    texts = []
    for term in terms:
        if isinstance(term, int):
            constant += term
        else:
            texts.append(term)
    if not texts:
        return constant
    if constant:
        texts.append(f"{constant}{suffix}" if constant > 0 else f"({constant}{suffix})")
    return " + ".join(texts)


def scaled(term: CInt, factor: int, suffix: str = "") -> CInt:
    """``term * factor``."""
    if isinstance(term, int):
        return term * factor
    if factor == 0:
        return 0
    return term if factor == 1 else f"{paren(term)} * {factor}{suffix}"


def identifiers(text: str) -> set[str]:
    """Every identifier in a piece of C++."""
    return set(_IDENTIFIER.findall(text))
