"""Data that stay in L2 from one timed call to the next."""

from cake.judge import Candidate, TimingPlan, judge
from cake.judge.selftest.sources import CUDA_SOFTMAX, changed
from cake.judge.selftest.twins import IntegrityClass, Outcome, Trial, evaluation
from cake.workloads import Case

_CASE = Case(shape={"M": 2048, "N": 2048}, dtype="f32")
"""16 MiB in and 16 MiB out: both fit into the L2 of a large GPU."""
_ADVANTAGE = 1.03
_LOAD = """\
__device__ __forceinline__ float keep(const float* p) {
    float v;
    asm volatile(
        "{ .reg .b64 stay; createpolicy.fractional.L2::evict_last.b64 stay, 1.0;"
        " ld.global.L2::cache_hint.f32 %0, [%1], stay; }" : "=f"(v) : "l"(p));
    return v;
}
extern "C" """
_PINNED = changed(changed(CUDA_SOFTMAX, 'extern "C" ', _LOAD), "in[i]", "keep(in + i)")
_PLAIN = Candidate(runner="cuda", entry="plain", text=CUDA_SOFTMAX)


def _timed(text: str, *, pins: bool) -> Trial:
    """Caught: pinned data do not survive the flush, so that cold calls take longer than warm."""

    def trial() -> Outcome:
        plan = TimingPlan(rival=_PLAIN, warmup=3, samples=40, columns=True)
        verdict = judge(evaluation(text, runner="cuda", cases=(_CASE,), timing=plan))
        timing = verdict.timings[0] if verdict.timings else None
        if timing is None or timing.ratio is None or timing.columns is None:
            return Outcome(caught=not pins, evidence=f"{verdict.status}: {verdict.detail[:200]}")
        warm, cold = timing.columns.warm_ms or 0.0, timing.candidate.median
        evidence = (
            f"{timing.ratio.ratio:.3f} beside the plain kernel; {cold:.4f} ms cold, "
            f"{warm:.4f} ms warm, by {timing.clock}"
        )
        gains = timing.ratio.low > _ADVANTAGE
        evicted = not gains and cold > _ADVANTAGE * warm
        return Outcome(caught=evicted if pins else not evicted, evidence=evidence)

    return trial


CLASS = IntegrityClass(
    name="gpu-residency",
    description="inputs pinned in L2 with evict-last loads",
    caught_by="L2 is reset, and written and read over, before every timed call",
    because="ms cold",
    cheats={"evict last": _timed(_PINNED, pins=True)},
    honest=_timed(CUDA_SOFTMAX, pins=False),
    timed=True,
    device="cuda",
)
