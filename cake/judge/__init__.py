"""The judge: decides in a process of its own whether a candidate is right, and how fast it is.

:func:`judge` takes an :class:`Evaluation` and returns a :class:`Verdict`. Packages that can build
candidates register a runner factory with :func:`register`.
"""

from cake.judge.candidate import BuildError, Candidate, Refused, Runner, RunnerFactory
from cake.judge.evaluation import Evaluation, Limits, TimingPlan
from cake.judge.link import JudgeUnavailable
from cake.judge.parent import judge
from cake.judge.runners import register
from cake.judge.verdict import CaseResult, Columns, Finding, Summary, TimingResult, Verdict

__all__ = [
    "BuildError",
    "Candidate",
    "CaseResult",
    "Columns",
    "Evaluation",
    "Finding",
    "JudgeUnavailable",
    "Limits",
    "Refused",
    "Runner",
    "RunnerFactory",
    "Summary",
    "TimingPlan",
    "TimingResult",
    "Verdict",
    "judge",
    "register",
]
