"""Data that stay in L2 from one timed call to the next."""

from cake.judge import TimingPlan, judge
from cake.judge.selftest.sources import CUDA_SOFTMAX, changed
from cake.judge.selftest.twins import IntegrityClass, Outcome, Trial, evaluation
from cake.workloads import Case

_CASE = Case(shape={"M": 2048, "N": 2048}, dtype="f32")
"""16 MiB in and 16 MiB out: both fit into the L2 of a large GPU."""
_BANDWIDTH = 6e12
"""Bytes a second that no memory of a GPU with an L2 of that size delivers, yet L2 does."""
_LOAD = """\
__device__ __forceinline__ float keep(const float* p) {
    float v;
    asm volatile("ld.global.L2::evict_last.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}
extern "C" """
_PINNED = changed(changed(CUDA_SOFTMAX, 'extern "C" ', _LOAD), "in[i]", "keep(in + i)")


def _timed(text: str, *, pins: bool) -> Trial:
    """Caught: the input was read from memory all the same."""

    def trial() -> Outcome:
        plan = TimingPlan(warmup=3, samples=12, columns=True)
        verdict = judge(evaluation(text, runner="cuda", cases=(_CASE,), timing=plan))
        if not verdict.timings:
            return Outcome(caught=not pins, evidence=f"{verdict.status}: {verdict.detail[:200]}")
        timing = verdict.timings[0]
        least = 1e3 * 4 * 2048 * 2048 / _BANDWIDTH
        from_memory = timing.candidate.median > least
        warm = (timing.columns and timing.columns.warm_ms) or 0.0
        cold = timing.candidate.median
        evidence = f"{cold:.4f} ms cold, {warm:.4f} ms warm, by {timing.clock}"
        return Outcome(caught=from_memory if pins else not from_memory, evidence=evidence)

    return trial


CLASS = IntegrityClass(
    name="gpu-residency",
    description="inputs pinned in L2 with evict-last loads",
    caught_by="L2 is written and read over before every timed call",
    because="ms cold",
    cheats={"evict last": _timed(_PINNED, pins=True)},
    honest=_timed(CUDA_SOFTMAX, pins=False),
    timed=True,
    device="cuda",
)
