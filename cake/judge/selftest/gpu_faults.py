"""Kernels that fault, hang, or write beside a tensor: they end their own process alone."""

from dataclasses import replace

from cake.judge.selftest.sources import CUDA_SOFTMAX, changed
from cake.judge.selftest.twins import LIMITS, PLAN, IntegrityClass, evaluation, judged

_LINE = "    float top = -__int_as_float(0x7f800000);\n"
_SHORT = replace(LIMITS, run=5.0)


def _with(statement: str) -> str:
    return changed(CUDA_SOFTMAX, _LINE, _LINE + f"    {statement}\n")


_FAULTS = {
    "illegal address": "if (threadIdx.x == 0) *(volatile float*)(1ll << 60) = 0;",
    "hang": "while (*(volatile float*)y != 7.0f) {}",
    "write behind": "if (blockIdx.x == 0 && threadIdx.x == 0) y[M * N + 3] = 0;",
    "skipped rows": "if (blockIdx.x == 1) return;",
    "stale tail": "if (N > 32) N = 32;",
}

CLASS = IntegrityClass(
    name="gpu-faults",
    description="illegal addresses, hangs, writes beside a tensor, skipped blocks",
    caught_by="a process per candidate, deadlines, guards and poison on the device",
    because={
        "illegal address": "crashed: .*(?i:illegal)",
        "hang": "hang: no answer within 5 s",
        "write behind": "bytes behind the tensor",
        "skipped rows": "never written",
        "stale tail": "never written",
    },
    cheats={
        name: judged(evaluation(_with(text), runner="cuda", limits=_SHORT))
        for name, text in _FAULTS.items()
    },
    honest=judged(evaluation(CUDA_SOFTMAX, runner="cuda", timing=PLAN)),
    device="cuda",
)
