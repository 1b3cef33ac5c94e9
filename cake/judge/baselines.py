"""Baselines by workload and name: what candidates are timed against.

Everything here runs in the child only; libraries are imported when a baseline is bound. A baseline
may return its outputs in arrays of its own: where a library offers no way to write
into given ones, a copy would be charged to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from cake.judge import baselines_kda
from cake.judge.candidate import Candidate, Refused
from cake.judge.runners import register
from cake.judge.timing import Bind
from cake.workloads import Problem

Tensors = Mapping[str, Any]
Outputs = Mapping[str, Any]
# Takes torch tensors, returns the call that is timed; the call returns the outputs by name.
Baseline = Callable[[Problem, Tensors], Callable[[], Outputs]]


KNN_ELEMENTS = 1 << 28
"""Distances that the search holds at a time: 1 GiB of them, twice that of keys."""


def _module(name: str) -> Any:
    """An optional library; without types where it is not installed."""
    return import_module(name)


class BaselineUnavailable(Exception):
    """The baseline does not exist for this workload, or its library is not installed."""


def bind_baseline(problem: Problem, name: str) -> Bind:
    """The baseline ``name`` of the problem's workload, ready to be bound to arrays of the device.

    Raises :class:`BaselineUnavailable`.
    """
    workload = problem.contract.name
    if (workload, name) not in _BASELINES:
        known = ", ".join(n for w, n in _BASELINES if w == workload) or "none"
        raise BaselineUnavailable(f"{workload} has no baseline `{name}`; there are: {known}")
    baseline = _BASELINES[workload, name]
    try:
        for library in _LIBRARIES[name]:
            _module(library)
    except ImportError as missing:
        raise BaselineUnavailable(f"baseline `{name}` cannot be imported: {missing}") from None
    return lambda tensors: baseline(problem, as_torch(tensors))


@register("baseline")
class BaselineRunner:
    """A baseline in the candidate's place: for A/A runs, and to check the baseline itself.
    The candidate's ``entry`` is its name."""

    def __init__(self, candidate: Candidate, problem: Problem) -> None:
        try:
            self._bind = bind_baseline(problem, candidate.entry)
        except BaselineUnavailable as missing:
            raise Refused(str(missing)) from None

    def run(self, tensors: Mapping[str, Any]) -> None:
        self.bind(tensors)()

    def bind(self, tensors: Mapping[str, Any]) -> Callable[[], None]:
        """The call on these arrays. What the baseline returns in arrays of its own is copied, which
        its time in the baseline's place does not contain."""
        given, call = as_torch(tensors), self._bind(tensors)

        def copied() -> None:
            outputs: Any = call()
            for name, made in outputs.items():
                if made is not given[name]:
                    given[name].copy_(made)

        return copied


