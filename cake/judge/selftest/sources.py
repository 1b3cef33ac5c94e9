"""Texts that several twins share: right implementations, which cheats change in one place."""

from __future__ import annotations

SOFTMAX = """\
import numpy as np


def compute(x):
    e = np.exp(x - x.max(axis=1, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=1, keepdims=True)


def run(x, y):
    y[...] = compute(x)
"""
"""Row-wise softmax in f32."""

RMSNORM = """\
import numpy as np


def run(x, w, y, eps):
    v = x.astype(np.float64)
    scale = 1 / np.sqrt((v * v).mean(axis=1, keepdims=True) + eps)
    y[...] = (v * scale * w.astype(np.float64)).astype(y.dtype)
"""

CUDA_SOFTMAX = """\
/* cake {"entry": "softmax", "grid": ["M"], "block": 128, "args": ["x", "y", "M", "N"]} */
extern "C" __global__ void softmax(const float* x, float* y, int M, int N) {
    __shared__ float part[128];
    const float* in = x + (long long)blockIdx.x * N;
    float* out = y + (long long)blockIdx.x * N;
    float top = -__int_as_float(0x7f800000);
    for (int i = threadIdx.x; i < N; i += 128) top = fmaxf(top, in[i]);
    part[threadIdx.x] = top;
    __syncthreads();
    for (int s = 64; s; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + s]);
        __syncthreads();
    }
    top = part[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < N; i += 128) sum += expf(in[i] - top);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int s = 64; s; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    for (int i = threadIdx.x; i < N; i += 128) out[i] = expf(in[i] - top) / part[0];
}
"""
"""The same, one block of 128 threads for each row."""


def changed(source: str, old: str, new: str) -> str:
    """``source`` with one place changed; the place has to be there."""
    if old not in source:
        raise ValueError(f"the source has no {old!r}")
    return source.replace(old, new)
