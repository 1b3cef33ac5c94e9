"""Atomics and vector reductions: operands, values, emitted instructions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.schedules import accepted, cuda, finding, message, run

PARAMS = 'c: Tensor[i32, "N"], w: Tensor[f32, "N"], out: Tensor[i32, 32], h: Tensor[bf16, "N"]'
SMEM = "S = smem(i32, (8,))\nF = smem(f32, (8,))"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a = atomic_min(h[0], 1.0)", "takes i32, u32, i64, f32, the target holds bf16"),
        ("a = atomic_cas(w[0], 1.0, 2.0)", "the target holds f32"),
        ("a = atomic_add(S, 1)", "works on one element"),
        ("a = atomic_add(c[0], 1.0)", "expected i32, got the float 1.0"),
        ("a = atomic_add(c[0], registers(i32, 4, fill=0))", "value must be a scalar"),
        ("a = atomic_add(c[0], 1, order='seq')", "order must be one of"),
        ("a = atomic_add(c[0], 1, scope='warp')", "scope must be one of"),
        ("a = atomic_exch(c[0], 1, mask=3)", "mask must be a bool"),
        ("reduce_add(c[0], 1, order='acquire')", "order must be one of relaxed, release"),
        ("reduce_add(h[2], cast(registers(f32, 8, fill=1.0), bf16))", "a multiple of 8, got 2"),
        ("reduce_add(w[2], registers(f32, 4, fill=0.0))", "a multiple of 4, got 2"),
        ("reduce_add(w[0], registers(i32, 4, fill=0))", "holds f32, the value i32"),
        ("reduce_add(F[0], registers(f32, 4, fill=0.0))", "one by one"),
    ],
)
def test_operands_are_checked(body: str, said: str) -> None:
    assert said in message(body, SMEM, params=PARAMS)


def test_bf16_is_added_from_sm_90_on() -> None:
    said = message("reduce_add(h[0], cast(1.0, bf16))", params=PARAMS, target="sm_89")
    assert "sm_89 adds no bf16 in memory" in said


def tensors() -> dict[str, np.ndarray]:
    import ml_dtypes

    return {
        "c": np.arange(8, dtype=np.int32),
        "w": np.zeros(8, np.float32),
        "out": np.zeros(32, np.int32),
        "h": np.zeros(8, ml_dtypes.bfloat16),
    }


@pytest.mark.parametrize(
    ("call", "value", "olds"),
    [
        (
            "atomic_add(c[3], lane())",
            3 + sum(range(32)),
            3 + np.cumsum(np.arange(32)) - np.arange(32),
        ),
        ("atomic_max(c[3], lane())", 31, np.maximum(3, np.arange(32) - 1)),
        ("atomic_min(c[3], 0 - lane())", -31, np.r_[3, -np.arange(31)]),
        ("atomic_exch(c[3], lane())", 31, np.r_[3, np.arange(31)]),
        ("atomic_cas(c[3], lane() + 3, lane() + 4)", 35, np.arange(3, 35)),
    ],
)
def test_each_thread_updates_once_and_gets_the_old_value(
    call: str, value: int, olds: np.ndarray
) -> None:
    found = tensors()
    run(accepted(f"store(out[lane()], {call})", params=PARAMS), found)
    assert found["c"][3] == value
    np.testing.assert_array_equal(found["out"], olds)


def test_masked_threads_update_nothing() -> None:
    found = tensors()
    body = "store(out[lane()], atomic_add(c[lane() % 8], 100, mask=lane() < 8))"
    run(accepted(body, params=PARAMS), found)
    np.testing.assert_array_equal(found["c"], 100 + np.arange(8))
    np.testing.assert_array_equal(found["out"], np.r_[np.arange(8), np.zeros(24)])


def test_sums_in_shared_memory_and_in_vectors() -> None:
    found = tensors()
    body = """
if lane() < 8:
    store(S[lane()], 0)
unit_sync()
reduce_add(S[lane() % 4], lane())
unit_sync()
store(out[lane()], load(S[lane() % 8]))
q = registers(f32, 4, fill=1.0)
q[1] = 2.0
reduce_add(w[lane() % 2 * 4], q, mask=lane() < 6)
"""
    run(accepted(body, SMEM, params=PARAMS), found)
    sums = [sum(range(k, 32, 4)) for k in range(4)] + [0] * 4
    np.testing.assert_array_equal(found["out"], sums * 4)
    np.testing.assert_array_equal(found["w"], [3, 6, 3, 3] * 2)


VALUES = [1.5, -2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3.0]
FLOATS = "v: Tensor[f32, 10], start: Tensor[f32, 10], low: Tensor[f32, 10], high: Tensor[f32, 10]"


def test_floats_are_ordered_by_their_bits() -> None:
    v = np.array(VALUES, np.float32)
    start = np.array([0.0, -1.0, -0.0, 0.0, 1.0, -1.0, -2.0, 0.0, 0.0, -3.0], np.float32)
    found = {"v": v, "start": start, "low": start.copy(), "high": start.copy()}
    body = """
