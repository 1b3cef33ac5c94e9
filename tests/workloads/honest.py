"""Honest f32 implementations of the workloads, each with its own order of operations."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cake.workloads import Problem

Array = NDArray[Any]
F32 = np.float32


def truncated(value: Array) -> Array:
    """Float64 cut to 24 bits towards zero, as a tensor core cuts its partial sums."""
    with np.errstate(over="ignore"):
        near = value.astype(F32)
    beyond = np.isfinite(near) & (np.abs(near.astype(np.float64)) > np.abs(value))
    return np.where(beyond, np.nextafter(near, F32(0)), near)


def gemm_tensor_core(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Blocks of 16 along K, every partial sum truncated."""
    a, b = inputs["a"].astype(np.float64), inputs["b"].astype(np.float64)
    if problem.parameters["b_layout"] == "nk":
        b = np.swapaxes(b, -1, -2)
    total = np.zeros(problem.shape_of("d"), dtype=F32)
    with np.errstate(invalid="ignore"):
        for k in range(0, problem.dims["K"], 16):
            total = truncated(total + a[..., k : k + 16] @ b[..., k : k + 16, :])
    return {"d": narrowed(total, problem, "d")}


def gemm_sequential(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """One multiply-add after another, from the last k to the first."""
    a, b = inputs["a"].astype(F32), inputs["b"].astype(F32)
    if problem.parameters["b_layout"] == "nk":
        b = np.swapaxes(b, -1, -2)
    total = np.zeros(problem.shape_of("d"), dtype=F32)
    with np.errstate(invalid="ignore"):
        for k in reversed(range(problem.dims["K"])):
            total += a[..., k, None] * b[..., None, k, :]
    return {"d": narrowed(total, problem, "d")}


def kmeans_assign(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    x, c = inputs["x"].astype(F32), inputs["c"].astype(F32)
    with np.errstate(invalid="ignore"):
        scores = np.square(c).sum(axis=-1)[:, None, :] - 2 * (x @ np.swapaxes(c, 1, 2))
    scores = np.where(np.isnan(scores), np.inf, scores)
    return {"ids": scores.argmin(axis=-1).astype(np.int32)}


def kmeans_update(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """f32 additions point by point, last point first."""
    x, ids = inputs["x"].astype(F32)[:, ::-1], inputs["ids"][:, ::-1]
    sums = np.zeros(problem.shape_of("sums"), dtype=F32)
    counts = np.zeros(problem.shape_of("counts"), dtype=np.int32)
    for b in range(problem.dims["B"]):
        np.add.at(sums[b], ids[b], x[b])
        np.add.at(counts[b], ids[b], 1)
    means = sums / np.maximum(counts, 1)[..., None].astype(F32)
    c_new = np.where(counts[..., None] == 0, inputs["c_old"].astype(F32), means)
    return {"c_new": narrowed(c_new, problem, "c_new"), "sums": sums, "counts": counts}


def nearest(distances: Array, problem: Problem) -> dict[str, Array]:
    distances = np.where(np.isnan(distances), F32(np.inf), distances)
    ids = np.argsort(distances, axis=-1, kind="stable")[..., : problem.dims["k"]]
    nearest = np.take_along_axis(distances, ids, axis=-1)
    return {"distances": nearest, "ids": ids.astype(np.int32)}


def knn_expanded(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Norms and products; what rounding makes negative is zero."""
    q, x = inputs["q"].astype(F32), inputs["x"].astype(F32)
    with np.errstate(invalid="ignore"):
        norms = np.square(q).sum(-1)[:, :, None] + np.square(x).sum(-1)[:, None]
        return nearest(np.maximum(norms - 2 * (q @ np.swapaxes(x, 1, 2)), F32(0)), problem)


def knn_differences(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Feature by feature, differences first."""
    q, x = inputs["q"].astype(F32), inputs["x"].astype(F32)
    total = np.zeros((*q.shape[:2], x.shape[1]), dtype=F32)
    with np.errstate(invalid="ignore"):
        for d in range(problem.dims["D"]):
            total += np.square(q[:, :, None, d] - x[:, None, :, d])
    return nearest(total, problem)


def knn_graph(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Differences from all rows, that from the row itself taken out of the list."""
    x = inputs["x"].astype(F32)
    total = np.zeros((*x.shape[:2], x.shape[1]), dtype=F32)
    with np.errstate(invalid="ignore"):
        for d in range(problem.dims["D"]):
            total += np.square(x[:, :, None, d] - x[:, None, :, d])
    if not problem.parameters["exclude_self"]:
        return nearest(total, problem)
    own = np.arange(x.shape[1])
    others = np.array([np.delete(own, i) for i in own])[None]
    found = nearest(np.take_along_axis(total, others, axis=2), problem)
    return {**found, "ids": found["ids"] + (found["ids"] >= own[None, :, None])}


def rmsnorm(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    x, w = inputs["x"].astype(F32), inputs["w"].astype(F32)
    with np.errstate(invalid="ignore"):
        mean = np.square(x).sum(axis=-1, keepdims=True) / F32(problem.dims["D"])
        y = x * (F32(1) / np.sqrt(mean + F32(problem.number("eps")))) * w
    return {"y": narrowed(y, problem, "y")}


def softmax(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Powers of two of the scaled logits, as kernels compute them."""
    log2e = F32(np.log2(np.e))
    x = inputs["x"].astype(F32)
    with np.errstate(invalid="ignore"):
        top = x.max(axis=-1, keepdims=True) * log2e
        powers = np.exp2(x * log2e - top)
        y = powers * (F32(1) / powers.sum(axis=-1, keepdims=True))
    return {"y": narrowed(y, problem, "y")}


def attention(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Keys in tiles of 16 from the last to the first, powers rounded to the element type."""
    dims = problem.dims
    q = inputs["q"].astype(F32)
    k, v = (np.repeat(inputs[n].astype(F32), dims["H"] // dims["Hkv"], axis=1) for n in "kv")
    beyond = dims["Lk"] - dims["Lq"] if problem.parameters["causal"] else dims["Lk"]
    top = np.full((*q.shape[:-1], 1), -np.inf, F32)
    total, out = np.zeros_like(top), np.zeros_like(q)
    with np.errstate(invalid="ignore"):
        for first in reversed(range(0, dims["Lk"], 16)):
            keys = np.arange(first, min(first + 16, dims["Lk"]))
            scores = q @ np.swapaxes(k[:, :, keys], 2, 3) * F32(dims["D"] ** -0.5)
            seen = keys <= np.arange(dims["Lq"])[:, None] + beyond
            scores = np.where(seen, scores, F32(-np.inf))
            best = np.maximum(top, scores.max(axis=-1, keepdims=True))
            at = np.where(np.isneginf(best), F32(0), best)
            scale, powers = np.exp(top - at), np.exp(scores - at)
            total = total * scale + powers.sum(axis=-1, keepdims=True)
            out = out * scale + narrowed(powers, problem, "v").astype(F32) @ v[:, :, keys]
            top = best
    return {"o": narrowed(out / np.where(total == 0, F32(1), total), problem, "o")}


def kda_prefill(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Token by token in f32, all heads at once, states rounded to bf16 for the products."""
    heads, depth = problem.dims["H"], problem.dims["D"]
    out = np.zeros(problem.shape_of("o"), F32)
    last = np.zeros(problem.shape_of("ht"), F32)
    q, k, v, g = (inputs[name].astype(F32) for name in "qkvg")
    factor = np.exp(inputs["a_log"])[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        q, k = (x / np.sqrt(np.square(x).sum(-1, keepdims=True) + F32(1e-6)) for x in (q, k))
        b = F32(1) / (F32(1) + np.exp(-inputs["beta"][:, :heads].astype(F32)))
        x = g + inputs["dt_bias"]
        if problem.parameters["bounded"]:
            decay = np.exp(F32(problem.number("lower_bound")) / (F32(1) + np.exp(-factor * x)))
        else:
            decay = np.exp(-factor * np.log1p(np.exp(x)))
        for n, (first, end) in enumerate(pairwise(inputs["cu"].tolist())):
            state = inputs["h0"][n].astype(F32) * F32(problem.parameters["initial"])
            for t in range(first, end):
                state = state * decay[t][:, None, :]
                seen = state.astype(ml_dtypes.bfloat16).astype(F32) @ k[t][..., None]
                update = b[t][:, None, None] * (v[t][..., None] - seen)
                state = state + update * k[t][:, None, :]
                near = state.astype(ml_dtypes.bfloat16).astype(F32)
                out[t] = (near @ q[t][..., None])[..., 0] * F32(depth**-0.5)
            last[n] = state
    return {"o": narrowed(out, problem, "o"), "ht": narrowed(last, problem, "ht")}


def narrowed(value: Array, problem: Problem, name: str) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return value.astype(problem.dtype_of(name))


IMPLEMENTATIONS = {
    "attention/tiles": attention,
    "gemm/tensor-core": gemm_tensor_core,
    "gemm/sequential": gemm_sequential,
    "kda_prefill/f32": kda_prefill,
    "kmeans_assign/f32": kmeans_assign,
    "kmeans_update/reversed": kmeans_update,
    "knn_build/differences": knn_graph,
    "knn_search/differences": knn_differences,
    "knn_search/expanded": knn_expanded,
    "rmsnorm/f32": rmsnorm,
    "softmax/exp2": softmax,
}
