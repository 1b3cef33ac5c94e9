"""Compute primitives in whole programs: simulator against numpy here, GPU against simulator there.

Run the second half with ``pytest -m gpu tests/ops/test_compute_gpu.py`` on a device of compute
capability 9.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from cake.ir.dtypes import F32
from cake.ir.program import Program
from cake.ir.types import Fragment
from cake.ops.values import from_matrix, to_matrix
from cake.simulate.run import simulate
from tests.ops.schedules import one_role, program

Arrays = dict[str, Any]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, -2.75, np.inf, -np.inf, np.nan, 1e-40, -3e-39, 3.4e38, 1e-38]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A one-role program over tensors x (inputs) and y (result).

    ``expected`` is y by numpy from the inputs, None where the simulator is the definition.
    ``tolerance`` is the relative error allowed between simulator and GPU; 0 asks for equal bits.
    """

    body: str
    params: str
    inputs: Callable[[], Arrays]
    expected: Callable[[Arrays], Any] | None = None
    decls: str = ""
    role: str = "warpgroups=1"
    tolerance: float = 0.0

    def program(self) -> Program:
        return program(one_role(self.body, self.role), self.decls, params=self.params)


def _floats() -> Arrays:
    rng = np.random.default_rng(11)
    special = np.array(FLOATS, np.float32)
    both = np.stack(np.meshgrid(special, special), -1).reshape(-1, 2)[:100]
    wild = np.exp(rng.uniform(-80, 80, (28, 2))) * rng.choice([-1, 1], (28, 2))
    pairs = np.concatenate([both, wild.astype(np.float32)])
    return {"x": np.ascontiguousarray(pairs.T), "y": np.zeros((16, 128), np.float32)}


def _integers() -> Arrays:
    rng = np.random.default_rng(12)
    a = rng.integers(-(2**30), 2**30, 128).astype(np.int32)
    b = np.where(rng.random(128) < 0.5, rng.integers(1, 50, 128), -rng.integers(1, 50, 128))
    return {"x": np.stack([a, b.astype(np.int32)]), "y": np.zeros((16, 128), np.int32)}


def _tile(threads: int, registers: int, low: int = -4, high: int = 5) -> Callable[[], Arrays]:
    def make() -> Arrays:
        rng = np.random.default_rng(13)
        x = rng.integers(low, high, (threads, registers)).astype(np.float32)
        return {"x": x, "y": np.zeros((threads, registers), np.float32)}

    return make


def _body(lines: list[str]) -> str:
    stores = "\n".join(f"store(y[{k}, t], {line})" for k, line in enumerate(lines))
    return f"t = thread()\na = load(x[0, t])\nb = load(x[1, t])\n{stores}"


_F = "x: Tensor[f32, 2, 128], y: Tensor[f32, 16, 128]"
_I = "x: Tensor[i32, 2, 128], y: Tensor[i32, 16, 128]"
_EXACT = ["a + b", "a - b", "a * b", "a / b", "fma(a, b, a)", "min(a, b)", "max(a, b)", "-a",
          "abs(a)", "floor(a)", "ceil(a)", "select(a < b, a, b)", "cast(a == b, f32)"]  # fmt: skip
_ROUND = ["cast(cast(a, bf16), f32)", "cast(cast(a, f16), f32)", "cast(cast(a, e4m3), f32)",
          "cast(cast(a, e5m2), f32)", "cast(cast(a, tf32), f32)", "cast(cast(a, i32), f32)",
          "cast(cast(a, u32), f32)", "cast(cast(a, i64), f32)",
          "bitcast(bitcast(a, u32) ^ bitcast(b, u32), f32)"]  # fmt: skip
_SFU = ["exp2(a)", "log2(a)", "rcp(a)", "rsqrt(a)", "sqrt(a)", "tanh(a)", "exp(a)", "log(a)"]
_INT = ["a // b", "a % b", "a & b", "a | b", "a ^ b", "a >> (b & 31)", "min(a, b)", "max(a, b)",
        "a // 8", "a % 8", "abs(a)", "-a", "cast(cast(a, i64) * b >> 3, i32)"]  # fmt: skip

OPEN = """
t = thread()
acc = fragment(f32, ({rows}, {cols}))
own = lanes(acc)
for i in static_range({registers}):
    own[i] = load(x[t, i])
"""


