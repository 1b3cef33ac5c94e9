"""A figure without the baseline that it names."""

from cake.judge import Candidate, TimingPlan, judge
from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, Outcome, Trial, evaluation

_SELF = Candidate(runner="python", entry="itself", text=SOFTMAX)


def _compared(plan: TimingPlan) -> Trial:
    """Caught: there is no ratio. How far one of equals is from 1 depends on what else the machine
    does; ``benchmarks/judge_noise.py`` measures it."""

    def trial() -> Outcome:
        verdict = judge(evaluation(SOFTMAX, timing=plan))
        ratio = verdict.timings[0].ratio
        if ratio is None:
            detail = verdict.timings[0].detail
            return Outcome(caught=True, evidence=f"no ratio: {detail}")
        text = f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) beside itself"
        return Outcome(caught=False, evidence=text)

    return trial


CLASS = IntegrityClass(
    name="missing-baseline",
    description="weak, swapped or missing baseline",
    caught_by="no baseline replaces another, and every ratio names its own",
    because="no baseline `cutlass`",
    cheats={"missing": _compared(TimingPlan(baseline="cutlass", warmup=1, samples=4))},
    timed=True,
    honest=_compared(TimingPlan(rival=_SELF, warmup=4, samples=40, processes=2)),
)
