"""Elementwise maths: typing, meaning against numpy and exact arithmetic, emission."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cake.ir.dtypes import BF16, BOOL, F32, I32, I64, U32, DType, numpy_dtype
from cake.ir.types import ColVector, Fragment, RegArray, RowVector, Scalar, SmemView, Type
from cake.ops import elementwise_numpy as fn
from cake.ops.base import IncompletePrimitive, Primitive, lookup, register
from cake.ops.elementwise import TABLE
from cake.ops.values import from_matrix, to_matrix
from tests.ops.fakes import (
    FakeEmitter,
    FakeUnit,
    Finding,
    Refused,
    compiled,
    make,
    number,
    var,
    view,
)

ACC = Fragment(F32, (64, 16), "acc", 4)
ROWS = RowVector(F32, 64, 4)
COLS = ColVector(F32, 16)
X = var("x", Scalar(F32, True))
J = var("j", Scalar(I32, True))
FLOATS = st.floats(width=32, allow_nan=False)


def run(op: str, *values: Any, dtype: DType = F32, types: tuple[Type, ...] | None = None) -> Any:
    """A primitive on arrays of shape (threads,)."""
    arrays = [np.asarray(v) for v in values]
    types = types or tuple(Scalar(dtype, True) for _ in values)
    operands = [var(f"v{k}", t) for k, t in enumerate(types)]
    unit = FakeUnit(threads=len(arrays[0]), values={f"v{k}": a for k, a in enumerate(arrays)})
    return unit.run(make(op, *operands))


# -- typing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((var("a", ACC), 2.0), ACC),
        ((var("a", ACC), var("b", ROWS)), ACC),
        ((var("q", COLS), var("a", ACC)), ACC),
        ((var("r", ROWS), X), ROWS),
        ((var("q", COLS), var("r", ROWS)), ACC),
        ((var("r", RegArray(F32, 5)), X), RegArray(F32, 5)),
        ((X, number(1.0, F32)), Scalar(F32, True)),
        ((number(1.0, F32), number(1.0, F32)), Scalar(F32)),
    ],
)
def test_operands_broadcast(operands: tuple[Any, Any], expected: Type) -> None:
    assert make("add", *operands).type == expected


def test_results_are_bool_for_comparisons_and_partial_rows_stay_partial() -> None:
    partial = var("p", RowVector(F32, 64, 4, True))
    assert make("lt", var("a", ACC), var("r", ROWS)).type == Fragment(BOOL, (64, 16), "acc", 4)
    assert make("mul", partial, var("r", ROWS)).type == RowVector(F32, 64, 4, True)


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        ("add", (X, J), "operands have different element types: f32, i32"),
        ("add", (X, var("h", Scalar(BF16))), "different element types: bf16, f32"),
        ("mul", (var("h", Scalar(BF16)), 2.0), "takes f32, i32, u32, i64, got bf16"),
        ("exp2", (J,), "takes f32, got i32"),
        ("div", (J, 4), "takes f32, got i32"),
        ("and_", (J, J), "takes bool, got i32"),
        ("floordiv", (X, 2.0), "takes i32, u32, i64, got f32"),
        ("floordiv", (J, 0), "division by zero"),
        ("shl", (J, 32), r"shift count of i32 must be in \[0, 32\), got 32"),
        ("add", (J, 1.5), "expected i32, got the float 1.5"),
        ("select", (J, X, X), "expected bool, got i32"),
        ("add", (var("a", ACC), var("c", ColVector(F32, 32))), "does not broadcast to fragment"),
        ("add", (var("a", ACC), var("r", RowVector(F32, 32, 4))), "does not broadcast"),
        ("add", (var("r", RegArray(F32, 4)), var("q", COLS)), "does not broadcast"),
        ("add", (var("a", ACC), var("r", RegArray(F32, 8))), "does not broadcast"),
        ("neg", (view("S", SmemView(F32, (64,), 0)),), "must be a value in registers, got smem"),
    ],
)
def test_wrong_operands_are_refused(op: str, operands: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Refused, match=message):
        make(op, *operands)


def test_the_remedy_is_named() -> None:
    with pytest.raises(Refused) as caught:
        make("add", var("h", Scalar(BF16)), var("h", Scalar(BF16)))
    assert caught.value.helps == ("16-bit and 8-bit floats are storage: cast(x, f32) first",)
    with pytest.raises(Refused) as caught:
        make("div", J, J)
    assert caught.value.helps == ("integers divide with //; or cast to f32 first",)


def test_a_primitive_without_a_facet_does_not_register() -> None:
    add = lookup("add")
    assert add is not None
    facets = {f: getattr(add, f) for f in Primitive.__slots__}
    with pytest.raises(IncompletePrimitive, match="primitive plus lacks meaning"):
        register(Primitive(**{**facets, "name": "plus", "meaning": None}))
    with pytest.raises(ValueError, match="add is registered twice"):
        register(add)


# -- meaning ---------------------------------------------------------------------------------------

_INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("dtype", [I32, U32, I64])
@settings(deadline=None)
@given(data=st.data())
def test_integers_wrap_like_registers(dtype: DType, data: st.DataObject) -> None:
    low = -(2 ** (dtype.bits - 1)) if dtype.kind == "int" else 0
    values = st.integers(low, low + 2**dtype.bits - 1)
    op = data.draw(st.sampled_from(sorted(_INTEGER)))
    a, b = data.draw(values), data.draw(values)
    if op in ("floordiv", "mod") and b == 0:
        b = 1
    got = run(op, *(np.array([v], numpy_dtype(dtype)) for v in (a, b)), dtype=dtype)
    exact = _INTEGER[op](a, b)
    assert int(got[0]) == (exact - low) % 2**dtype.bits + low
    assert got.dtype == numpy_dtype(dtype)


def _rounded(x: Fraction) -> np.float32:
    """Nearest float32, ties to even, in exact arithmetic."""
    exponent = math.frexp(float(x))[1]
    quantum = Fraction(2) ** max(exponent - 24, -149)
    value = round(x / quantum) * quantum
    return np.float32(float(value) if abs(value) < 2**128 else math.copysign(math.inf, value))


@settings(deadline=None)
@given(a=FLOATS, b=FLOATS, c=FLOATS)
@example(a=1 + 2**-12, b=1 + 2**-12, c=2.0**-80)
@example(a=1 + 2**-12, b=1 - 2**-12, c=-(2.0**-60))
@example(a=2.0**-75, b=2.0**-75, c=0.0)
@example(a=1.5 * 2.0**-75, b=2.0**-75, c=2.0**-149)
@example(a=-3.4028234663852886e38, b=2.0, c=3.4028234663852886e38)
def test_fma_rounds_once(a: float, b: float, c: float) -> None:
    got = run("fma", *(np.array([v], np.float32) for v in (a, b, c)))[0]
    if not all(map(math.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            expected = np.float32(a) * np.float32(b) + np.float32(c)
        np.testing.assert_equal(got, expected)
        return
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        assert got.view(np.uint32) == _rounded(exact).view(np.uint32)
    else:
        assert got == 0


def test_fma_differs_from_two_roundings_where_it_must() -> None:
    a = np.array([1 + 2**-12], np.float32)
    c = np.array([-1.0], np.float32)
    assert run("fma", a, a, c)[0] == np.float32(2**-11 + 2**-24)
    assert run("add", run("mul", a, a), c)[0] == np.float32(2**-11)


def test_min_and_max_follow_ptx_for_nan_and_signed_zero() -> None:
    a = np.array([np.nan, 1.0, 0.0, -0.0, 3.0], np.float32)
    b = np.array([2.0, np.nan, -0.0, 0.0, -4.0], np.float32)
    low, high = run("min", a, b), run("max", a, b)
    np.testing.assert_array_equal(low, np.array([2, 1, 0, 0, -4], np.float32))
    np.testing.assert_array_equal(high, np.array([2, 1, 0, 0, 3], np.float32))
    assert np.signbit(low[2:4]).all()
    assert not np.signbit(high[2:4]).any()


@settings(deadline=None)
@given(x=st.floats(-120, 120, width=32))
def test_approximate_functions_stay_within_the_isa_error(x: float) -> None:
    v = np.array([x], np.float32)
    assert run("exp2", v)[0] == pytest.approx(2.0**x, rel=2**-22)
    assert run("tanh", v)[0] == pytest.approx(math.tanh(x), rel=2**-11)
    if abs(x) > 2.0**-120:
        assert run("rcp", v)[0] == pytest.approx(1 / x, rel=2**-23)
        assert run("sqrt", np.abs(v))[0] == pytest.approx(abs(x) ** 0.5, rel=2**-23)
        assert run("rsqrt", np.abs(v))[0] == pytest.approx(abs(x) ** -0.5, rel=2**-22)
        assert run("log2", np.abs(v))[0] == pytest.approx(math.log2(abs(x)), rel=2**-22)
    assert run("exp", v / 2)[0] == pytest.approx(math.exp(float(v[0]) / 2), rel=2e-5)


def test_approximate_functions_at_the_edges() -> None:
    tiny = np.float32(2.0**-140)
    x = np.array([0.0, -0.0, tiny, np.inf, -np.inf, -1.0], np.float32)
    nan, inf = np.nan, np.inf
    cases = {
        "exp2": [1, 1, 1, inf, 0, 0.5],
        "log2": [-inf, -inf, -inf, inf, nan, nan],
        "rcp": [inf, -inf, inf, 0, -0.0, -1],
        "rsqrt": [inf, -inf, inf, 0, nan, nan],
        "sqrt": [0, -0.0, 0, inf, nan, nan],
        "tanh": [0, -0.0, tiny, 1, -1, np.float32(math.tanh(-1))],
    }
    for op, expected in cases.items():
        np.testing.assert_array_equal(run(op, x), np.array(expected, np.float32), err_msg=op)


def test_comparisons_and_logic() -> None:
    a, b = np.array([1, 2, np.nan], np.float32), np.array([2, 2, 0], np.float32)
    assert run("lt", a, b).tolist() == [True, False, False]
    assert run("ge", a, b).tolist() == [False, True, False]
    assert run("ne", a, b).tolist() == [True, False, True]
    p, q = np.array([True, True, False]), np.array([True, False, False])
    assert run("and_", p, q, dtype=BOOL).tolist() == [True, False, False]
    assert run("not_", q, dtype=BOOL).tolist() == [False, True, True]
    types = (Scalar(BOOL, True), Scalar(F32, True), Scalar(F32, True))
    assert run("select", p, a, b, types=types)[:2].tolist() == [1.0, 2.0]


def test_shifts_are_arithmetic_for_signed_and_logical_for_unsigned() -> None:
    signed = np.array([-16, 5], np.int32)
    assert run("shr", signed, np.array([2, 1], np.int32), dtype=I32).tolist() == [-4, 2]
    unsigned = np.array([0x80000000, 5], np.uint32)
    assert run("shr", unsigned, np.array([31, 1], np.uint32), dtype=U32).tolist() == [1, 2]
    assert run("shl", unsigned, np.array([1, 1], np.uint32), dtype=U32).tolist() == [0, 10]


@pytest.mark.parametrize(
    ("op", "b", "message"),
    [("floordiv", 0, "division by zero"), ("mod", 0, "by zero"), ("shl", 32, "shift count")],
)
def test_undefined_results_are_findings_in_active_threads_only(
    op: str, b: int, message: str
) -> None:
    call = make(op, J, var("k", Scalar(I32, True)))
    values = {"j": np.array([7, 7], np.int32), "k": np.array([1, b], np.int32)}
    with pytest.raises(Finding, match=message) as caught:
        FakeUnit(threads=2, values=values).run(call)
    assert (caught.value.code, caught.value.facts["threads"]) == ("CK590", 1)
    unit = FakeUnit(threads=2, values=values, active=np.array([True, False]))
    assert unit.run(call)[0] == 7 // 1 if op == "floordiv" else True


def test_vectors_broadcast_along_their_axis() -> None:
    rng = np.random.default_rng(1)
    acc = rng.standard_normal((64, 16)).astype(np.float32)
    r, c = rng.standard_normal(64).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    tile = np.broadcast_to
    rows = from_matrix(ACC, tile(r[:, None], (64, 16)))[:, [0, 2]]
    cols = from_matrix(ACC, tile(c, (64, 16)))[:, [0, 1, 4, 5]]
    unit = FakeUnit(values={"a": from_matrix(ACC, acc), "r": rows, "q": cols})
    twice = make("mul", var("a", ACC), var("r", ROWS))
    got = unit.run(make("sub", var("q", COLS), twice))
    np.testing.assert_array_equal(to_matrix(ACC, got), c - acc * r[:, None])


def test_a_row_vector_and_a_column_vector_make_a_fragment_of_all_pairs() -> None:
    unit = FakeUnit(
        values={
            "r": from_matrix(ACC, np.arange(64 * 16).reshape(64, 16) // 16)[:, [0, 2]],
            "q": from_matrix(ACC, np.arange(64 * 16).reshape(64, 16) % 16)[:, [0, 1, 4, 5]],
        }
    )
    rows, cols = var("r", RowVector(I32, 64, 4)), var("q", ColVector(I32, 16))
    below = make("ge", rows, cols)
    np.testing.assert_array_equal(to_matrix(ACC, unit.run(below)), np.tri(64, 16, dtype=bool))
    text, _ = compiled(make("select", below, var("acc", ACC), 0.0))
    assert text.count("#pragma unroll") == 1


def test_numpy_functions_take_0d_values() -> None:
    one = np.float32(1)
    assert fn.fma(one, one, one) == 2
    assert fn.minimum(one, np.float32(0)) == 0


# -- cost and emission -----------------------------------------------------------------------------


def test_cost_counts_lanes_by_pipe() -> None:
    cost = lookup("add").cost  # type: ignore[union-attr]
    assert cost is not None
    wide = cost(make("add", var("a", ACC), 1.0), 128)
    assert (wide.fma, wide.alu, wide.issue) == (1024, 0, 32)
    index = cost(make("add", J, 1), 32)
    assert (index.fma, index.alu, index.issue) == (0, 32, 1)


_BY_DTYPE = {F32: X, I32: J, U32: var("u", Scalar(U32, True)), I64: var("w", Scalar(I64, True)),
             BOOL: make("lt", X, 0.0)}  # fmt: skip


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_every_row_compiles_for_every_dtype(target: str) -> None:
    cg = FakeEmitter(target=target)
    for entry in TABLE.values():
        for dtype in entry.admits:
            operands = [_BY_DTYPE[dtype]] * len(entry.names)
            if entry.name == "select":
                operands[0] = _BY_DTYPE[BOOL]
            call = make(entry.name, *operands)
            c = "int" if call.type.dtype == BOOL else cg.words(call.type)[0]  # type: ignore[attr-defined]
            cg.line(f"*({c}*)(out++) = {cg.scalar(call)};")
    built = cg.build()
    assert "fma.rn.f32" in (built.ptx or "")
    assert (built.facts.entry("kernel")).stack_bytes == 0  # type: ignore[union-attr]


def test_a_nested_expression_is_one_loop_without_temporaries() -> None:
    distance = make("sub", var("q", COLS), make("mul", 2.0, var("acc", ACC)))
    text, built = compiled(distance)
    assert text.count("#pragma unroll") == 1
    assert text.count("float") - text.count("_float") - text.count("(float*)") == 3
    facts = built.facts.entry("kernel")
    assert facts is not None
    assert (facts.stack_bytes, facts.spill_store_bytes) == (0, 0)


def test_division_by_a_power_of_two_is_a_shift_and_a_mask() -> None:
    text, _ = compiled(make("floordiv", J, 8))
    assert "(j >> 3)" in text
    text, _ = compiled(make("mod", J, 8))
    assert "(j & 7)" in text
    text, _ = compiled(make("mod", J, 6))
    assert "floor_mod<int>(j, 6)" in text