def _opened(rows: int, cols: int, threads: int, rest: str) -> str:
    return OPEN.format(rows=rows, cols=cols, registers=rows * cols // threads) + rest


def _argmin(group: int) -> str:
    return _opened(64, 64, 128, f"""
best = row_vector(f32, 64, fill=inf, partial=True)
arg = row_vector(i32, 64, fill=-1, partial=True)
best, arg = argmin_cols(fma(acc, -2.0, 1.0), best, arg, base=100, group={group})
low, where = argmin_quad(best, arg)
l = lanes(low)
w = lanes(where)
for j in static_range(2):
    store(y[t, j], l[j])
    store(y[t, 2 + j], cast(w[j], f32))
""")  # fmt: skip


_MMA = """
t = thread()
fa = fragment(f32, (32, 64))
fb = fragment(f32, (64, 16), operand="b")
ra = lanes(fa)
rb = lanes(fb)
for i in static_range(64):
    ra[i] = load(x[t, i])
for i in static_range(32):
    rb[i] = load(x[t, 64 + i])
acc = fragment(f32, (32, 16), fill=1.0)
mma(acc, cast(fa, {dtype}), cast(fb, {dtype}))
own = lanes(acc)
for i in static_range(16):
    store(y[t, i], own[i])
"""

_WARP = """
t = thread()
e = load(x[t, 0])
n = cast(e, i32)
store(y[t, 0], warp_sum(e))
store(y[t, 1], warp_max(e) + warp_min(e))
store(y[t, 2], cast(warp_sum(n) + warp_max(n) - warp_min(n), f32))
store(y[t, 3], warp_scan(e))
store(y[t, 4], cast(warp_scan(n), f32))
store(y[t, 5], shfl(e, 3) + shfl_xor(e, 5))
store(y[t, 6], shfl_up(e, 2) - shfl_down(e, 4))
store(y[t, 7], cast(ballot(e > 0.0) >> 3, f32))
store(y[t, 8], select(any_sync(e > 3.0), 1.0, 0.0) + select(all_sync(e > 0.0), 2.0, 0.0))
store(y[t, 9], select(elect(), 1.0, 0.0) + cast(warp() * 64 + lane(), f32))
"""

_TOPK = """
t = thread()
v = registers(f32, 5, fill=inf)
k = registers(i32, 5, fill=-1)
for i in range(24):
    topk_insert(v, k, load(x[t, i]), i)
for j in static_range(5):
    store(y[t, j], v[j])
    store(y[t, 5 + j], cast(k[j], f32))
"""


def _wgmma(dtype: str, swizzle: int, n: int, k: int, b: str) -> Case:
    """A and B from one tensor of small integers, rounded to ``dtype`` on the way to shared memory.

    ``b`` is "nk" (K-major), "kn" (MN-major) or "rs" (K-major, and A from registers).
    """
    shape = (k, n) if b == "kn" else (n, k)
    wide = shape[1]
    a = "p" if b == "rs" else "A"
    body = f"""
t = thread()
for i in range(t, {64 * k}, 128):
    row = i // {k}
    store(A[row, i % {k}], cast(load(x[row, i % {k}]), {dtype}))
for i in range(t, {n * k}, 128):
    row = i // {wide}
    store(S[row, i % {wide}], cast(load(x[64 + row, i % {wide}]), {dtype}))
fence_async()
cta_sync()
{f"p = fragment({dtype}, (64, {k}), fill=2.0)" if b == "rs" else ""}
acc = fragment(f32, (64, {n}), fill=3.0)
wgmma(acc, {a}, {"S" if b == "kn" else "S.T"})
wgmma_wait(0)
store(y[0, 0], acc)
"""
    rows, columns = 64 + shape[0], max(k, wide)

    def inputs() -> Arrays:
        rng = np.random.default_rng(14)
        x = rng.integers(-4, 5, (rows, columns)).astype(np.float32)
        return {"x": x, "y": np.zeros((64, n), np.float32)}

    def expected(arrays: Arrays) -> Any:
        x = arrays["x"]
        left = np.full((64, k), 2.0) if b == "rs" else x[:64, :k]
        right = x[64:, :wide]
        return 3 + left @ (right if b == "kn" else right.T)

    return Case(
        body=body,
        params=f"x: Tensor[f32, {rows}, {columns}], y: Tensor[f32, 64, {n}]",
        inputs=inputs,
        expected=expected,
        decls=f"A = smem({dtype}, (64, {k}), swizzle={swizzle})\n"
        f"S = smem({dtype}, {shape}, swizzle={swizzle})",
    )


def _mma_expected(arrays: Arrays) -> Any:
    a = to_matrix(Fragment(F32, (32, 64), "acc", 1), arrays["x"][:, :64])
    b = to_matrix(Fragment(F32, (64, 16), "b", 1), arrays["x"][:, 64:])
    full = np.zeros_like(arrays["y"])
    full[:, :16] = from_matrix(Fragment(F32, (32, 16), "acc", 1), 1 + a @ b)
    return full


_T = "x: Tensor[f32, 128, 32], y: Tensor[f32, 128, 32]"
_W = "x: Tensor[f32, 32, 96], y: Tensor[f32, 32, 96]"
_SUM = """
row = reduce_quad(reduce_rows(acc * 0.37, "sum"), "sum")
top = reduce_quad(reduce_rows(acc, "max"), "max")
s = lanes(row)
m = lanes(top)
for j in static_range(2):
    store(y[t, j], s[j])
    store(y[t, 2 + j], m[j])
"""

CASES = {
    "arithmetic": Case(body=_body(_EXACT), params=_F, inputs=_floats),
    "rounding": Case(body=_body(_ROUND), params=_F, inputs=_floats),
    "approximate": Case(body=_body(_SFU), params=_F, inputs=_floats, tolerance=2e-3),
    "integers": Case(body=_body(_INT), params=_I, inputs=_integers),
    "rows": Case(body=_opened(64, 64, 128, _SUM), params=_T, inputs=_tile(128, 32)),
    **{
        f"argmin by {g}": Case(body=_argmin(g), params=_T, inputs=_tile(128, 32))
        for g in (1, 2, 4, 8)
    },
    "warp": Case(body=_WARP, params=_T, inputs=_tile(128, 32, -99, 99)),
    "top-k": Case(body=_TOPK, params=_T, inputs=_tile(128, 32, 0, 9)),
    **{
        f"mma {d}": Case(
            body=_MMA.format(dtype=d), params=_W, inputs=_tile(32, 96), role="warps=1",
            expected=_mma_expected,
        )
        for d in ("bf16", "f16", "tf32", "e4m3", "e5m2")
    },
    **{
        f"wgmma {d} {b} swizzle {w}": _wgmma(d, w, n, k, b)
        for d, w, n, k, b in (
            ("bf16", 128, 256, 128, "nk"),
            ("bf16", 64, 72, 64, "nk"),
            ("bf16", 32, 8, 48, "nk"),
            ("f16", 128, 128, 64, "kn"),
            ("bf16", 64, 96, 64, "kn"),
            ("bf16", 32, 48, 32, "kn"),
            ("tf32", 128, 64, 64, "nk"),
            ("e4m3", 128, 128, 256, "nk"),
            ("e5m2", 64, 24, 64, "nk"),
            ("bf16", 128, 64, 64, "rs"),
        )
    },
}  # fmt: skip


def simulated(case: Case) -> Arrays:
    arrays = case.inputs()
    run = simulate(case.program(), arrays)
    assert run.findings == ()
    return arrays


@pytest.mark.parametrize("name", CASES)
def test_the_simulator_runs_the_program_and_the_compiler_builds_it(name: str) -> None:
    case = CASES[name]
    arrays = simulated(case)
    if case.expected is not None:
        np.testing.assert_array_equal(arrays["y"], case.expected(arrays))
    else:
        assert arrays["y"].view(np.uint32).any()
    assert compile_program(case.program()).diagnostics == ()


def same_bits(got: Any, expected: Any) -> None:
    """Equal bits, but any NaN for a NaN: payloads are not part of the meaning."""
    nan = np.isnan(expected) if expected.dtype.kind == "f" else np.zeros(expected.shape, bool)
    view = np.uint32
    np.testing.assert_array_equal(np.isnan(got) if nan.any() else nan, nan)
    np.testing.assert_array_equal(got.view(view)[~nan], expected.view(view)[~nan])


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_the_gpu_agrees_with_the_simulator(name: str) -> None:
    from cake.runtime.kernel import LoadedKernel
    from tests.runtime.test_gpu import DeviceMemory

    case = CASES[name]
    expected = simulated(case)["y"]
    built = compile_program(case.program())
    kernel = LoadedKernel(built.build.cubin, built.abi)
    arrays = {n: DeviceMemory(a) for n, a in case.inputs().items()}
    try:
        kernel.launch(dict(arrays))
        got = arrays["y"].numpy()
    finally:
        for memory in arrays.values():
            memory.free()
        kernel.close()
    if case.tolerance:
        np.testing.assert_allclose(got, expected, rtol=case.tolerance, atol=1e-30)
    else:
        same_bits(got, expected)
