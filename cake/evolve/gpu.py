"""Measuring candidates on a GPU, where there is one that runs code for the target."""

from __future__ import annotations

from dataclasses import dataclass

from cake.diag import CakeError, Diagnostic, to_json
from cake.evolve.findings import JUDGED, NO_GPU, error
from cake.evolve.setting import Setting
from cake.evolve.space import Point
from cake.judge import Candidate, Evaluation, JudgeUnavailable, TimingPlan, Verdict, judge
from cake.judge.ir_runner import PLUGIN, RUNNER
from cake.kernels import with_meta
from cake.runtime import driver
from cake.targets import get
from cake.workloads import Case

SEARCH_FAMILIES = ("normal",)
"""Input families of a measurement in the search; the winner is judged on all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU that runs code for the target."""

    name: str


def find_gpu(target: str, device: str) -> Gpu | None:
    """The GPU to measure on, None to work on the CPU.

    ``device`` is ``auto``, ``cpu`` or ``cuda``. Raises :class:`CakeError` (``no-gpu-for-target``)
    if ``cuda`` is wanted and there is none.
    """
    if device == "cpu":
        return None
    capability = get(target).capability
    try:
        found = driver.device(0)
        problem = ""
        if found.capability != capability:
            problem = f"{found.name} has compute capability {_dotted(found.capability)}"
    except CakeError as absent:
        problem = absent.diagnostics[0].message
    if not problem:
        return Gpu(name=found.name)
    if device == "auto":
        return None
    raise error(
        NO_GPU,
        f"{target} needs a GPU of compute capability {_dotted(capability)}; {problem}",
        helps=("leave `--device cuda` out to verify, simulate, build and estimate on the CPU",),
    )


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


def measure(setting: Setting, point: Point) -> Verdict:
    """The judge's verdict on a candidate at the shape of the run, with times."""
    return _judged(
        setting, point, (setting.case,), SEARCH_FAMILIES, TimingPlan(baseline=setting.baseline)
    )


def grade(setting: Setting, point: Point, cases: tuple[Case, ...]) -> Verdict:
    """The judge's verdict on all input families at ``cases``, with new seeds in a new process."""
    return _judged(setting, point, cases, (), None)


def _judged(
    setting: Setting,
    point: Point,
    cases: tuple[Case, ...],
    families: tuple[str, ...],
    timing: TimingPlan | None,
) -> Verdict:
    variant = setting.variant(point.variant)
    candidate = Candidate(
        runner=RUNNER,
        entry=variant.name,
        path=variant.path,
        text=with_meta(variant.text, variant.meta(point.meta), variant.target),
    )
    evaluation = Evaluation(
        workload=setting.workload,
        candidate=candidate,
        cases=cases,
        device="cuda",
        families=families,
        plugins=(PLUGIN,),
        timing=timing,
    )
    try:
        return judge(evaluation)
    except JudgeUnavailable as reason:
        raise error(NO_GPU, f"the judge cannot work on this GPU: {reason}") from None


def verdict_finding(verdict: Verdict) -> dict[str, object]:
    """The finding for a verdict that is not ``passed``, as JSON values."""
    detail = verdict.detail or "no detail"
    return to_json(Diagnostic.of(JUDGED, f"the judge says {verdict.status}: {detail}"))
