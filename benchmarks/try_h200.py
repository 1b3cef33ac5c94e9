"""Correctness and time of the shipped schedules on the GPU at hand, beside their baselines."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.chain import Chain
from benchmarks.timing import interleaved, median

ROWS: list[dict[str, Any]] = []


def record(name: str, shape: dict[str, int], ours: str, times: dict[str, list[float]], **more: Any) -> None:
    """Print and keep one row: ours against the baseline named 'base'."""
    mine, base = median(times[ours]), median(times["base"])
    row = {"name": name, "shape": shape, "ours_ms": mine, "baseline_ms": base, "ratio": base / mine}
    ROWS.append(row | more)
    print(f"{name:28} {shape!s:48} ours {mine:.4f} base {base:.4f} ratio {base / mine:.3f}", flush=True)


def gemm(path: str, m: int, n: int, k: int, samples: int, **meta: Any) -> None:
    chain = Chain(path, **meta)
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    d = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    args = {"a": a, "b": b, "d": d}
    chain(args)
    want = (a.float() @ b.float().t()).double()
    error = ((d.double() - want).norm() / want.norm()).item()
    print(path, meta, chain.logs, f"error {error:.2e}", flush=True)
    if samples:
        out = torch.empty_like(d)
        times = interleaved(
            {"ours": lambda: chain(args), "base": lambda: torch.matmul(a, b.t(), out=out)},
            samples=samples,
        )
        record(path, {"M": m, "N": n, "K": k}, "ours", times, baseline="cuBLAS", error=error)


def assign(b: int, n: int, k: int, d: int, samples: int, **meta: Any) -> None:
    chain = Chain("kmeans_assign/sm_90a.py", **meta)
    x = torch.randn(b, n, d, device="cuda", dtype=torch.bfloat16)
    c = torch.randn(b, k, d, device="cuda", dtype=torch.bfloat16)
    padded = torch.empty(b, (k + 3) // 4 * 4, device="cuda")
    ids = torch.full((b, n), -7, device="cuda", dtype=torch.int32)
    args = {"x": x, "c": c, "csq": padded[:, :k], "ids": ids}
    chain(args)
    wrong = 0
    for i in range(min(b, 2)):
        rows = slice(0, min(n, 16384))
        cd = c[i].double()
        dist = (cd * cd).sum(1)[None] - 2.0 * x[i, rows].double() @ cd.t()
        got = dist.gather(1, ids[i, rows].long().clamp(0, k - 1)[:, None])[:, 0]
        wrong += int((got - dist.min(1).values > 1e-3).sum())
    low, high = int(ids.min()), int(ids.max())
    print("assign", (b, n, k, d), meta, chain.logs, f"wrong {wrong} ids in [{low}, {high}]", flush=True)
    if samples:
        calls: dict[str, Callable[[], object]] = {"ours": lambda: chain(args)}
        calls["base"] = flashlib_assign(x, c)
        times = interleaved(calls, samples=samples)
        record("assign", {"B": b, "N": n, "K": k, "D": d}, "ours", times, meta=str(meta), wrong=wrong)


def flashlib_assign(x: torch.Tensor, c: torch.Tensor) -> Callable[[], object]:
    """FlashLib's Triton assignment, with the norms of the centroids given."""
    from flashlib.primitives.kmeans import euclid_assign_triton

    out = torch.empty(x.shape[:2], device="cuda", dtype=torch.int32)
    csq = (c.float() ** 2).sum(-1)
    return lambda: euclid_assign_triton(x, c, out=out, c_sq=csq)


def update(b: int, n: int, k: int, d: int, samples: int, **meta: Any) -> None:
    chain = Chain("kmeans_update/sm_90a.py", **meta)
    x = torch.randn(b, n, d, device="cuda", dtype=torch.bfloat16)
    old = torch.randn(b, k, d, device="cuda", dtype=torch.bfloat16)
    ids = torch.randint(0, k, (b, n), device="cuda", dtype=torch.int32)
    sums = torch.full((b, k, d), float("nan"), device="cuda")
    counts = torch.full((b, k), -7, device="cuda", dtype=torch.int32)
    new = torch.full_like(old, float("nan"))
    args = {"x": x, "ids": ids, "sums": sums, "counts": counts, "c_old": old, "c_new": new}
    chain(args)
    want = torch.zeros(b, k, d, device="cuda", dtype=torch.float64)
    want.scatter_add_(1, ids.long()[:, :, None].expand(-1, -1, d), x.double())
    want_counts = torch.zeros(b, k, device="cuda", dtype=torch.int32)
    want_counts.scatter_add_(1, ids.long(), torch.ones_like(ids))
    error = ((sums.double() - want).norm() / want.norm()).item()
    print("update", (b, n, k, d), meta, chain.logs, f"error {error:.2e} counts {bool((counts == want_counts).all())}", flush=True)
    if samples:
        times = interleaved({"ours": lambda: chain(args), "base": lambda: x.clone()}, samples=samples)
        record("update", {"B": b, "N": n, "K": k, "D": d}, "ours", times, baseline="copy of x", meta=str(meta))


