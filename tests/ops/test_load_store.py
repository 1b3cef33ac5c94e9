"""``load`` and ``store``: operands, values, vectors, masks, clipping, peers, instructions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cake.ir.dtypes import F32, I32
from cake.ir.fragments import coordinates
from cake.ir.nodes import TensorRef
from cake.ir.program import Smem
from cake.ir.types import Fragment, SmemView, TensorPlace
from tests.ops.fakes import HERE, FakeTyping, make, number, var, view
from tests.ops.schedules import accepted, cuda, finding, message, run
from tests.ops.tracing import Tracer

BF = ml_dtypes.bfloat16
PARAMS = (
    'x: Tensor[bf16, "M", "N"], y: Tensor[f32, "M", "N"], w: Tensor[f32, "N"], c: Tensor[i32, "N"]'
)
SMEM = "S = smem(f32, (32, 36))\nH = smem(bf16, (64, 64), swizzle=128)"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a = load(1.0)", "must be a shared-memory view or a place"),
        ("a = load(S)", "one element or one row"),
        ("a = load(S[0, 0:4], width=4)", "a view says its width itself"),
        ("a = load(w[0], width=0)", "[1, 256], got 0"),
        ("a = load(w[2], width=4)", "must be a multiple of 4, got 2"),
        ("a = load(x[0, 0], fill=1.0)", "give mask= too"),
        ("a = load(w[0], mask=1)", "mask must be a bool"),
        ("a = load(w[0], mask=lane() < 3, fill=lane())", "expected f32, got i32"),
        ("a = load(w[0], cache='l3')", "cache must be one of ca, cg, cs, nc"),
        ("a = load(S[0, 0], cache='cg')", "cache= is for global memory"),
        ("a = load(w[0], order='acquire')", "one i32, u32 or i64, got f32"),
        ("a = load(c[0], order='acquire', cache='cg')", "exclude each other"),
        ("a = load(w[0], peer=1)", "global memory has no peers"),
        ("a = load(S[0, 0], peer=lane())", "the same in all threads"),
        ("store(w[0], lane())", "expected f32, got i32"),
        ("store(w[0], w[1])", "value must be a scalar"),
        ("store(S, 1.0)", "a scalar goes to one element"),
        ("store(w[0], 1.0, clip=False)", "clip= goes with fragments"),
        ("store(w[0], registers(i32, 4, fill=0))", "the destination holds f32, the value i32"),
        ("store(S[0, 0:2], registers(f32, 4, fill=0.0))", "goes to a view of 4 elements"),
        ("store(x[0, 0], fragment(f32, (16, 16), fill=0.0))", "holds bf16, the value f32"),
        ("store(w[0], fragment(f32, (16, 16), fill=0.0))", "a tensor of two axes"),
        ("store(y[lane(), 0], fragment(f32, (16, 16), fill=0.0))", "the same in all threads"),
        ("store(S, fragment(f32, (16, 16), fill=0.0))", "the shape 16x16 of the value"),
        ("store(w[0], row_vector(f32, 16, fill=0.0, partial=True))", "a partial row vector"),
        ("store(w[0], row_vector(f32, 16, fill=0.0), peer=1)", "no peers"),
    ],
)
def test_operands_are_checked(body: str, said: str) -> None:
    assert said in message(body, SMEM, params=PARAMS)


def test_a_thread_loads_what_its_index_says() -> None:
    body = """
t = lane()
store(S[t, 3], load(w[t * 2 + 1]))
v = load(w[t * 4], width=4)
store(S[t, 4:8], v)
unit_sync()
store(y[0, t], load(S[31 - t, 3]))
q = load(S[31 - t, 4:8])
store(y[1, t * 4], q)
"""
    w, y = np.arange(128, dtype=np.float32), np.zeros((2, 128), np.float32)
    tensors = {"w": w, "y": y, "x": np.zeros((2, 128), BF), "c": np.zeros(128, np.int32)}
    run(accepted(body, SMEM, params=PARAMS), tensors)
    np.testing.assert_array_equal(y[0, :32], w[1:64:2][::-1])
    np.testing.assert_array_equal(y[1], w.reshape(32, 4)[::-1].ravel())


def test_masked_threads_touch_nothing_and_get_the_fill() -> None:
    body = """