i = lane()
if i < 10:
    a = atomic_min(low[i], load(v[i]))
    b = atomic_max(high[i], load(v[i]))
"""
    run(accepted(body, params=FLOATS), found)
    low = [0.0, -2.0, -0.0, -0.0, 1.0, -np.inf, -2.0, 0.0, -1e-40, -3.0]
    high = [1.5, -1.0, 0.0, 0.0, np.inf, -1.0, -2.0, 1e-40, 0.0, 3.0]
    for name, expected in (("low", low), ("high", high)):
        bits = np.array(expected, np.float32).view(np.uint32)
        np.testing.assert_array_equal(found[name].view(np.uint32), bits)


def test_halves_add_with_one_rounding() -> None:
    found = tensors()
    body = """
q = cast(registers(f32, 4, fill=1.0), bf16)
reduce_add(h[lane() % 2 * 4], q)
a = atomic_add(h[0], cast(0.75, bf16), mask=lane() == 0)
"""
    run(accepted(body, params=PARAMS), found)
    np.testing.assert_array_equal(found["h"].astype(np.float32), [16.75] + [16.0] * 7)


def test_a_misaligned_vector_reduction_is_found_at_run_time() -> None:
    body = "q = registers(f32, 4, fill=1.0)\nfor i in range(2):\n    reduce_add(w[i * 2], q)"
    assert "multiple of 4" in finding(accepted(body, params=PARAMS), tensors())


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_every_operation_compiles(target: str) -> None:
    lines = []
    for dtype, t in (("i32", "a"), ("u32", "b"), ("i64", "e")):
        for op in ("add", "min", "max", "exch"):
            lines.append(f"v_{dtype}_{op} = atomic_{op}({t}[lane()], {t.upper()}[1])")
        lines.append(
            f"w_{dtype} = atomic_cas({t}[lane()], v_{dtype}_add, v_{dtype}_min, order='acq_rel')"
        )
        lines.append(f"reduce_add({t}[lane()], w_{dtype}, scope='sys')")
        lines.append(f"x_{dtype} = atomic_add(S_{dtype}[lane() % 8], w_{dtype}, order='release')")
    text = "\n".join(lines)
    for t in "ABE":
        text = text.replace(f"{t}[1]", f"load({t.lower()}[1])")
    text += "\nf = atomic_add(g[0], 1.0)\nf = atomic_exch(g[0], f)\nreduce_add(g[1], f)\n"
    text += "q = registers(f32, 4, fill=1.0)\nreduce_add(g[lane() * 4], q)\n"
    text += "p = registers(f32, 2, fill=1.0)\nreduce_add(g[lane() * 2], p)\n"
    text += "f = atomic_max(g[1], f) + atomic_min(g[2], f)\n"
    text += "reduce_add(h[0], cast(q, f16))\nreduce_add(h[lane()], cast(f, f16))\n"
    text += "x = atomic_add(h[1], cast(f, f16))\nx = atomic_add(S_f16[1], x)\n"
    params = "a: Tensor[i32, 64], b: Tensor[u32, 64], e: Tensor[i64, 64], g: Tensor[f32, 128]"
    params += ", h: Tensor[f16, 64]"
    decls = "\n".join(f"S_{d} = smem({d}, (8,))" for d in ("i32", "u32", "i64", "f16"))
    source = cuda(accepted(text, decls, params=params, target=target))
    assert "atom.acq_rel.gpu.global.cas.b64" in source
    assert "atom.release.cta.shared.add.u64" in source
    assert "red.relaxed.sys.global.add.s32" in source
    assert ("red.relaxed.gpu.global.add.v4.f32" in source) == (target == "sm_90a")
    assert ("red.relaxed.gpu.global.add.v2.f32" in source) == (target == "sm_90a")
    assert "atom.relaxed.gpu.global.add.noftz.f16" in source
    assert "atom.relaxed.cta.shared.add.noftz.f16" in source
    pairs = "v2.f16x2" if target == "sm_90a" else "f16x2"
    assert f"red.relaxed.gpu.global.add.noftz.{pairs}" in source
    assert "atom.relaxed.gpu.global.min.u32" in source


def test_bf16_compiles_in_vectors_of_8() -> None:
    body = "reduce_add(h[lane() * 8], cast(registers(f32, 8, fill=1.0), bf16))"
    source = cuda(accepted(body, params=PARAMS))
    assert "red.relaxed.gpu.global.add.noftz.v4.bf16x2" in source
