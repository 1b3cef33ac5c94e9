"""mma: typing, meaning, and emission for every element type."""

from typing import Any

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from cake.ir.dtypes import BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, DType, numpy_dtype
from cake.ir.types import Fragment
from cake.ops.base import lookup
from cake.ops.values import from_matrix, to_matrix
from cake.targets import get
from tests.ops.fakes import FakeTyping, FakeUnit, Refused, make, var
from tests.ops.schedules import message, one_role, program

WARP = FakeTyping(target=get("sm_89"), unit_threads=32)


def tiles(m: int, n: int, k: int, a: DType, b: DType | None = None) -> tuple[Any, Any, Any]:
    acc = I32 if a.is_int else F32
    return (
        var("acc", Fragment(acc, (m, n), "acc", 1)),
        var("a", Fragment(a, (m, k), "acc", 1)),
        var("b", Fragment(b or a, (k, n), "b", 1)),
    )


@pytest.mark.parametrize("dtype", [BF16, F16, TF32, I8, U8, E4M3, E5M2])
@pytest.mark.parametrize("shape", [(16, 8, 32), (32, 24, 64)])
def test_products_of_small_integers_are_exact(dtype: DType, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(7)
    low, high = {I8: (-128, 128), U8: (0, 256)}.get(dtype, (-4, 5))
    a = rng.integers(low, high, (m, k)).astype(numpy_dtype(dtype))
    b = rng.integers(low, high, (k, n)).astype(numpy_dtype(dtype))
    d, left, right = tiles(m, n, k, dtype)
    c = rng.integers(-9, 9, (m, n)).astype(numpy_dtype(d.type.dtype))
    values = {
        "acc": from_matrix(d.type, c),
        "a": from_matrix(left.type, a),
        "b": from_matrix(right.type, b),
    }
    registers = values["acc"]
    FakeUnit(threads=32, values=values).run(make("mma", d, left, right, typing=WARP))
    expected = c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(to_matrix(d.type, registers), expected)


@pytest.mark.parametrize("dtype", [F16, E4M3])
def test_f16_accumulators_round_every_instruction(dtype: DType) -> None:
    typing = FakeTyping(target=get("sm_89"), unit_threads=32)
    left, right = (
        var("a", Fragment(dtype, (16, 64), "acc", 1)),
        var("b", Fragment(dtype, (64, 8), "b", 1)),
    )
    d = var("acc", Fragment(F16, (16, 8), "acc", 1))
    k = 32 // dtype.bytes
    a, b = np.zeros((16, 64)), np.ones((64, 8))
    a[0, [0, 1]] = a[1, [0, k]] = 1
    values = {
        "acc": from_matrix(d.type, np.full((16, 8), 2048, np.float16)),
        "a": from_matrix(left.type, a.astype(numpy_dtype(dtype))),
        "b": from_matrix(right.type, b.astype(numpy_dtype(dtype))),
    }
    FakeUnit(threads=32, values=values).run(make("mma", d, left, right, typing=typing))
    assert to_matrix(d.type, values["acc"])[:2, 0].tolist() == [2050.0, 2048.0]


def test_integer_accumulators_wrap() -> None:
    d, left, right = tiles(16, 8, 32, I8)
    ones = {"a": np.ones((32, 16), np.int8), "b": np.ones((32, 8), np.int8)}
    acc = np.full((32, 4), 2**31 - 1, np.int32)
    FakeUnit(threads=32, values={"acc": acc, **ones}).run(make("mma", d, left, right, typing=WARP))
    assert (acc == -(2**31) + 31).all()


def test_each_instruction_rounds_once() -> None:
    d, left, right = tiles(16, 8, 32, BF16)
    a, b = np.zeros((16, 32)), np.zeros((32, 8))
    b[:, 0] = 1
    a[0, [0, 15]] = a[1, [0, 16]] = 1
    values = {
        "acc": from_matrix(d.type, np.full((16, 8), 2.0**24, np.float32)),
        "a": from_matrix(left.type, a.astype(numpy_dtype(BF16))),
        "b": from_matrix(right.type, b.astype(numpy_dtype(BF16))),
    }
    FakeUnit(threads=32, values=values).run(make("mma", d, left, right, typing=WARP))
    # Row 0 adds both products before it rounds; row 1 rounds a tie to even twice.
    assert to_matrix(d.type, values["acc"])[:2, 0].tolist() == [2.0**24 + 2, 2.0**24]


@pytest.mark.parametrize(
    ("operands", "target", "expected"),
    [
        ((*tiles(16, 8, 16, BF16)[:2], tiles(16, 8, 32, BF16)[2]), "sm_80", "A is 16x16 and B"),
        ((tiles(32, 8, 16, BF16)[0], *tiles(16, 8, 16, BF16)[1:]), "sm_80", "the accumulator 32x8"),
        (
            (*tiles(16, 8, 16, BF16)[:2], tiles(16, 16, 8, BF16)[1]),
            "sm_80",
            "B must have the b or b_ldmatrix la",
        ),
        (tiles(16, 8, 32, E4M3), "sm_80", "e4m3 x e4m3 -> f32 is not admitted on sm_80; there are"),
        (tiles(16, 8, 16, BF16, F16), "sm_80", "bf16 x f16 -> f32 is not admitted"),
        (tiles(16, 8, 16, I8), "sm_80", "K must be a multiple of 32 for i8, got 16"),
    ],
)
def test_wrong_operands_are_refused(operands: Any, target: str, expected: str) -> None:
    with pytest.raises(Refused, match=expected):
        make("mma", *operands, typing=FakeTyping(target=get(target), unit_threads=32))


def test_the_accumulator_is_a_variable_and_the_unit_a_warp() -> None:
    body = """
    acc = fragment(f32, (16, 8), fill=0.0)
    a = fragment(bf16, (16, 16), fill=0.0)
    b = fragment(bf16, (16, 8), fill=0.0, operand="b")
    mma(acc + 1.0, a, b)
    """
    assert "the accumulator must be a variable" in message(body, target="sm_80")
    group = "acc = fragment(f32, (64, 8), fill=0.0)\nmma(acc, acc, acc)"
    assert "cannot run in a warpgroup" in message(group, role="warpgroups=1")


@pytest.mark.parametrize(
    ("dtype", "target", "instruction"),
    [
        ("bf16", "sm_80", "m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("f16", "sm_90a", "m16n8k16.row.col.f32.f16.f16.f32"),
        ("tf32", "sm_80", "m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("i8", "sm_80", "m16n8k32.row.col.s32.s8.s8.s32"),
        ("u8", "sm_90a", "m16n8k32.row.col.s32.u8.u8.s32"),
        ("e4m3", "sm_89", "m16n8k32.row.col.f32.e4m3.e4m3.f32"),
        ("e5m2", "sm_120a", "m16n8k32.row.col"),
        ("f16", "sm_80", "m16n8k16.row.col.f16.f16.f16.f16"),
        ("e4m3", "sm_89", "m16n8k32.row.col.f16.e4m3.e4m3.f16"),
    ],
)
def test_every_type_assembles(dtype: str, target: str, instruction: str) -> None:
    acc = "i32" if dtype in ("i8", "u8") else "f16" if ".col.f16" in instruction else "f32"
    fill = "1" if acc == "i32" else "1.0"
    body = f"""
    acc = fragment({acc}, (32, 16), fill={fill})
    a = fragment({dtype}, (32, 64), fill={fill})
    b = fragment({dtype}, (64, 16), fill={fill}, operand="b")
    mma(acc, a, b)
    store(y[0, 0], {"acc" if acc == "f32" else "cast(acc, f32)"})
    """
    made = compile_program(program(one_role(body), target=target))
    assert f"mma.sync.aligned.{instruction}" in made.source
    assert made.diagnostics == ()
    facts = made.build.facts.entry("kernel_kernel")
    assert facts is not None
    assert facts.stack_bytes == 0


def test_cost_counts_products_and_instructions() -> None:
    primitive = lookup("mma")
    assert primitive is not None
    assert primitive.cost is not None
    cost = primitive.cost(make("mma", *tiles(32, 16, 64, BF16), typing=WARP), 32)
    assert (cost.tensor, cost.tensor_dtype, cost.issue) == (32 * 16 * 64, "bf16", 2 * 2 * 4)
