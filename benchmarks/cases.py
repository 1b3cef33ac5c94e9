"""What the tables of docs/perf measure: schedule, shape, baseline, limit. Needs torch and a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.chain import Chain

Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A case on the device: our call, the baseline's, and a check of our result.

    ``check`` returns an error figure and whether it is within the limit of the case.
    """

    ours: Call
    baseline: Call
    check: Callable[[], tuple[float, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the results."""

    name: str
    workload: str
    schedule: str
    shape: Mapping[str, int]
    baseline: str
    prepare: Callable[[Chain, Mapping[str, int]], Prepared]
    meta: Mapping[str, Any] = field(default_factory=dict)
    elaborated_for: str | None = None
    """A newer architecture than that of the schedule file, as the library elaborates it."""
    target: str = ""
    """What the issue asks for, in words."""


def normal(*shape: int) -> torch.Tensor:
    """Standard normal bf16 on the GPU."""
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def relative(got: torch.Tensor, want: torch.Tensor, limit: float) -> tuple[float, bool]:
    """The relative L2 error, and whether it is within the limit."""
    error = ((got.double() - want).norm() / want.norm()).item()
    return error, error < limit


def gemm(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Against cuBLAS through torch.matmul; checked against float32 products of the inputs."""
    m, n, k = shape["M"], shape["N"], shape["K"]
    a, b = normal(m, k), normal(n, k)
    d = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(d)
    args = {"a": a, "b": b, "d": d}

    def check() -> tuple[float, bool]:
        chain(args)
        rows = slice(0, 2048)
        return relative(d[rows], a[rows].double() @ b.double().t(), 4e-3)

    return Prepared(
        ours=lambda: chain(args), baseline=lambda: torch.matmul(a, b.t(), out=out), check=check
    )


def assign(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Against FlashLib's Triton assignment with norms given; ours computes them in the call."""
    from flashlib.primitives.kmeans import euclid_assign_triton

    b, n, k, d = (shape[s] for s in "BNKD")
    x, c = normal(b, n, d), normal(b, k, d)
    ids = torch.full((b, n), -7, device="cuda", dtype=torch.int32)
    out = torch.empty_like(ids)
    given = (c.float() ** 2).sum(-1)
    args = {"x": x, "c": c, "ids": ids}
    args |= chain.temporaries(args)

    def check() -> tuple[float, bool]:
        chain(args)
        worst = 0.0
        for batch in range(b):
            centroids = c[batch].double()
            for rows in torch.arange(n, device="cuda").split(16384):
                points = x[batch, rows].double()
                distances = (centroids**2).sum(1)[None] - 2.0 * points @ centroids.t()
                chosen = ids[batch, rows].long().clamp(0, k - 1)[:, None]
                excess = distances.gather(1, chosen)[:, 0] - distances.min(1).values
                worst = max(worst, excess.max().item())
        return worst, worst < 1e-4 and 0 <= int(ids.min()) <= int(ids.max()) < k

    return Prepared(
        ours=lambda: chain(args),
        baseline=lambda: euclid_assign_triton(x, c, out=out, c_sq=given),
        check=check,
    )


def update(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Against FlashLib's centroid step (sort, sums, means)."""
    from flashlib.primitives.kmeans import triton_lloyd_centroid_step_euclid

    b, n, k, d = (shape[s] for s in "BNKD")
    x, old = normal(b, n, d), normal(b, k, d)
    ids = torch.randint(0, k, (b, n), device="cuda", dtype=torch.int32)
    sums = torch.full((b, k, d), float("nan"), device="cuda")
    counts = torch.full((b, k), -7, device="cuda", dtype=torch.int32)
    new = torch.full_like(old, float("nan"))
    args = {"x": x, "ids": ids, "sums": sums, "counts": counts, "c_old": old, "c_new": new}
    args |= chain.temporaries(args)
    theirs = {
        "sums_buf": torch.zeros(b, k, d, device="cuda"),
        "cnts_buf": torch.zeros(b, k, device="cuda", dtype=torch.int32),
        "new_buf": torch.empty_like(old),
        "shift_buf": torch.empty(b, k, device="cuda"),
    }

    def check() -> tuple[float, bool]:
        chain(args)
        want = torch.zeros(b, k, d, device="cuda", dtype=torch.float64)
        want.scatter_add_(1, ids.long()[:, :, None].expand(-1, -1, d), x.double())
        number = torch.zeros_like(counts).scatter_add_(1, ids.long(), torch.ones_like(ids))
        error, good = relative(sums, want, 1e-6)
        means = torch.where(
            number[:, :, None] > 0, want / number.clamp(min=1)[:, :, None], old.double()
        )
        _, close = relative(new, means, 4e-3)
        return error, good and close and bool((counts == number).all())

    return Prepared(
        ours=lambda: chain(args),
        baseline=lambda: triton_lloyd_centroid_step_euclid(x, ids, old, **theirs),
        check=check,
    )


def rmsnorm(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Against torch.nn.functional.rms_norm."""
    m, d = shape["M"], shape["D"]
    x, w = normal(m, d), normal(d)
    y = torch.full_like(x, float("nan"))
    args = {"x": x, "w": w, "y": y, "eps": 1e-5}

    def check() -> tuple[float, bool]:
        chain(args)
        wide = x.double()
        scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5)
        return relative(y, wide * scale * w.double(), 4e-3)

    return Prepared(
        ours=lambda: chain(args),
        baseline=lambda: torch.nn.functional.rms_norm(x, (d,), w, 1e-5),
        check=check,
    )


def softmax(chain: Chain, shape: Mapping[str, int]) -> Prepared:
    """Against torch.softmax."""
    x = normal(shape["M"], shape["N"])
    y = torch.full_like(x, float("nan"))
    args = {"x": x, "y": y}

    def check() -> tuple[float, bool]:
        chain(args)
        return relative(y, torch.softmax(x.double(), -1), 4e-3)

    return Prepared(ours=lambda: chain(args), baseline=lambda: torch.softmax(x, -1), check=check)


CELL = {"B": 32, "N": 65536, "K": 1024, "D": 128}


def _cube(n: int) -> dict[str, int]:
    return {"M": n, "N": n, "K": n}


def _small(m: int, stages: int) -> Case:
    return Case(
        name=f"gemm_m{m}",
        workload="gemm",
        schedule="gemm/sm_90a_small_m.py",
        shape={"M": m, "N": 4096, "K": 4096},
        baseline="cuBLAS",
        prepare=gemm,
        meta={"MP": max(m, 32), "STAGES": stages},
        target="at least 0.80",
    )


CASES: tuple[Case, ...] = (
    Case(
        name="assign",
        workload="kmeans_assign",
        schedule="kmeans_assign/sm_90a.py",
        shape=CELL,
        baseline="FlashLib 0.4.0",
        prepare=assign,
        target="at most 0.90 ms, at least 1.5",
    ),
    Case(
        name="update",
        workload="kmeans_update",
        schedule="kmeans_update/sm_80.py",
        elaborated_for="sm_90a",
        shape=CELL,
        baseline="FlashLib 0.4.0",
        prepare=update,
        meta={"PDL": True},
        target="at most 0.40 ms",
    ),
    Case(
        name="update_deterministic",
        workload="kmeans_update",
        schedule="kmeans_update/sm_90a_deterministic.py",
        shape=CELL,
        baseline="FlashLib 0.4.0",
        prepare=update,
        target="at most 0.40 ms",
    ),
    Case(
        name="gemm_8192",
        workload="gemm",
        schedule="gemm/sm_90a.py",
        shape=_cube(8192),
        baseline="cuBLAS",
        prepare=gemm,
        target="at least 0.85",
    ),
    Case(
        name="gemm_4096",
        workload="gemm",
        schedule="gemm/sm_90a.py",
        shape=_cube(4096),
        baseline="cuBLAS",
        prepare=gemm,
        target="at least 0.80",
    ),
    _small(16, 10),
    _small(32, 10),
    _small(64, 10),
    _small(128, 6),
    Case(
        name="gemm_sm80_8192",
        workload="gemm",
        schedule="gemm/sm_80.py",
        shape=_cube(8192),
        baseline="cuBLAS",
        prepare=gemm,
        target="at least 0.55",
    ),
    Case(
        name="rmsnorm",
        workload="rmsnorm",
        schedule="rmsnorm/sm_80.py",
        shape={"M": 8192, "D": 4096},
        baseline="torch",
        prepare=rmsnorm,
    ),
    Case(
        name="softmax",
        workload="softmax",
        schedule="softmax/sm_80.py",
        shape={"M": 8192, "N": 4096},
        baseline="torch",
        prepare=softmax,
    ),
)
