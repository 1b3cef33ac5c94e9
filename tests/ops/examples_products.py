"""Examples of matrix products: small integers, exact in every type."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import F32
from cake.ir.types import Fragment
from cake.ops.values import to_matrix
from tests.ops.example import Arrays, Example, warp, zeros

# -- products --------------------------------------------------------------------------------------

_PRODUCTS_DECLS = """
A = smem({a}, (64, 64), swizzle={w})
B = smem({a}, (32, 64), swizzle={w})
"""
_PRODUCTS = """
t = thread()
for i in range(t, 4096, 128):
    store(A[i // 64, i % 64], cast(load(x[i // 64, i % 64]), {a}))
for i in range(t, 2048, 128):
    store(B[i // 64, i % 64], cast(load(x[64 + i // 64, i % 64]), {a}))
fence_async()
cta_sync()
acc = fragment({acc}, (64, 32), fill=1)
wgmma(acc, A, B.T)
wgmma_wait(0)
store(y[0, 0], cast(acc, f32))
"""
_WARP_PRODUCTS = """
t = lane()
fa = fragment(f32, (64, 64))
fb = fragment(f32, (64, 32), operand="b")
a = lanes(fa)
b = lanes(fb)
for i in range(128, unroll=True):
    a[i] = load(x[t, i])
for i in range(64, unroll=True):
    b[i] = load(x[t, 128 + i])
acc = fragment({acc}, (64, 32), fill=1)
mma(acc, cast(fa, {a}), cast(fb, {a}))
store(y[0, 0], cast(acc, f32))
"""


def products(a: str, acc: str) -> Example:
    """A product by wgmma of small integers: exact in every type."""
    form = {"a": a, "acc": acc, "w": 128 if a == "f16" else 64}
    body = _PRODUCTS.format(**form)
    if acc == "f16":
        body = body.replace("fill=1", "fill=1.0")
    return Example(
        make=warp(
            body,
            _PRODUCTS_DECLS.format(**form),
            params="x: Tensor[f32, 96, 64], y: Tensor[f32, 64, 32]",
            role="warpgroups=1",
        ),
        arrays=lambda: {"x": _small(96, 64), "y": zeros(64, 32)},
        expected=lambda arrays: {"y": 1 + arrays["x"][:64] @ arrays["x"][64:].T},
    )


def warp_products(a: str, acc: str) -> Example:
    """The same by mma, from registers."""
    left, right = Fragment(F32, (64, 64), "acc", 1), Fragment(F32, (64, 32), "b", 1)
    body = _WARP_PRODUCTS.format(a=a, acc=acc)
    if acc == "f16":
        body = body.replace("fill=1", "fill=1.0")

    def expected(arrays: Arrays) -> Arrays:
        x = arrays["x"]
        return {"y": 1 + to_matrix(left, x[:, :128]) @ to_matrix(right, x[:, 128:])}

    return Example(
        make=warp(body, params="x: Tensor[f32, 32, 192], y: Tensor[f32, 64, 32]"),
        arrays=lambda: {"x": _small(32, 192), "y": zeros(64, 32)},
        expected=expected,
    )


def _small(rows: int, columns: int) -> Any:
    return np.random.default_rng(32).integers(-2, 3, (rows, columns)).astype(np.float32)


PRODUCTS = {
    "wgmma f16 in f16": products("f16", "f16"),
    "wgmma e4m3 in f16": products("e4m3", "f16"),
    "wgmma i8": products("i8", "i32"),
    "mma f16 in f16": warp_products("f16", "f16"),
    "mma i8": warp_products("i8", "i32"),
}
