"""Pieces of C++: exact numbers, folded sums, names that C++ admits."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.codegen.cuda_names import Names
from cake.codegen.cuda_text import (
    bare,
    declaration,
    literal,
    paren,
    scaled,
    tidy,
    total,
)
from cake.ir.dtypes import BF16, BOOL, E4M3, F16, F32, F64, I32, I64, U32, DType
from cake.ir.types import Fragment, RegArray, Scalar


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (2.0, F32, "2.0f"),
        (-0.5, F32, "(-0.5f)"),
        (0.1, F32, "0x1.99999ap-4f"),
        (1e30, F32, "0x1.93e594p+99f"),
        (-0.0, F32, "(-0.0f)"),
        (math.inf, F32, "__int_as_float(0x7f800000)"),
        (-math.inf, F32, "__int_as_float(0xff800000)"),
        (math.nan, F32, "__int_as_float(0x7fc00000)"),
        (0.1, F64, "0x1.999999999999ap-4"),
        (1.0, BF16, "((unsigned short)0x3f80)"),
        (1.0, F16, "((unsigned short)0x3c00)"),
        (1.0, E4M3, "((unsigned char)0x38)"),
        (7, I32, "7"),
        (-(2**31), I32, "(-2147483647 - 1)"),
        (5, U32, "5u"),
        (-3, I64, "(-3ll)"),
        (True, BOOL, "true"),
    ],
)
def test_literals(value: float, dtype: DType, text: str) -> None:
    assert literal(value, dtype) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_literals_are_exact(value: float) -> None:
    text = bare(literal(value, F32)).removesuffix("f")
    found = float.fromhex(text) if "0x" in text else float(text)
    assert struct.pack("f", found) == struct.pack("f", value)
    if "0x" not in text:  # a decimal must be the number itself, however the compiler rounds
        assert np.float64(text) == np.float64(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "x"),
        ("a[i + 1]", "a[i + 1]"),
        ("f(x, y)", "f(x, y)"),
        ("a + b", "(a + b)"),
        ("f(x) + g(y)", "(f(x) + g(y))"),
        ("(a) + (b)", "((a) + (b))"),
        ("(unsigned)x", "((unsigned)x)"),
    ],
)
def test_operands_are_parenthesised_where_they_need_it(text: str, expected: str) -> None:
    assert paren(text) == expected


def test_sums_fold_their_constants() -> None:
    assert total([3, 4]) == 7
    assert total([3, "x", 4], "u") == "x + 7u"
    assert total(["x", -2]) == "x + (-2)"
    assert scaled("a + b", 4) == "(a + b) * 4"
    assert scaled("a", 1) == "a"
    assert scaled(5, 4) == 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f((a + b), (c));", "f(a + b, c);"),
        ("x = ((a + b));", "x = a + b;"),
        ("x = (a) + (b);", "x = (a) + (b);"),
        ("(int)((k * 64))", "(int)(k * 64)"),
        ("if ((a) && (b)) {", "if ((a) && (b)) {"),
        ("if (++s == 3) { s = 0; p = (p ^ 1); }", "if (++s == 3) { s = 0; p = (p ^ 1); }"),
        ('asm("((x))");', 'asm("((x))");'),
    ],
)
def test_lines_lose_idle_parentheses(text: str, expected: str) -> None:
    assert tidy(text) == expected


def test_declarations_pack_narrow_elements() -> None:
    assert declaration(Scalar(BF16), "x") == "unsigned short x"
    assert declaration(RegArray(BF16, 6), "x") == "unsigned x[3]"
    assert declaration(RegArray(E4M3, 6), "x") == "unsigned x[2]"
    assert declaration(RegArray(BOOL, 6), "x") == "bool x[6]"
    assert declaration(Fragment(F32, (64, 128), "acc", 4), "x") == "float x[64]"


def test_names_stay_readable_and_apart() -> None:
    names = Names(taken={"mbar_wait"})
    assert names.of("acc") == "acc"
    assert names.of("acc") == "acc"
    assert names.of("register") == "register_"
    assert names.of("mbar_wait") == "mbar_wait_"
    assert names.of("__x") == "v__x"
    assert names.of("größe") == "gr_uf6_udfe"
    assert names.fresh("acc") == "acc_1"
    assert names.of("acc_1") == "acc_1_"


def test_scopes_give_names_out_again() -> None:
    names = Names()
    with names.scope():
        assert names.fresh("tile") == "tile"
        assert names.of("m") == "m"
        assert names.permanent("x_map") == "x_map"
    assert names.fresh("tile") == "tile"
    assert names.fresh("m") == "m_1"
    assert names.fresh("x_map") == "x_map_1"
    assert {"tile", "m", "x_map"} <= names.used
