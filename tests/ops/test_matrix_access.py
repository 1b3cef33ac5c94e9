"""``ldmatrix`` and ``stmatrix``: operands, values, and which lane names which row."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cake.ir.dtypes import BF16, I8, TF32, DType
from cake.ir.fragments import coordinates
from cake.ir.nodes import View
from cake.ir.program import Smem
from cake.ir.types import Fragment, SmemView
from tests.ops.fakes import HERE, FakeTyping, make, var, view
from tests.ops.schedules import accepted, cuda, finding, message, run
from tests.ops.tracing import Tracer

BF = ml_dtypes.bfloat16
Held = dict[tuple[int, int], list[tuple[int, int]]]
"""(thread, register) -> row and column of the elements in it."""

SMEM = "S = smem(bf16, (64, 64), swizzle=128)\nF = smem(f32, (64, 64))\nP = smem(bf16, (64, 36))"
SMEM += "\nI = smem(i32, (64, 64))"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a = ldmatrix(I)", "matrix rows hold bf16, f16, u16, tf32, f32"),
        ("a = ldmatrix(P)", "72 bytes apart, not a multiple of 16"),
        ("a = ldmatrix(S[0:24])", "a multiple of 16 rows and of 16 columns, got 24x64"),
        ("a = ldmatrix(S[0:16, 4:20])", "must be a multiple of 8, got 4"),
        ("a = ldmatrix(S[0:16, 0:8], operand='b')", None),
        ("a = ldmatrix(S[0:8, 0:16], operand='b')", "16 rows and of 8 columns, got 8x16"),
        ("a = ldmatrix(S, operand='c')", "operand must be one of a, b"),
        ("a = ldmatrix(S[0])", "must have rank 2, got rank 1"),
        ("stmatrix(S, 1.0)", "the value must be a fragment"),
        ("stmatrix(S, fragment(f32, (64, 64), fill=0.0))", "the view holds bf16, the fragment f32"),
        ("stmatrix(S[0:32], cast(fragment(f32, (64, 64), fill=0.0), bf16))", "the shape 64x64"),
    ],
)
def test_operands_are_checked(body: str, said: str | None) -> None:
    if said is None:
        accepted(body, SMEM)
    else:
        assert said in message(body, SMEM)


def test_a_warpgroup_takes_64_rows_and_stmatrix_needs_hopper() -> None:
    assert "a multiple of 64 rows" in message("a = ldmatrix(S[0:32])", SMEM, role="warpgroups=1")
    body = "stmatrix(S, cast(fragment(f32, (64, 64), fill=0.0), bf16))"
    assert "does not exist on sm_80" in message(body, SMEM, target="sm_80")


def _view(rows: int, cols: int, transposed: bool, dtype: DType = BF16) -> tuple[View, Smem]:
    """A view that reads as rows x cols, and its buffer."""
    stored = (cols, rows) if transposed else (rows, cols)
    buffer = Smem(
        name="S",
        dtype=dtype,
        shape=stored,
        stages=None,
        swizzle=0,
        pool=None,
        offset=None,
        loc=HERE,
    )
    return view("S", SmemView(dtype, stored, 0, transposed)), buffer


def _covered(
    tracer: Tracer, prefix: str, warps: int, transposed: bool, *, load: bool, per: int = 2
) -> Held:
    """(thread, word) -> the ``per`` elements of each word, by the PTX manual."""
    found: Held = {}
    # .trans turns each 8x8 matrix over, so that a lane gets a column's neighbours.
    for name in (f"{prefix}_x4", f"{prefix}_x2"):
        by_call: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        base: dict[tuple[int, int], int] = {}
        order: dict[int, int] = {}
        for thread, arguments in tracer.calls(name, warps):
            register, address = arguments if load else reversed(arguments)
            number = order.get(thread, 0)
            order[thread] = number + 1
            key = (thread // 32, number)
            by_call.setdefault(key, {})[thread % 32] = address
            base[key] = register
        trans = any(t.startswith(f"{name}_trans") for t, _ in tracer.traced)
        for (warp, number), rows in by_call.items():
            for lane in range(32):
                for m in range(int(name[-1])):
                    pair = []
                    for e in range(per):
                        r, c = lane // 4, per * (lane % 4) + e
                        if trans:
                            r, c = c, r
                        start = rows[8 * m + r]
                        step = (c, 0) if transposed else (0, c)
                        pair.append((start[0] + step[0], start[1] + step[1]))
                    found[warp * 32 + lane, base[warp, number] + m] = pair
    return found


def _expected(t: Fragment, threads: int) -> Held:
    rows, cols = coordinates(t)
    per = 32 // t.dtype.bits
    return {
        (thread, word): [
            (
                int(rows[thread % len(rows), per * word + e]),
                int(cols[thread % len(rows), per * word + e]),
            )
            for e in range(per)
        ]
        for thread in range(threads)
        for word in range(t.registers // per)
    }


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("operand", "shape", "warps"),
    [
        ("a", (32, 48), 1),
        ("a", (128, 32), 4),
        ("b", (32, 32), 1),
        ("b", (16, 24), 1),
        ("b", (32, 16), 4),
    ],
)
def test_lanes_name_the_rows_that_hold_their_registers(
    operand: str, shape: tuple[int, int], warps: int, transposed: bool
) -> None:
    e, buffer = _view(*shape, transposed)
    typing = FakeTyping(unit_threads=32 * warps, resources={"S": buffer})
    call = make("ldmatrix", e, operand, typing=typing)
    assert isinstance(call.type, Fragment)
    tracer = Tracer(unit_threads=32 * warps, resources={"S": buffer})
    tracer.emit(call, "r")
    found = _covered(tracer, "ldmatrix", warps, transposed, load=True)
    assert found == _expected(call.type, 32 * warps)


@pytest.mark.parametrize("dtype", [I8, TF32])
@pytest.mark.parametrize(
    ("operand", "shape", "warps"),
    [("a", (32, 96), 1), ("a", (128, 64), 4), ("b", (64, 32), 1), ("b", (32, 24), 4)],
)
def test_rows_of_bytes_and_of_words(
    operand: str, shape: tuple[int, int], warps: int, dtype: DType
) -> None:
    transposed = operand == "b"
    e, buffer = _view(*shape, transposed, dtype)
    typing = FakeTyping(unit_threads=32 * warps, resources={"S": buffer})
    call = make("ldmatrix", e, operand, typing=typing)
    assert isinstance(call.type, Fragment)
    assert call.type.layout == f"{operand}_ldmatrix"
    tracer = Tracer(unit_threads=32 * warps, resources={"S": buffer})
    tracer.emit(call, "r")
    per = 4 // dtype.bytes
    found = _covered(tracer, "ldmatrix", warps, transposed, load=True, per=per)
    assert found == _expected(call.type, 32 * warps)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("shape", "warps"), [((16, 24), 1), ((128, 64), 4)])
def test_stmatrix_stores_each_register_where_it_belongs(
    shape: tuple[int, int], warps: int, transposed: bool
) -> None:
    e, buffer = _view(*shape, transposed)
    typing = FakeTyping(unit_threads=32 * warps, resources={"S": buffer})
    t = Fragment(BF16, shape, "acc", warps)
    call = make("stmatrix", e, var("frag", t), typing=typing)
    tracer = Tracer(unit_threads=32 * warps, resources={"S": buffer})
    tracer.known.add("frag")
    tracer.emit(call)
    found = _covered(tracer, "stmatrix", warps, transposed, load=False)
    assert found == _expected(t, 32 * warps)


@pytest.mark.parametrize("role", ["warps=1", "warpgroups=1"])
def test_a_fragment_survives_shared_memory(role: str) -> None:
    body = """
rows = fragment(f32, (64, 64), fill=0.0) + cast(row_index(64), f32) * 4.0
a = cast(rows + cast(col_index(64), f32), bf16)
stmatrix(S, a)
unit_sync()
store(z[0, 0], ldmatrix(S.T))
"""
    z = np.zeros((64, 64), BF)
    made = accepted(body, SMEM, params='z: Tensor[bf16, "M", "N"]', role=role)
    run(made, {"z": z})
    want = np.arange(64)[:, None] * 4.0 + np.arange(64)[None, :]
    np.testing.assert_array_equal(z, want.T.astype(BF))
    text = cuda(made)
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text
    assert "stmatrix.sync.aligned.m8n8.x4.shared.b16" in text


def test_a_view_inside_a_matrix_row_is_found_at_run_time() -> None:
    body = """
store(S[lane(), 0], cast(0.0, bf16))
for i in range(2):
    stmatrix(S[0:16, i * 4 : i * 4 + 16], cast(fragment(f32, (16, 16), fill=0.0), bf16))
"""
    made = accepted(body, SMEM, params='z: Tensor[bf16, "M", "N"]')
    assert "multiple of 8" in finding(made, {"z": np.zeros((8, 8), BF)})
