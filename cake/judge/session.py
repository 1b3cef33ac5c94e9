"""One evaluation: the parent asks its child case by case and decides what the answers mean."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from cake.judge.candidate import HOST_CODE
from cake.judge.evaluation import Evaluation, TimingPlan
from cake.judge.laps import run_passes
from cake.judge.link import Link, Stop
from cake.judge.passes import against_reference, compare_passes, load_outputs
from cake.judge.protocol import Array, ProtocolError, Ran, Run
from cake.judge.timed import Timing, scratch_folder
from cake.judge.verdict import CaseResult, Finding, Status, TimingResult, Verdict, worst
from cake.workloads import Case, Problem, generate, get, problem

Outputs = Mapping[str, Array]


class Session:
    """Collects the results of one evaluation from one child, whose files lie in ``scratch``."""

    def __init__(self, evaluation: Evaluation, link: Link, scratch: Path) -> None:
        self._evaluation = evaluation
        self._contract = get(evaluation.workload)
        self._link = link
        self._scratch = scratch
        self._results: list[CaseResult] = []
        self._timings: list[TimingResult] = []
        # Where the candidate is, for the report of a failure.
        self._family = ""
        self._seed = 0

    def run(self) -> None:
        """Judge all cases, or as many as the child survives."""
        for case in self._evaluation.cases:
            try:
                self._judge_case(case)
            except Stop as stop:
                self._note(case, stop.status, stop.detail)
                if stop.final:
                    return

    def _judge_case(self, case: Case) -> None:
        evaluation = self._evaluation
        self._family, self._seed = "", 0
        self._link.build(case)
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
        with scratch_folder(self._scratch) as folder:
            seen, first, second = self._passes(instance, inputs, folder)
        findings = (*seen, *compare_passes(instance, first, second))
        comparison = against_reference(self._evaluation, case, inputs, first, self._seed)
        if comparison.ok and self._contract.determinism == "any-order":
            comparison = against_reference(self._evaluation, case, inputs, second, self._seed)
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

    def _passes(
        self, instance: Problem, inputs: Outputs, folder: Path
    ) -> tuple[tuple[Finding, ...], Outputs, Outputs]:
        """Findings and outputs of the two runs that differ in poison and pointers."""
        seconds = self._evaluation.limits.run
        host_code = self._evaluation.candidate.runner in HOST_CODE
        if host_code and self._evaluation.device == "cpu":
            return run_passes(self._link, instance, inputs, folder, seconds)
        self._link.hand_over(folder / "inputs", inputs)
        request = Run(inputs=str(folder / "inputs"), outputs=str(folder / "outputs"))
        ran = self._link.ask(request, seconds, Ran)
        try:
            first, second = (load_outputs(instance, folder / "outputs" / n) for n in "01")
        except ProtocolError as error:
            text = f"the outputs are not usable: {error}"
            raise Stop("crashed", text, final=True) from None
        return ran.findings, first, second

    def _time_case(self, case: Case, plan: TimingPlan) -> None:
        timing = Timing(self._evaluation, plan, case, self._seed)
        self._timings.append(timing.result(self._link, self._scratch))

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
            environment=self._link.environment,
            output=self._link.output,
            seconds=seconds,
        )