t = lane()
a = load(w[t], mask=t < N, fill=-1.0)
v = load(x[0, t * 2], width=2, mask=t < N // 2, fill=3.0)
store(out[t], a)
store(pairs[t * 2], v)
store(c[t], t, mask=t < N)
"""
    params = PARAMS + ", out: Tensor[f32, 32], pairs: Tensor[bf16, 64]"
    n = 20
    tensors = {
        "w": np.arange(n, dtype=np.float32),
        "x": np.arange(n).reshape(1, n).astype(BF),
        "y": np.zeros((1, n), np.float32),
        "c": np.zeros(n, np.int32),
        "out": np.zeros(32, np.float32),
        "pairs": np.zeros(64, BF),
    }
    run(accepted(body, params=params), tensors)
    np.testing.assert_array_equal(tensors["out"], np.r_[tensors["w"], np.full(12, -1.0)])
    np.testing.assert_array_equal(tensors["pairs"], np.r_[tensors["x"][0], np.full(44, 3)])
    np.testing.assert_array_equal(tensors["c"], np.arange(n))


@pytest.mark.parametrize(("role", "rows"), [("warps=1", 32), ("warpgroups=1", 64)])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "i8"])
def test_fragments_and_vectors_are_stored_and_clipped(role: str, rows: int, dtype: str) -> None:
    body = f"""
rows = row_index({rows})
cols = col_index(16)
a = fragment(f32, ({rows}, 16), fill=0.0) + cast(rows, f32) * 16.0 + cast(cols, f32)
store(d[3, 5], cast({"cast(a, i32)" if dtype == "i8" else "a"}, {dtype}))
store(e[2], rows)
store(f[6], cols)
"""
    params = f'd: Tensor[{dtype}, "M", "N"], e: Tensor[i32, "M"], f: Tensor[i32, "N"]'
    kind = {"f32": np.float32, "bf16": BF, "i8": np.int8}[dtype]
    d = np.full((rows - 1, 17), -1, kind)
    e, f = np.full(rows - 1, -1, np.int32), np.full(17, -1, np.int32)
    run(accepted(body, params=params, role=role), {"d": d, "e": e, "f": f})
    tile = np.arange(rows * 16).reshape(rows, 16).astype(kind)
    want = np.full_like(d, -1)
    want[3:, 5:] = tile[: rows - 4, :12]
    np.testing.assert_array_equal(d, want)
    np.testing.assert_array_equal(e, np.r_[-1, -1, np.arange(rows - 3)])
    np.testing.assert_array_equal(f, np.r_[np.full(6, -1), np.arange(11)])


@pytest.mark.parametrize("where", ["global", "shared", "transposed"])
@pytest.mark.parametrize(("shape", "warps"), [((32, 24), 1), ((128, 16), 4)])
def test_emitted_fragment_stores_name_each_register_once(
    shape: tuple[int, int], warps: int, where: str
) -> None:
    t = Fragment(F32, shape, "acc", warps)
    tracer = Tracer(unit_threads=32 * warps, known={"acc"})
    if where == "global":
        zero = number(0, I32)
        to: Any = TensorRef(tensor="y", index=(zero, zero), type=TensorPlace(F32, 2), loc=HERE)
    else:
        flipped = where == "transposed"
        stored = shape[::-1] if flipped else shape
        to = view("S", SmemView(F32, stored, 0, flipped))
        tracer.resources["S"] = Smem(
            name="S",
            dtype=F32,
            shape=stored,
            stages=None,
            swizzle=0,
            pool=None,
            offset=None,
            loc=HERE,
        )
    typing = FakeTyping(unit_threads=32 * warps, resources=tracer.resources)
    tracer.emit(make("store", to, var("acc", t), clip=False, typing=typing))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    pairs = where != "transposed"
    for thread, arguments in tracer.calls("store_", warps):
        (row, col), register = arguments[0], int(arguments[1])
        for e in range(1 + pairs):
            assert (thread, register + e) not in found
            found[thread, register + e] = (row, col + e)
    rows, cols = coordinates(t)
    want = {
        (thread, k): (int(rows[thread, k]), int(cols[thread, k]))
        for thread in range(32 * warps)
        for k in range(t.registers)
    }
    assert found == want


def test_clip_false_makes_a_store_outside_a_finding() -> None:
    body = "store(y[8, 0], fragment(f32, (16, 16), fill=1.0), clip=False)"
    tensors = {"x": np.zeros((20, 16), BF), "y": np.zeros((20, 16), np.float32),
               "w": np.zeros(16, np.float32), "c": np.zeros(16, np.int32)}  # fmt: skip
    assert "accessed at" in finding(accepted(body, params=PARAMS), tensors)


def test_a_fragment_goes_to_shared_memory_straight_or_transposed() -> None:
    body = """
rows = fragment(f32, (64, 64), fill=0.0) + cast(row_index(64), f32) * 4.0
a = cast(rows + cast(col_index(64), f32), bf16)
store(H{view}, a)
unit_sync()
t = thread()
for i in range(64):
    store(x[i, t % 64], load(H[i, t % 64]))
"""
    grid = np.arange(64)[:, None] * 4.0 + np.arange(64)[None, :]
    for flip, want in (("", grid), (".T", grid.T)):
        x = np.zeros((64, 64), BF)
        tensors = {"x": x, "y": np.zeros((64, 64), np.float32), "w": np.zeros(64, np.float32),
                   "c": np.zeros(64, np.int32)}  # fmt: skip
        made = accepted(body.format(view=flip), SMEM, params=PARAMS, role="warpgroups=1")
        run(made, tensors)
        np.testing.assert_array_equal(x, want.astype(BF))


def test_threads_that_disagree_about_one_element_are_found() -> None:
    tensors = {"x": np.zeros((1, 8), BF), "y": np.zeros((1, 8), np.float32),
               "w": np.zeros(8, np.float32), "c": np.zeros(8, np.int32)}  # fmt: skip
    assert "CK593" in finding(accepted("store(c[0], lane())", params=PARAMS), tensors)
    run(accepted("if lane() == 3:\n    store(c[0], lane())", params=PARAMS), tensors)
    assert tensors["c"][0] == 3


def test_a_misaligned_vector_is_found_at_run_time() -> None:
    tensors = {"x": np.zeros((1, 8), BF), "y": np.zeros((1, 8), np.float32),
               "w": np.zeros(8, np.float32), "c": np.zeros(8, np.int32)}  # fmt: skip
    body = "for i in range(2):\n    v = load(w[i * 2], width=4)"
    assert "multiple of 4" in finding(accepted(body, params=PARAMS), tensors)


def test_a_peers_shared_memory_is_read_and_written() -> None:
    body = """
store(S[0, lane()], cast(m * 100 + lane(), f32))
store(S[1, lane()], cast(m * 1000 + lane(), f32), peer=1 - cta_rank())
cluster_sync()
store(out[m, lane()], load(S[0, lane()], peer=1 - cta_rank()) + load(S[1, lane()]))
cluster_sync()
"""
    decls = "cluster(2)\nS = smem(f32, (2, 32))\n(m,) = grid(2)"
    out = np.zeros((2, 32), np.float32)
    made = accepted(body, decls, params="out: Tensor[f32, 2, 32]")
    run(made, {"out": out})
    for m in range(2):
        np.testing.assert_array_equal(out[m], (1 - m) * 1100 + 2 * np.arange(32))
    text = cuda(made)
    assert "mapa.shared::cluster.u32" in text
    assert "ld.shared::cluster.f32" in text
    assert "st.shared::cluster.f32" in text


KINDS = ("f32", "i32", "u32", "i64", "bf16", "f16", "e4m3", "i8", "bool")


@pytest.mark.parametrize("dtype", KINDS)
def test_every_element_type_compiles_in_every_width(dtype: str) -> None:
    lines = [f"v{n} = load(a[0, lane() * {n}], width={n})\nstore(b[0, lane() * {n}], v{n})"
             for n in (1, 2, 3, 8, 16)]  # fmt: skip
    lines.append("s = load(a[1, lane()], mask=lane() < 3)\nstore(b[1, lane()], s)")
    lines.append("store(S[lane()], s)\nstore(b[2, lane()], load(S[lane()]))")
    params = f'a: Tensor[{dtype}, "M", "N"], b: Tensor[{dtype}, "M", "N"]'
    text = cuda(accepted("\n".join(lines), f"S = smem({dtype}, (32,))", params=params))
    assert "ld.global" in text


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
def test_cache_operators_and_orders_reach_the_instruction(target: str) -> None:
    body = """
a = load(w[lane() * 4], width=4, cache="nc")
b = load(w[lane()], cache="cg")
e = load(c[0], order="acquire")
store(w[lane() * 4], a, cache="cs")
store(w[lane()], b, cache="wt")
store(c[0], e, order="release")
store(y[0, 0], fragment(f32, (16, 16), fill=0.0), cache="cs")
"""
    text = cuda(accepted(body, params=PARAMS, target=target))
    for op in ("ld.global.nc.v4.f32", "ld.global.cg.f32", "ld.acquire.gpu.global.s32",
               "st.global.cs.v4.f32", "st.global.wt.f32", "st.release.gpu.global.s32"):  # fmt: skip
        assert op in text