def as_torch(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays as torch tensors over the same memory."""
    torch = _module("torch")
    made = {}
    for name, array in tensors.items():
        if isinstance(array, np.ndarray):
            # torch does not know the ml_dtypes types; integers of the same width carry the bits.
            bits = torch.from_numpy(array.view(f"i{array.dtype.itemsize}"))
            made[name] = bits.view(getattr(torch, array.dtype.name))
        else:
            made[name] = array
    return made


def _gemm(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """cuBLAS through torch."""
    torch = _module("torch")
    a, b, d = tensors["a"], tensors["b"], tensors["d"]
    right = b if problem.parameters["b_layout"] == "kn" else b.mT
    product = torch.bmm if a.ndim == 3 else torch.mm
    if d.dtype == a.dtype:
        return lambda: {"d": product(a, right, out=d)}
    if a.is_cuda:
        return lambda: {"d": product(a, right, out_dtype=d.dtype, out=d)}
    # torch's CPU kernels have no product of 16-bit operands with an f32 result.
    return lambda: {"d": product(a.float(), right.float(), out=d)}


def _attention(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """torch's fused kernels, into a new tensor: they take no output. They align a causal mask to
    the first query, so unequal lengths get a mask as a tensor."""
    torch = _module("torch")
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    lq, lk, causal = q.shape[2], k.shape[2], bool(problem.parameters["causal"])
    aligned = causal and lq == lk
    mask = None
    if causal and not aligned:
        mask = torch.ones(lq, lk, dtype=torch.bool, device=q.device).tril(lk - lq)
    attention = torch.nn.functional.scaled_dot_product_attention
    shared = q.shape[1] != k.shape[1]
    return lambda: {"o": attention(q, k, v, attn_mask=mask, is_causal=aligned, enable_gqa=shared)}


def _assign_torch(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """A product with f32 result, then the norms and the argmin, one batch at a time."""
    torch = _module("torch")
    x, c, ids = tensors["x"], tensors["c"], tensors["ids"]

    def scores(batch: int) -> Any:
        norms = c[batch].float().square().sum(-1)
        if x.is_cuda and x.dtype != torch.float32:
            products = torch.mm(x[batch], c[batch].mT, out_dtype=torch.float32)
        else:
            products = x[batch].float() @ c[batch].mT.float()
        return norms - 2 * products

    def call() -> Outputs:
        for batch in range(problem.dims["B"]):
            ids[batch] = scores(batch).argmin(-1)
        return {"ids": ids}

    return call


def _assign_flashlib(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """FlashLib's Triton kernel; it computes the norms of the centroids itself."""
    assign = _module("flashlib.primitives.kmeans").euclid_assign_triton
    x, c, ids = tensors["x"], tensors["c"], tensors["ids"]

    def call() -> Outputs:
        assign(x, c, out=ids)
        return {"ids": ids}

    return call


def _knn(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """Norms and a product with f32 result, then a top-k of keys that hold distance and index, so
    that ties go to the lowest index; a share of the queries at a time."""
    torch = _module("torch")
    q, x, k, rows = tensors["q"], tensors["x"], problem.dims["k"], problem.dims["M"]
    step = max(1, KNN_ELEMENTS // rows)
    index = torch.arange(rows, device=x.device)

    def nearest(batch: int, part: Any) -> tuple[Any, Any]:
        norms = part.float().square().sum(-1)[:, None] + x[batch].float().square().sum(-1)
        if x.is_cuda:
            products = torch.mm(part, x[batch].mT, out_dtype=torch.float32)
        else:
            products = part.float() @ x[batch].mT.float()
        distances = torch.nan_to_num(norms - 2 * products, nan=float("inf")).clamp(min=0)
        # Bits of floats that are not negative are in their order.
        keys = (distances.view(torch.int32).long() << 32) | index
        best = torch.topk(keys, k, largest=False, sorted=True).values
        return (best >> 32).int().view(torch.float32), best.int()

    def call() -> Outputs:
        for batch in range(problem.dims["B"]):
            for first in range(0, problem.dims["Q"], step):
                here = slice(first, first + step)
                distances, ids = nearest(batch, q[batch, here])
                tensors["distances"][batch, here], tensors["ids"][batch, here] = distances, ids
        return {"distances": tensors["distances"], "ids": tensors["ids"]}

    return call


def _knn_build(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """The search with the rows as queries, for one neighbour more where a row is not its own."""
    torch = _module("torch")
    x, k, rows = tensors["x"], problem.dims["k"], problem.dims["M"]
    excluded = int(problem.parameters["exclude_self"])
    wider = k + excluded
    lists = {
        "distances": x.new_empty((x.shape[0], rows, wider), dtype=torch.float32),
        "ids": x.new_empty((x.shape[0], rows, wider), dtype=torch.int32),
    }
    dims = {**problem.dims, "Q": rows, "k": wider}
    search = _knn(replace(problem, dims=dims), {"q": x, "x": x, **lists})
    own = torch.arange(rows, device=x.device)[None, :, None]

    def call() -> Outputs:
        found = search()
        if not excluded:
            return found
        # The row itself, or the last one where as many are nearer.
        itself = found["ids"] == own
        itself[..., -1] |= ~itself.any(-1)
        others = (~itself).nonzero(as_tuple=True)
        return {name: lists[name][others].view(x.shape[0], rows, k) for name in lists}

    return call


def _update_torch(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """Scatter-adds over the clusters of all batches."""
    torch = _module("torch")
    x, c_old, c_new = tensors["x"], tensors["c_old"], tensors["c_new"]
    sums, counts = tensors["sums"], tensors["counts"]
    b, n, k, d = (problem.dims[name] for name in "BNKD")
    offsets = k * torch.arange(b, device=x.device)[:, None]

    def call() -> Outputs:
        flat = (tensors["ids"] + offsets).reshape(-1)
        sums.zero_()
        sums.view(b * k, d).index_add_(0, flat, x.reshape(b * n, d).float())
        counts.copy_(torch.bincount(flat, minlength=b * k).view(b, k))
        means = sums / counts.clamp(min=1)[..., None]
        c_new.copy_(torch.where(counts[..., None] > 0, means, c_old.float()))
        return {"c_new": c_new, "sums": sums, "counts": counts}

    return call


def _update_flashlib(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """FlashLib's sorted update."""
    torch = _module("torch")
    step = _module("flashlib.primitives.kmeans").triton_lloyd_centroid_step_euclid
    x, ids, c_old = tensors["x"], tensors["ids"], tensors["c_old"]
    c_new, sums, counts = tensors["c_new"], tensors["sums"], tensors["counts"]
    shift = torch.empty(counts.shape, dtype=torch.float32, device=x.device)

    def call() -> Outputs:
        step(x, ids, c_old, sums_buf=sums, cnts_buf=counts, new_buf=c_new, shift_buf=shift)
        return {"c_new": c_new, "sums": sums, "counts": counts}

    return call


def _rmsnorm(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """torch's fused kernel, into a new tensor: it takes no output."""
    torch = _module("torch")
    x, w, eps = tensors["x"], tensors["w"], problem.number("eps")
    return lambda: {"y": torch.nn.functional.rms_norm(x, (x.shape[-1],), w, eps)}


def _softmax(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """torch's fused kernel."""
    torch = _module("torch")
    x, y = tensors["x"], tensors["y"]
    return lambda: {"y": torch.softmax(x, dim=-1, out=y)}


_LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch",),
    "flashlib": ("torch", "flashlib.primitives.kmeans"),
    "fla": ("torch", "fla.ops.kda"),
    "flash_kda": ("torch", "flash_kda"),
}
_BASELINES: Mapping[tuple[str, str], Baseline] = {
    ("attention", "torch"): _attention,
    ("gemm", "torch"): _gemm,
    ("kda_prefill", "fla"): baselines_kda.fla,
    ("kda_prefill", "flash_kda"): baselines_kda.flash_kda,
    ("kda_prefill", "torch"): baselines_kda.torch_recurrence,
    ("kmeans_assign", "flashlib"): _assign_flashlib,
    ("kmeans_assign", "torch"): _assign_torch,
    ("kmeans_update", "flashlib"): _update_flashlib,
    ("kmeans_update", "torch"): _update_torch,
    ("knn_build", "torch"): _knn_build,
    ("knn_search", "torch"): _knn,
    ("rmsnorm", "torch"): _rmsnorm,
    ("softmax", "torch"): _softmax,
}
