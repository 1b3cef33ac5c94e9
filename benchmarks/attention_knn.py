"""Cases of attention and of the neighbour search. Needs torch and a GPU; search needs FlashLib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from benchmarks.cases import Case, Prepared, normal, relative
from benchmarks.chain import Chain

CHECKED_ROWS = 512


def attention(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Causal, against torch's fused kernels; the last queries of two heads are checked."""
    b, h, shared, length, dim = (shape[s] for s in ("B", "H", "Hkv", "L", "D"))
    q = normal(b, h, length, dim)
    k, v = normal(b, shared, length, dim), normal(b, shared, length, dim)
    o = torch.full_like(q, float("nan"))
    args = {"q": q, "k": k, "v": v, "o": o, "causal": 1}
    fused = torch.nn.functional.scaled_dot_product_attention

    def check() -> tuple[float, bool]:
        chain(args)
        first = max(0, length - CHECKED_ROWS)
        rows = torch.arange(first, length, device="cuda")
        hidden = torch.arange(length, device="cuda") > rows[:, None]
        worst = 0.0
        for batch, head in ((0, 0), (b - 1, h - 1)):
            keys, values = (x[batch, head * shared // h].double() for x in (k, v))
            scores = q[batch, head, rows].double() @ keys.t() * dim**-0.5
            want = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ values
            worst = max(worst, relative(o[batch, head, rows], want, 4e-3)[0])
        return worst, worst < 4e-3 and bool(torch.isfinite(o).all())

    return Prepared(
        ours=lambda: chain(args),
        baseline=lambda: fused(q, k, v, is_causal=True, enable_gqa=h != shared),
        check=check,
    )


def search(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Against FlashLib's Triton search, distances included."""
    from flashlib.primitives.knn import flash_knn

    queries, rows, dim, k = (shape[s] for s in ("Q", "M", "D", "k"))
    q, x = normal(1, queries, dim), normal(1, rows, dim)
    distances = torch.full((1, queries, k), float("nan"), device="cuda")
    ids = torch.full((1, queries, k), -7, device="cuda", dtype=torch.int32)
    args: dict[str, Any] = {"q": q, "x": x, "distances": distances, "ids": ids}
    args |= chain.temporaries(args)

    def check() -> tuple[float, bool]:
        chain(args)
        some = slice(0, min(queries, 64))
        points, database = q[0, some].double(), x[0].double()
        exact = (points**2).sum(1)[:, None] + (database**2).sum(1) - 2 * points @ database.t()
        want = exact.topk(k, largest=False).values
        chosen = exact.gather(1, ids[0, some].long().clamp(0, rows - 1))
        error = (chosen - want).abs().max().item()
        return error, error < 1e-5 * dim and bool((distances[0].diff(dim=1) >= 0).all())

    return Prepared(
        ours=lambda: chain(args),
        baseline=lambda: flash_knn(q, x, k, backend="triton"),
        check=check,
    )


def _attention(name: str, dim: int, **shape: int) -> Case:
    return Case(
        name=name,
        workload="attention",
        schedule="attention/sm_90a.py",
        shape={**shape, "D": dim},
        baseline="torch",
        prepare=attention,
        meta={"DP": dim},
    )


def _search(name: str, schedule: str, shape: Mapping[str, int], **meta: int) -> Case:
    return Case(
        name=name,
        workload="knn_search",
        schedule=f"knn_search/{schedule}.py",
        shape=shape,
        baseline="FlashLib 0.4.0",
        prepare=search,
        meta=meta,
    )


_QUERIES = {"Q": 128, "M": 131072, "D": 128, "k": 10}
_LARGE = {"Q": 128, "M": 1048576, "D": 128, "k": 10}
_MANY = {"Q": 4096, "M": 20000, "D": 128, "k": 10}

CASES: tuple[Case, ...] = (
    _attention("attention_4k", 128, B=4, H=16, Hkv=16, L=4096),
    _attention("attention_16k", 128, B=1, H=16, Hkv=16, L=16384),
    _attention("attention_gqa", 128, B=2, H=32, Hkv=8, L=8192),
    _attention("attention_d64", 64, B=2, H=32, Hkv=32, L=8192),
    _search("search_128", "sm_90a", _QUERIES),
    _search("search_128_lists", "sm_90a_lists", _QUERIES),
    _search("search_1m", "sm_90a", _LARGE, BN=256, NG=65536),
    _search("search_4096", "sm_90a", _MANY, WG=4, WARPS=1),
)
