"""One evaluation: the parent asks its child case by case and decides what the answers mean."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

from cake.judge.child import Child, ChildDied, ChildHang
from cake.judge.evaluation import Evaluation, TimingPlan
from cake.judge.passes import compare_passes, load_outputs
from cake.judge.protocol import (
    Array,
    Build,
    Built,
    Failed,
    Message,
    Open,
    ProtocolError,
    Ran,
    Ready,
    Run,
    Time,
    Timed,
    save_arrays,
)
from cake.judge.verdict import CaseResult, Status, Summary, TimingResult, Verdict, worst
from cake.workloads import Case, Comparison, Problem, compare, generate, get, problem

CHECK_FLOPS = 2 * 10**10  # float64 operations that one core does in a second or two
LEAST_ROWS = 64

Answer = TypeVar("Answer", bound=Message)


class JudgeUnavailable(Exception):
    """The judge cannot work here: the device, a plugin or the runner is missing. No candidate
    has been started."""


class _Stop(Exception):
    """The candidate failed in a way that ends its case; after ``final`` the child is gone."""

    def __init__(self, status: Status, detail: str, *, final: bool) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.final = final


class Session:
    """Collects the results of one evaluation from one child."""

    def __init__(self, evaluation: Evaluation, child: Child) -> None:
        self._evaluation = evaluation
        self._contract = get(evaluation.workload)
        self._child = child
        self._environment: Mapping[str, str] = {}
        self._results: list[CaseResult] = []
        self._timings: list[TimingResult] = []
        # Where the candidate is, for the report of a failure.
        self._family = ""
        self._seed = 0

    def run(self) -> None:
        """Judge all cases, or as many as the child survives.

        Raises :class:`JudgeUnavailable` if the child cannot open the device or find the runner.
        """
        evaluation = self._evaluation
        opening = Open(
            device=evaluation.device,
            plugins=evaluation.plugins,
            runner=evaluation.candidate.runner,
        )
        try:
            self._environment = self._ask(opening, evaluation.limits.start, Ready).environment
        except _Stop as stop:
            raise JudgeUnavailable(stop.detail + self._child.output) from None
        for case in evaluation.cases:
            try:
                self._judge_case(case)
            except _Stop as stop:
                self._note(case, stop.status, stop.detail)
                if stop.final:
                    return

    def _judge_case(self, case: Case) -> None:
        evaluation = self._evaluation
        self._family, self._seed = "", 0
        building = Build(workload=evaluation.workload, case=case, candidate=evaluation.candidate)
        self._ask(building, evaluation.limits.build, Built)
        # Drawn after the build, so that nothing built can know it.
        self._seed = secrets.randbits(32) if evaluation.seed is None else evaluation.seed
        families = evaluation.families or tuple(f.name for f in self._contract.families)
        correct = [self._judge_family(case, family) for family in families]
        if evaluation.timing is not None and all(correct):
            self._family = evaluation.timing.family
            self._time_case(case, evaluation.timing)

    def _judge_family(self, case: Case, family: str) -> bool:
        self._family = family
        instance = problem(self._contract, case.shape, case.dtype)
        inputs = generate(self._contract, case.shape, case.dtype, family, self._seed)
        with _scratch() as folder:
            save_arrays(folder / "inputs", inputs)
            request = Run(inputs=str(folder / "inputs"), outputs=str(folder / "outputs"))
            ran = self._ask(request, self._evaluation.limits.run, Ran)
            first, second = (self._load(case, folder / "outputs" / name) for name in "01")
        findings = (*ran.findings, *compare_passes(instance, first, second))
        comparison = self._compare(case, inputs, first, self._seed)
        if comparison.ok and self._contract.determinism == "any-order":
            comparison = self._compare(case, inputs, second, self._seed)
        details = [f"{finding.tensor}: {finding.message}" for finding in findings]
        details += [comparison.detail] if comparison.detail else []
        result = CaseResult(
            case=case,
            family=family,
            seed=self._seed,
            status="passed" if comparison.ok and not findings else "incorrect",
            detail="\n".join(details),
            findings=findings,
            comparison=comparison,
        )
        self._results.append(result)
        return result.status == "passed"

    def _time_case(self, case: Case, plan: TimingPlan) -> None:
        contents = [
            # The checked runs used the seed itself; the timed ones see other numbers.
            generate(self._contract, case.shape, case.dtype, plan.family, self._seed + 1 + number)
            for number in range(plan.contents)
        ]
        checked = min(plan.checked, plan.samples)
        keep = secrets.SystemRandom().sample(range(plan.samples), checked)
        with _scratch() as folder:
            folders = [folder / f"contents{number}" for number in range(plan.contents)]
            for path, arrays in zip(folders, contents, strict=True):
                save_arrays(path, arrays)
            request = Time(
                contents=tuple(map(str, folders)),
                outputs=str(folder / "outputs"),
                baseline=plan.baseline,
                warmup=plan.warmup,
                samples=plan.samples,
                keep=tuple(keep),
            )
            timed = self._ask(request, self._evaluation.limits.time, Timed)
            if len(timed.candidate_ms) != plan.samples:
                given = len(timed.candidate_ms)
                raise _Stop("crashed", f"{given} samples instead of {plan.samples}", final=True)
            wrong = [
                f"timed sample {sample}: {detail}"
                for sample in keep
                if (detail := self._check_sample(case, contents, timed, sample, folder))
            ]
        self._timings.append(_timing_result(case, plan, timed, wrong))

    def _check_sample(
        self,
        case: Case,
        contents: Sequence[Mapping[str, Array]],
        timed: Timed,
        sample: int,
        folder: Path,
    ) -> str:
        """What is wrong with the outputs of a timed sample; empty if nothing is."""
        outputs = self._load(case, folder / "outputs" / str(sample))
        # Whatever number the child says, it names one of the contents.
        content = contents[timed.kept.get(str(sample), 0) % len(contents)]
        return self._compare(case, content, outputs, self._seed + sample).detail

    def _load(self, case: Case, folder: Path) -> dict[str, Array]:
        try:
            return load_outputs(problem(self._contract, case.shape, case.dtype), folder)
        except ProtocolError as error:
            raise _Stop("crashed", f"the outputs are not usable: {error}", final=True) from None

    def _compare(
        self, case: Case, inputs: Mapping[str, Array], outputs: Mapping[str, Array], seed: int
    ) -> Comparison:
        instance = problem(self._contract, case.shape, case.dtype)
        return compare(
            self._contract,
            case.shape,
            case.dtype,
            inputs,
            outputs,
            max_rows=self._evaluation.max_rows or _rows_in_reach(instance),
            seed=seed,
        )

    def _ask(self, message: Message, seconds: float, kind: type[Answer]) -> Answer:
        try:
            answer = self._child.ask(message, seconds)
        except ChildHang as hang:
            raise _Stop("hang", str(hang), final=True) from None
        except (ChildDied, ProtocolError) as death:
            raise _Stop("crashed", str(death), final=True) from None
        if isinstance(answer, kind):
            return answer
        if isinstance(answer, Failed):
            detail = "\n".join(filter(None, (answer.message, answer.trace)))
            raise _Stop(answer.status, detail, final=answer.status == "crashed")
        detail = f"the child answered {type(answer).__name__} to {type(message).__name__}"
        raise _Stop("crashed", detail, final=True)

    def _note(self, case: Case, status: Status, detail: str) -> None:
        self._results.append(
            CaseResult(
                case=case,
                family=self._family,
                seed=self._seed,
                status=status,
                detail=detail,
                findings=(),
                comparison=None,
            )
        )

    def verdict(self, seconds: float) -> Verdict:
        """The verdict over everything collected."""
        parts: list[CaseResult | TimingResult] = [*self._results, *self._timings]
        status = worst([part.status for part in parts])
        candidate = self._evaluation.candidate
        return Verdict(
            status=status,
            workload=self._evaluation.workload,
            candidate_hash=candidate.digest(),
            runner=candidate.runner,
            device=self._evaluation.device,
            detail=next(part.detail for part in parts if part.status == status),
            results=tuple(self._results),
            timings=tuple(self._timings),
            environment=self._environment,
            output=self._child.output,
            seconds=seconds,
        )


def _rows_in_reach(instance: Problem) -> int:
    """How many rows the reference may compute with ``CHECK_FLOPS`` operations."""
    return max(LEAST_ROWS, CHECK_FLOPS * instance.rows // max(instance.flops, 1))


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for the arrays of one request; large ones must not pile up."""
    with TemporaryDirectory(prefix="cake-judge-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _timing_result(case: Case, plan: TimingPlan, timed: Timed, wrong: list[str]) -> TimingResult:
    details = [timed.baseline_problem] if plan.baseline and timed.baseline_problem else []
    baseline = Summary.of(timed.baseline_ms) if timed.baseline_ms else None
    ratios = [b / c for b, c in zip(timed.baseline_ms, timed.candidate_ms, strict=False) if c > 0]
    return TimingResult(
        case=case,
        clock=timed.clock,
        candidate=Summary.of(timed.candidate_ms),
        baseline_name=plan.baseline or "",
        baseline=baseline,
        speedup=median(ratios) if ratios else None,
        status="incorrect" if wrong else "passed",
        detail="\n".join([*wrong, *details]),
    )