def rows_kernel(name: str, m: int, n: int, samples: int, **meta: Any) -> None:
    chain = Chain(f"{name}/sm_80.py", **meta)
    x = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(n, device="cuda", dtype=torch.bfloat16)
    y = torch.full_like(x, float("nan"))
    args: dict[str, Any] = {"x": x, "y": y, "w": w, "eps": 1e-5}
    chain(args)
    xf = x.double()
    if name == "softmax":
        want = torch.softmax(xf, -1)
        base = lambda: torch.softmax(x, -1)  # noqa: E731
    else:
        want = xf * torch.rsqrt((xf * xf).mean(-1, keepdim=True) + 1e-5) * w.double()
        base = lambda: torch.nn.functional.rms_norm(x, (n,), w, 1e-5)  # noqa: E731
    error = ((y.double() - want).norm() / want.norm()).item()
    print(name, (m, n), meta, chain.logs, f"error {error:.2e}", flush=True)
    if samples:
        times = interleaved({"ours": lambda: chain(args), "base": base}, samples=samples)
        record(name, {"M": m, "N": n}, "ours", times, baseline="torch", error=error)


CASES: dict[str, Callable[[], None]] = {
    "gemm_small": lambda: gemm("gemm/sm_90a.py", 1000, 1016, 1048, 0),
    "gemm_4096": lambda: gemm("gemm/sm_90a.py", 4096, 4096, 4096, 30),
    "gemm_8192": lambda: gemm("gemm/sm_90a.py", 8192, 8192, 8192, 20),
    "gemm80_small": lambda: gemm("gemm/sm_80.py", 1000, 1016, 1048, 0),
    "gemm80_4096": lambda: gemm("gemm/sm_80.py", 4096, 4096, 4096, 20),
    "gemm80_8192": lambda: gemm("gemm/sm_80.py", 8192, 8192, 8192, 20),
    "small_16": lambda: gemm("gemm/sm_90a_small_m.py", 16, 4096, 4096, 30, MP=16, STAGES=12),
    "small_32": lambda: gemm("gemm/sm_90a_small_m.py", 32, 4096, 4096, 30, MP=32, STAGES=10),
    "small_64": lambda: gemm("gemm/sm_90a_small_m.py", 64, 4096, 4096, 30, MP=64, STAGES=10),
    "small_128": lambda: gemm("gemm/sm_90a_small_m.py", 128, 4096, 4096, 30, MP=128, STAGES=6),
    "assign_small": lambda: assign(2, 1000, 300, 96, 0),
    "assign": lambda: assign(32, 65536, 1024, 128, 20),
    "assign_g1": lambda: assign(32, 65536, 1024, 128, 10, GROUP=1),
    "assign_g8": lambda: assign(32, 65536, 1024, 128, 10, GROUP=8),
    "assign_h64": lambda: assign(32, 65536, 1024, 128, 10, HEAD=64),
    "assign_plain": lambda: assign(32, 65536, 1024, 128, 10, GROUP=1),
    "gemm80_8192_k64": lambda: gemm("gemm/sm_80.py", 8192, 8192, 8192, 10, BK=64, STAGES=3),
    "gemm80_8192_s4": lambda: gemm("gemm/sm_80.py", 8192, 8192, 8192, 10, STAGES=4),
    "rmsnorm_w8": lambda: rows_kernel("rmsnorm", 8192, 4096, 20, WARPS=8, PER=2),
    "update_small": lambda: update(2, 3000, 300, 96, 0, V=2),
    "update": lambda: update(32, 65536, 1024, 128, 20),
    "update_8k": lambda: update(32, 65536, 1024, 128, 10, CHUNK=8192),
    "rmsnorm": lambda: rows_kernel("rmsnorm", 8192, 4096, 20),
    "softmax": lambda: rows_kernel("softmax", 8192, 4096, 20),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name in options.cases:
        began = time.time()
        try:
            CASES[name]()
        except Exception:
            print(f"{name} FAILED", flush=True)
            traceback.print_exc(limit=6, file=sys.stdout)
        print(f"[{name}: {time.time() - began:.1f} s]", flush=True)
    if options.out:
        options.out.write_text(json.dumps(ROWS, indent=1))


if __name__ == "__main__":
    main()
