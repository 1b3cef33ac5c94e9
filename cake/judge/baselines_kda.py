"""Baselines of Kimi Delta Attention: torch token by token, FLA's Triton kernels, FlashKDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import sqrt
from typing import Any

from cake.workloads import Problem

Tensors = Mapping[str, Any]
Outputs = Mapping[str, Any]


def torch_recurrence(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """The recurrence in f32, all heads of a sequence at once: slow, and right."""
    torch: Any = import_module("torch")
    v, cu, o, ht = (tensors[name] for name in ("v", "cu", "o", "ht"))

    def call() -> Outputs:
        q, k = (_normalised(tensors[name].float()) for name in "qk")
        q = q / sqrt(problem.dims["D"])
        b = torch.sigmoid(tensors["beta"][:, : problem.dims["H"]].float())
        decay = torch.exp(_gate(problem, tensors))
        bounds = cu.tolist()
        for n in range(problem.dims["N"]):
            state = tensors["h0"][n].float()
            state = state.clone() if problem.parameters["initial"] else torch.zeros_like(state)
            for t in range(bounds[n], bounds[n + 1]):
                state *= decay[t][:, None, :]
                update = b[t][:, None] * (v[t].float() - (state @ k[t][..., None])[..., 0])
                state += update[..., None] * k[t][:, None, :]
                o[t] = (state @ q[t][..., None])[..., 0]
            ht[n] = state
        return {"o": o, "ht": ht}

    return call


def _normalised(rows: Any) -> Any:
    return rows * (rows.square().sum(-1, keepdim=True) + 1e-6).rsqrt()


def _gate(problem: Problem, tensors: Tensors) -> Any:
    """Natural logarithms of the decays [T, H, D] in f32."""
    torch: Any = import_module("torch")
    x = tensors["g"].float() + tensors["dt_bias"]
    factor = tensors["a_log"].exp()[:, None]
    if problem.parameters["bounded"]:
        return problem.number("lower_bound") * torch.sigmoid(factor * x)
    return -factor * torch.nn.functional.softplus(x)


def fla(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """fla-core's chunk_kda (0.6.0 or later, states stored as [V, D]) with its gate in the kernel.
    A bounded gate takes its faster path for bounded gates."""
    chunk_kda = import_module("fla.ops.kda").chunk_kda
    bounded = bool(problem.parameters["bounded"])
    given = _batched(problem, tensors)
    options = {
        "A_log": tensors["a_log"],
        "dt_bias": tensors["dt_bias"],
        "scale": 1 / sqrt(problem.dims["D"]),
        "initial_state": _initial(problem, tensors),
        "output_final_state": True,
        "use_gate_in_kernel": True,
        "use_qk_l2norm_in_kernel": True,
        "use_beta_sigmoid_in_kernel": True,
        "state_v_first": True,
        "safe_gate": bounded,
        "lower_bound": problem.number("lower_bound") if bounded else None,
        "cu_seqlens": tensors["cu"] if problem.dims["N"] > 1 else None,
    }

    def call() -> Outputs:
        o, ht = chunk_kda(**given, **options)
        return {"o": o[0], "ht": ht}

    return call


def flash_kda(problem: Problem, tensors: Tensors) -> Callable[[], Outputs]:
    """MoonshotAI's FlashKDA (CUTLASS); it has bounded gates only."""
    forward = import_module("flash_kda").fwd
    given = _batched(problem, tensors)
    o, ht = tensors["o"], tensors["ht"]
    options = {
        "A_log": tensors["a_log"],
        "dt_bias": tensors["dt_bias"],
        "lower_bound": problem.number("lower_bound"),
        "initial_state": _initial(problem, tensors),
        "final_state": ht,
        "cu_seqlens": tensors["cu"] if problem.dims["N"] > 1 else None,
    }
    inputs = [given[name] for name in ("q", "k", "v", "g", "beta")]

    def call() -> Outputs:
        forward(*inputs, 1 / sqrt(problem.dims["D"]), o[None], **options)
        return {"o": o, "ht": ht}

    return call


def _batched(problem: Problem, tensors: Tensors) -> dict[str, Any]:
    """Inputs as a batch of one; beta with its heads alone, which is a copy where it has more."""
    made = {name: tensors[name][None] for name in "qkvg"}
    made["beta"] = tensors["beta"][:, : problem.dims["H"]].contiguous()[None]
    return made


def _initial(problem: Problem, tensors: Tensors) -> Any:
    return tensors["h0"] if problem.parameters["initial"] else None
