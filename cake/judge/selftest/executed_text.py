"""Schedules that try to be programs."""

from pathlib import Path
from tempfile import TemporaryDirectory

from cake.judge import Candidate, Evaluation, judge
from cake.judge.ir_runner import PLUGIN, RUNNER
from cake.judge.selftest.twins import CASE, IntegrityClass, Outcome, Trial, outcome_of

_SOFTMAX = """\
@cake.schedule(target="sm_80")
def softmax(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", "N"]):
    (row,) = grid(M)
    rows = role(warps=1)
    with rows:
        top = -inf
        for i in range(lane(), N, 32):
            top = max(top, load(x[row, i]))
        top = warp_max(top)
        total = 0.0
        for i in range(lane(), N, 32):
            total = total + exp2((load(x[row, i]) - top) * 1.4426950408889634)
        total = warp_sum(total)
        for i in range(lane(), N, 32):
            store(y[row, i], exp2((load(x[row, i]) - top) * 1.4426950408889634) / total)
"""


def _judged(prefix: str) -> Trial:
    """``prefix`` may name the file ``{mark}``, which nothing may create."""

    def trial() -> Outcome:
        with TemporaryDirectory() as folder:
            mark = Path(folder) / "mark"
            text = prefix.format(mark=mark) + _SOFTMAX
            verdict = judge(
                Evaluation(
                    workload="softmax",
                    candidate=Candidate(runner=RUNNER, entry="twin", text=text),
                    cases=(CASE,),
                    families=("normal",),
                    plugins=(PLUGIN,),
                )
            )
            if mark.exists():
                return Outcome(caught=False, evidence="the text was executed")
            return outcome_of(verdict)

    return trial


CLASS = IntegrityClass(
    name="executed-text",
    description="text of a schedule that would do something if it were executed",
    caught_by="schedules are parsed, never executed",
    because="build_failed",
    cheats={
        "statement": _judged("open({mark!r}, 'w')\n"),
        "decorator": _judged("@open({mark!r}, 'w').close\ndef f(): pass\n\n\n"),
    },
    honest=_judged("# open({mark!r}, 'w')\n"),
)
