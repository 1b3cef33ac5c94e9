"""cast and bitcast: typing, rounding against exact oracles, emission."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.ir.dtypes import (
    BF16,
    BOOL,
    E4M3,
    E5M2,
    F16,
    F32,
    I8,
    I32,
    I64,
    TF32,
    U8,
    U16,
    U32,
    DType,
    numpy_dtype,
)
from cake.ir.types import Fragment, RegArray, RowVector, Scalar, element_dtype, is_array
from cake.ops.cast import CONVERSIONS
from cake.targets import get
from tests.ops.fakes import FakeEmitter, FakeTyping, FakeUnit, Refused, compiled, make, number, var

FLOATS = st.floats(width=32)
HUGE = {E4M3: 464.0, E5M2: 61440.0}
"""Halfway between the largest finite value and what would follow it."""


def convert(x: Any, source: DType, to: DType, op: str = "cast", **modes: Any) -> Any:
    call = make(op, var("x", Scalar(source, True)), to, **modes)
    assert call.type == Scalar(to, True)
    return FakeUnit(values={"x": np.asarray(x, numpy_dtype(source))}).run(call)


# -- typing ----------------------------------------------------------------------------------------


def test_the_shape_stays() -> None:
    acc = var("acc", Fragment(F32, (64, 16), "acc", 4))
    assert make("cast", acc, BF16).type == Fragment(BF16, (64, 16), "acc", 4)
    rows = var("r", RowVector(F32, 64, 4, True))
    assert make("cast", rows, I32).type == RowVector(I32, 64, 4, True)


def test_compile_time_numbers_are_typed_first() -> None:
    call = make("cast", 3, F32)
    assert (call.type, call.args[0].type) == (Scalar(F32), Scalar(I32))  # type: ignore[union-attr]


def test_an_i32_scalar_widens_to_i64_in_arithmetic() -> None:
    call = make("add", var("i", Scalar(I32, True)), var("w", Scalar(I64)))
    assert call.type == Scalar(I64, True)
    assert call.args[0].op == "cast"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("x", "to", "target", "message"),
    [
        (Scalar(BF16), F16, "sm_90a", "bf16 does not convert to f16, only to f32"),
        (Scalar(BF16), BF16, "sm_90a", "x is bf16 already"),
        (Scalar(I8), I64, "sm_90a", "i8 does not convert to i64, only to i32, u32, f32"),
        (RegArray(I32, 6), I8, "sm_90a", "6 registers do not fill words of 4 i8 elements"),
        (Scalar(F32), "bf16", "sm_90a", "dtype must be an element type, got 'bf16'"),
        (Scalar(F32), E4M3, "sm_80", "sm_80 has no instruction that converts f32 to e4m3"),
        (RegArray(F32, 3), BF16, "sm_90a", "3 registers do not fill words of 2 bf16 elements"),
        (RowVector(F32, 64, 4), E4M3, "sm_90a", "2 registers do not fill words of 4 e4m3"),
    ],
)
def test_impossible_casts_are_refused(x: Any, to: Any, target: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        make("cast", var("x", x), to, typing=FakeTyping(target=get(target)))


@pytest.mark.parametrize(
    ("source", "to", "through"), [(BF16, F16, F32), (I8, I64, I32), (E4M3, I8, F32)]
)
def test_a_detour_is_named(source: DType, to: DType, through: DType) -> None:
    with pytest.raises(Refused) as caught:
        make("cast", var("x", Scalar(source)), to)
    assert caught.value.helps == (f"convert through {through}: cast(cast(x, {through}), {to})",)


@pytest.mark.parametrize(
    ("source", "to", "round", "saturate", "message"),
    [
        (F32, BF16, "rm", False, "f32 to bf16: round is one of rn, rz, got 'rm'"),
        (I32, I8, "rn", False, "i32 to i8: nothing is rounded, got 'rn'"),
        (F32, I8, None, True, "f32 to i8 has no form with saturate=True"),
        (F32, F16, None, 1, "saturate must be True or False, got 1"),
    ],
)
def test_modes_that_do_not_exist_are_refused(
    source: DType, to: DType, round: str | None, saturate: Any, message: str
) -> None:
    with pytest.raises(Refused, match=message):
        make("cast", var("x", Scalar(source)), to, round, saturate)


@pytest.mark.parametrize(
    ("x", "to", "message"),
    [
        (Scalar(BF16), I32, "x must hold f32, i32 or u32, got bf16"),
        (Scalar(F32), F32, "dtype must be one of i32, u32, got f32"),
        (Scalar(F32), I64, "dtype must be one of i32, u32, got i64"),
    ],
)
def test_impossible_bitcasts_are_refused(x: Scalar, to: DType, message: str) -> None:
    with pytest.raises(Refused, match=message):
        make("bitcast", var("x", x), to)


# -- meaning ---------------------------------------------------------------------------------------


def _nearest_even(x: float, dtype: DType) -> float:
    """The nearest value of a float format, by search over all of its bit patterns."""
    bits = np.arange(2**dtype.bits, dtype=f"u{dtype.bytes}").view(numpy_dtype(dtype))
    values = bits.astype(np.float64)
    finite = np.isfinite(values)
    patterns = np.nonzero(finite)[0]
    distance = np.abs(values[finite] - x)
    nearest = patterns[distance == distance.min()]
    even = [p for p in nearest if p % 2 == 0]
    return float(values[even[0] if even else nearest[0]])


@settings(deadline=None, max_examples=200)
@given(x=FLOATS, dtype=st.sampled_from([E4M3, E5M2]))
def test_fp8_rounds_to_nearest_even_and_clamps(x: float, dtype: DType) -> None:
    got = float(convert([x], F32, dtype)[0])
    if math.isnan(x):
        assert math.isnan(got)
    else:
        largest = 448.0 if dtype == E4M3 else 57344.0
        assert got == _nearest_even(min(max(x, -largest), largest), dtype)


def test_fp8_midpoints_go_to_even() -> None:
    for dtype in (E4M3, E5M2):
        values = np.sort(np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype)).astype(np.float64))
        values = values[np.isfinite(values)]
        middle = ((values[1:] + values[:-1]) / 2).astype(np.float32)
        expected = [_nearest_even(float(m), dtype) for m in middle]
        got = convert(middle, F32, dtype).astype(np.float64)
        np.testing.assert_array_equal(got, expected)


@settings(deadline=None)
@given(x=FLOATS, dtype=st.sampled_from([BF16, F16]))
def test_16_bit_floats_round_to_nearest_even(x: float, dtype: DType) -> None:
    got = float(convert([x], F32, dtype)[0])
    if math.isnan(x):
        assert math.isnan(got)
        return
    digits, smallest, top = (8, -133, 2.0**128) if dtype == BF16 else (11, -24, 2.0**16)
    if math.isinf(x):
        assert got == x
        return
    quantum = 2.0 ** max(math.frexp(x)[1] - digits, smallest)
    exact = round(x / quantum) * quantum
    assert got == (exact if abs(exact) < top else math.copysign(math.inf, x))


@settings(deadline=None)
@given(x=FLOATS)
def test_tf32_rounds_ties_away_from_zero(x: float) -> None:
    got = float(convert([x], F32, TF32)[0])
    if not math.isfinite(x):
        np.testing.assert_equal(got, x)
        return
    quantum = 2.0 ** max(math.frexp(x)[1] - 11, -136)
    exact = math.copysign(math.floor(abs(x) / quantum + 0.5) * quantum, x)
    assert got == (exact if abs(exact) < 2.0**128 else math.copysign(math.inf, x))


@settings(deadline=None)
@given(x=FLOATS, dtype=st.sampled_from([I32, U32, I64]))
def test_floats_truncate_and_clamp_to_integers(x: float, dtype: DType) -> None:
    low, high = np.iinfo(numpy_dtype(dtype)).min, np.iinfo(numpy_dtype(dtype)).max
    got = int(convert([x], F32, dtype)[0])
    if math.isnan(x):
        assert got == (low if dtype == I64 else 0)
    else:
        whole = math.trunc(x) if math.isfinite(x) else (high if x > 0 else low)
        assert got == min(max(whole, low), high)


@settings(deadline=None)
@given(x=st.integers(-(2**63), 2**63 - 1))
def test_integers_round_to_nearest_even_floats(x: int) -> None:
    quantum = 2 ** max(x.bit_length() - 24, 0) if x >= 0 else 2 ** max((-x).bit_length() - 24, 0)
    got = convert([x], I64, F32)[0]
    low, rest = divmod(x, quantum)
    up = rest * 2 > quantum or (rest * 2 == quantum and low % 2)
    assert float(got) == float((low + up) * quantum)


@settings(deadline=None)
@given(x=FLOATS, dtype=st.sampled_from([BF16, F16]))
def test_rz_never_grows_and_saturation_never_overflows(x: float, dtype: DType) -> None:
    largest = 65504.0 if dtype == F16 else float(np.float32(2.0**128 - 2.0**120))
    rz, rn, sat = (
        float(convert([x], F32, dtype, **modes)[0])
        for modes in ({"round": "rz"}, {}, {"saturate": True})
    )
    if math.isnan(x):
        assert all(map(math.isnan, (rz, rn, sat)))
        return
    assert sat == min(max(rn, -largest), largest)
    if math.isinf(x):
        assert rz == x
        return
    # The neighbour of x toward zero: no value of the format lies between the two.
    bits = np.asarray(rz).astype(numpy_dtype(dtype)).view(np.uint16)
    above = float(np.uint16(bits + 1).view(numpy_dtype(dtype)))
    assert abs(rz) <= abs(x)
    assert abs(x) < abs(above)
    assert math.copysign(1.0, rz) == math.copysign(1.0, x)


@pytest.mark.parametrize(
    ("round", "expected"),
    [
        ("rn", [0, 2, 2, -2, -128, 127, 0]),
        ("rz", [0, 1, 2, -1, -128, 127, 0]),
        ("rm", [0, 1, 2, -2, -128, 127, 0]),
        ("rp", [1, 2, 3, -1, -128, 127, 0]),
    ],
)
def test_floats_round_to_bytes(round: str, expected: list[int]) -> None:
    x = [0.5, 1.5, 2.5, -1.5, -1e9, 200.0, math.nan]
    assert convert(x, F32, I8, round=round).tolist() == expected
    assert convert(x, F32, I32, round=round).tolist()[:4] == expected[:4]
    assert convert([-3.0, 255.5, 99.0], F32, U8, round=round).tolist()[::2] == [0, 99]


def test_integers_wrap_or_clamp_to_bytes() -> None:
    x = [300, -129, 127, -1]
    assert convert(x, I32, I8).tolist() == [44, 127, 127, -1]
    assert convert(x, I32, I8, saturate=True).tolist() == [127, -128, 127, -1]
    assert convert(x, I32, U8, saturate=True).tolist() == [255, 0, 127, 0]
    assert convert([2**32 - 1], U32, I8, saturate=True).tolist() == [127]
    assert convert([-5, 7], I8, F32).tolist() == [-5.0, 7.0]
    assert convert([-1], I8, U32).tolist() == [2**32 - 1]
    assert convert([70000], I32, U16).tolist() == [4464]


@settings(deadline=None)
@given(x=st.integers(-(2**63), 2**63 - 1))
def test_integers_to_floats_toward_zero(x: int) -> None:
    got = int(convert([x], I64, F32, round="rz")[0])
    quantum = 2 ** max(abs(x).bit_length() - 24, 0)
    assert got == (abs(x) // quantum * quantum if x >= 0 else -(abs(x) // quantum * quantum))


def test_integers_wrap_and_bools_count() -> None:
    assert convert([2**32 + 5, -1], I64, I32).tolist() == [5, -1]
    assert convert([-1], I32, U32).tolist() == [2**32 - 1]
    assert convert([-1], I32, I64).tolist() == [-1]
    assert convert([2**31], U32, I64).tolist() == [2**31]
    assert convert([True, False], BOOL, I32).tolist() == [1, 0]


def test_wider_floats_are_exact() -> None:
    for dtype in (BF16, F16, E4M3, E5M2):
        x = np.arange(2**dtype.bits, dtype=f"u{dtype.bytes}").view(numpy_dtype(dtype))
        with np.errstate(invalid="ignore"):
            exact = x.astype(np.float64)
        np.testing.assert_array_equal(convert(x, dtype, F32), exact)


def test_bitcast_keeps_the_bits() -> None:
    x = np.array([1.0, -0.0, np.inf], np.float32)
    assert convert(x, F32, I32, "bitcast").tolist() == [0x3F800000, -(2**31), 0x7F800000]
    assert convert(convert(x, F32, U32, "bitcast"), U32, F32, "bitcast").tolist() == x.tolist()


# -- emission --------------------------------------------------------------------------------------


def test_every_conversion_compiles_for_scalars_and_arrays() -> None:
    cg = FakeEmitter()
    every = [(a, b, mode) for (a, b), row in CONVERSIONS.items() for mode in row]
    for k, (source, to, mode) in enumerate(every):
        for t in (Scalar(source, True), RegArray(source, 8)):
            call = make("cast", var(f"v{k}{is_array(t):d}", t), to, mode.round, mode.saturate)
            name = cg.emit(call)
            assert name is not None
            if is_array(t):
                cg.keep(name, call.type)
            else:
                cg.line(f"*({cg.words(call.type)[0]}*)(out++) = {name};")
    ptx = cg.build().ptx or ""
    for instruction in (
        "cvt.rn.bf16x2.f32",
        "cvt.rz.satfinite.f16x2.f32",
        "cvt.rn.satfinite.e4m3x2.f32",
        "cvt.rna.tf32.f32",
        "cvt.pack.sat.s8.s32.b32",
        "cvt.sat.u8.s32",
    ):
        assert instruction in ptx


def test_casts_of_16_bits_compile_for_sm_80() -> None:
    typing = FakeTyping(target=get("sm_80"))
    for to in (BF16, F16):
        acc = var("acc", Fragment(F32, (64, 16), "acc", 4))
        text, _ = compiled(make("cast", acc, to, typing=typing), target="sm_80")
        assert f"pack_{to}(acc[2 * i], acc[2 * i + 1])" in text


def test_a_cast_to_f32_fuses_into_its_consumer() -> None:
    half = var("h", Fragment(BF16, (64, 16), "acc", 4))
    text, built = compiled(make("mul", make("cast", half, F32), 2.0))
    assert text.count("#pragma unroll") == 1
    assert "<< 16" in text
    facts = built.facts.entry("kernel")
    assert facts is not None
    assert facts.stack_bytes == 0


def test_a_bitcast_is_an_intrinsic() -> None:
    text, _ = compiled(make("bitcast", make("add", var("x", Scalar(F32, True)), 1.0), I32))
    assert "__float_as_int((x + " in text


def test_cost_of_a_packed_cast_is_half_an_operation_an_element() -> None:
    from cake.ops.base import lookup

    primitive = lookup("cast")
    assert primitive is not None
    assert primitive.cost is not None
    call = make("cast", var("acc", Fragment(F32, (64, 16), "acc", 4)), BF16)
    assert element_dtype(call.type) == BF16
    assert primitive.cost(call, 128).alu == 512
    assert primitive.cost(make("cast", number(1.0, F32), I32), 32).sfu == 32
