"""Cases of Kimi Delta Attention over packed sequences. Needs torch, a GPU, and the baselines.

The six headline shapes, and few heads. Inputs are those of the published benchmarks: everything
standard normal but A_log and dt_bias, uniform in [0, 1), and states of 0.25 times a normal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks.cases import Case, Prepared, normal, relative
from benchmarks.chain import Chain
from cake.judge import baselines_kda
from cake.workloads import get, problem

DIM = 128
LOWER_BOUND = -5.0
MIXED = (1300, 547, 2048, 963, 271, 3063)
LIMIT = 1e-2
"""The contract's: relative L2 error of outputs and of states."""

Baseline = Callable[..., Callable[[], Mapping[str, Any]]]


def lengths(shape: Mapping[str, int]) -> tuple[int, ...]:
    """The sequences of a case: as many as MIXED has are those, otherwise they are equal."""
    count = shape["N"]
    return MIXED if count == len(MIXED) else (shape["T"] // count,) * count


def inputs(shape: Mapping[str, int]) -> dict[str, Any]:
    """The contract's tensors on the GPU, outputs full of NaN."""
    tokens, heads, count = shape["T"], shape["H"], shape["N"]
    made: dict[str, Any] = {name: normal(tokens, heads, DIM) for name in "qkvg"}
    made["beta"] = normal(tokens, heads)
    made["a_log"] = torch.rand(heads, device="cuda")
    made["dt_bias"] = torch.rand(heads, DIM, device="cuda")
    ends = torch.tensor([0, *lengths(shape)], device="cuda")
    made["cu"] = ends.cumsum(0)
    made["h0"] = 0.25 * torch.randn(count, heads, DIM, DIM, device="cuda")
    made["o"] = torch.full_like(made["v"], float("nan"))
    made["ht"] = torch.full_like(made["h0"], float("nan"))
    return made


def expected(given: Mapping[str, Any], head: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs [T, V] and states [N, V, D] of a head, token by token in float64."""
    q, k, v, g = (given[name][:, head].double() for name in "qkvg")
    q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    x = given["a_log"][head].double().exp() * (g + given["dt_bias"][head].double())
    decay = (LOWER_BOUND * torch.sigmoid(x)).exp()
    b = torch.sigmoid(given["beta"][:, head].double())
    states, outputs = given["h0"][:, head].double().clone(), torch.empty_like(v)
    bounds = given["cu"].tolist()
    for n, state in enumerate(states):
        for t in range(bounds[n], bounds[n + 1]):
            state *= decay[t]
            state += torch.outer(b[t] * (v[t] - state @ k[t]), k[t])
            outputs[t] = state @ q[t] * DIM**-0.5
    return outputs, states


def prefill(baseline: Baseline) -> Callable[[Chain, Mapping[str, int]], Prepared]:
    """A case against ``baseline``; the first and the last head are checked."""

    def prepare(chain: Chain, shape: Mapping[str, int]) -> Prepared:
        given = inputs(shape)
        args = {**given, "bounded": 1, "lower_bound": LOWER_BOUND, "initial": 1}
        dims = {**shape, "Hb": shape["H"], "N1": shape["N"] + 1, "D": DIM, "V": DIM}
        instance = problem(get("kda_prefill"), dims, "bf16")
        theirs = {name: torch.empty_like(given[name]) for name in ("o", "ht")}

        def check() -> tuple[float, bool]:
            chain(args)
            worst = 0.0
            for head in {0, shape["H"] - 1}:
                o, ht = expected(given, head)
                worst = max(worst, relative(given["o"][:, head], o, LIMIT)[0])
                worst = max(worst, relative(given["ht"][:, head], ht, LIMIT)[0])
            finite = all(bool(torch.isfinite(given[name]).all()) for name in ("o", "ht"))
            return worst, worst < LIMIT and finite

        return Prepared(
            ours=lambda: chain(args),
            baseline=baseline(instance, {**given, **theirs}),
            check=check,
        )

    return prepare


def _case(name: str, heads: int, tokens: int, count: int, flash: bool) -> Case:
    return Case(
        name=f"{name}_flash" if flash else name,
        workload="kda_prefill",
        schedule="kda_prefill/sm_90a.py",
        shape={"H": heads, "T": tokens, "N": count},
        baseline="FlashKDA" if flash else "fla-core",
        prepare=prefill(baselines_kda.flash_kda if flash else baselines_kda.fla),
    )


_SHAPES = {
    "kda_h96": (96, 8192, 1),
    "kda_h96_mixed": (96, 8192, 6),
    "kda_h96_8x1024": (96, 8192, 8),
    "kda_h64": (64, 8192, 1),
    "kda_h64_mixed": (64, 8192, 6),
    "kda_h64_8x1024": (64, 8192, 8),
    "kda_h32": (32, 8192, 1),
    "kda_h12": (12, 8192, 1),
}
_BASELINES = (False, True) if find_spec("flash_kda") else (False,)
"""FlashKDA is built from source and seldom at hand."""
CASES = tuple(_case(name, *shape, flash) for flash in _BASELINES for name, shape in _SHAPES.items())
