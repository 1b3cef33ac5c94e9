"""C types and PTX spellings of element types that live in registers of their own."""

from __future__ import annotations

from cake.ir.dtypes import BOOL, F32, I32, I64, TF32, U32, DType

C_TYPE = {
    F32: "float",
    TF32: "float",
    I32: "int",
    U32: "unsigned",
    I64: "long long",
    BOOL: "bool",
}
"""C type of a scalar, or of a word of a register array."""

CONSTRAINT = {F32: "f", TF32: "f", I32: "r", U32: "r", I64: "l"}
"""Inline-assembly constraint of a register operand."""

PTX_TYPE = {F32: "f32", I32: "s32", U32: "u32", I64: "s64"}
"""PTX type suffix."""


def per_word(dtype: DType) -> int:
    """Elements that share a 32-bit word of a register array: 2 of 16 bits, 4 of 8 bits."""
    return 1 if dtype in C_TYPE else 32 // dtype.bits
