"""The search itself: screen, propose, evaluate, confirm, write.

:func:`run` starts a run and :func:`resume` goes on with one. What is found is stored before it is
reported, and the proposals depend on what is stored alone: a resumed search asks for the same
evaluations again, and those that are stored are not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cake.evolve.config import (
    Budget,
    EvolveConfig,
    EvolveResult,
    Phase,
    Progress,
    ProgressCallback,
    Stopped,
)
from cake.evolve.environment import environment
from cake.evolve.findings import how_to_resume
from cake.evolve.gpu import find_gpu, grade, measure, verdict_finding
from cake.evolve.outputs import write_outputs
from cake.evolve.pool import Answer, Pool, Task
from cake.evolve.ranking import distances, rank, ranked
from cake.evolve.schema import CandidateRow, EvaluationRow
from cake.evolve.screening import failure_finding, screen_space
from cake.evolve.search import Entry, HillClimb, Rank
from cake.evolve.setting import simulation_cases
from cake.evolve.start import new_run
from cake.evolve.store import Store
from cake.evolve.summary import best, funnel
from cake.kernels import elaborate

SCREEN_SHARE = 0.4
"""Most of the time budget that the screening may take; what it does not reach is left out."""

EVALUATION_BATCH = 4
"""Neighbours that are evaluated together; not the number of workers, so that a search proposes the
same on every machine."""

CONFIRMATIONS = 5
"""Candidates that may fail the confirmation before the search gives up on a confirmed winner."""


def run(config: EvolveConfig, *, progress: ProgressCallback | None = None) -> EvolveResult:
    """Start a run and search until a budget is used up.

    Ctrl-C ends it early with a result whose ``stopped`` is ``interrupted``. ``progress`` is called
    after each step, once its result is stored. Raises what :func:`cake.evolve.start.new_run`
    raises, and :class:`CakeError` (``run-not-writable``) on a full disk.
    """
    with new_run(config) as store:
        return _Session(store, config.budget, config.workers, progress).run()


def resume(
    folder: Path,
    *,
    budget: Budget | None = None,
    workers: int = 2,
    progress: ProgressCallback | None = None,
) -> EvolveResult:
    """Go on with the run in ``folder``, by default with what is left of its budget.

    Raises :class:`CakeError` (``not-a-run``, ``run-in-use``, ``no-gpu-for-target``,
    ``run-not-writable``).
    """
    with Store.open(folder) as store:
        if budget is not None:
            store.set_budget(budget)
        return _Session(store, store.budget, workers, progress).run()


class _Session:
    """One process's work on a run."""

    def __init__(
        self, store: Store, budget: Budget, workers: int, progress: ProgressCallback | None
    ) -> None:
        self._store = store
        self._setting = store.setting
        self._budget = budget
        self._workers = workers
        self._progress = progress
        self._gpu = find_gpu(self._setting.target, self._setting.device)
        self._before = store.seconds_spent()
        self._start = time.monotonic()
        self._distances = distances(store)
        self._done = {e.candidate: self._rank(e) for e in store.evaluations()}

    def run(self) -> EvolveResult:
        store = self._store
        self._session = store.begin_session(environment(self._gpu))
        stopped: Stopped = "interrupted"
        try:
            with Pool(self._setting, self._workers) as self._pool:
                screen_space(store, self._pool, self._screened)
                self._distances = distances(store)
                found = self._search()
                self._confirm()
                stopped = found
        except KeyboardInterrupt:
            pass  # What is stored is whole; the result below says how to go on.
        store.end_session(self._session, self._seconds(), stopped)
        files = write_outputs(store, stopped)
        return EvolveResult(
            folder=store.folder,
            best=best(store),
            evaluations=len(self._done),
            funnel=funnel(store),
            seconds=store.seconds_spent(),
            stopped=stopped,
            files=files,
            message=self._message(stopped),
        )

    def _rank(self, row: EvaluationRow) -> Rank | None:
        return rank(row, self._distances[row.candidate])

    def _seconds(self) -> float:
        """Seconds of this session so far."""
        return time.monotonic() - self._start

    def _message(self, stopped: Stopped) -> str:
        done = f"{len(self._done)} evaluations in {self._before + self._seconds():.0f} s"
        again = f"go on: {how_to_resume(self._store.folder)}"
        match stopped:
            case "interrupted":
                return f"interrupted after {done}; nothing finished is lost; {again}"
            case "exhausted":
                return f"every candidate that the estimate left is evaluated: {done}"
            case "evaluations":
                return (
                    f"the budget of {self._budget.max_evaluations} evaluations is used up: {done}"
                )
            case "seconds":
                return f"the budget of {self._budget.max_seconds:g} s is used up: {done}"

    def _report(self, phase: Phase, done: int, total: int, message: str) -> None:
        if self._progress is not None:
            winner = best(self._store) if phase != "screen" else None
            seconds = None if winner is None else winner.seconds
            self._progress(
                Progress(phase=phase, done=done, total=total, best_seconds=seconds, message=message)
            )

    def _screened(self, done: int, total: int) -> bool:
        """Note and report a step of the screening; whether there is time for more."""
        self._store.note_time(self._session, self._seconds())
        self._report("screen", done, total, f"screened {done} of {total} points")
        spent = self._before + self._seconds()
        return spent <= SCREEN_SHARE * self._budget.max_seconds

    # -- search ----------------------------------------------------------------------------------

    def _search(self) -> Stopped:
        entries = [
            Entry(
                id=c.id,
                point=c.point,
                estimate=c.seconds or 0.0,
                distance=self._distances[c.id],
            )
            for c in self._store.candidates("kept")
        ]
        climb = HillClimb(
            entries, self._setting.variants, seed=self._setting.seed, width=EVALUATION_BATCH
        )
        proposals = climb.proposals()
        batch = next(proposals, None)
        while batch is not None:
            if limit := self._evaluate([i for i in batch if i not in self._done]):
                return limit
            try:
                batch = proposals.send({i: self._done[i] for i in batch})
            except StopIteration:
                break
        return "exhausted"

    def _evaluate(self, candidates: Sequence[int]) -> Stopped | None:
        """Evaluate candidates together; the budget that does not allow it, if one does not."""
        left = self._budget.max_evaluations - len(self._done)
        if candidates and self._before + self._seconds() >= self._budget.max_seconds:
            return "seconds"
        if candidates[:left]:
            self._evaluate_all(candidates[:left])
        return "evaluations" if len(candidates) > max(left, 0) else None

    def _evaluate_all(self, candidates: Sequence[int]) -> None:
        store = self._store
        rows = {c.point.key: c for c in map(store.candidate, candidates)}
        store.claim(candidates, self._session)
        tasks = [Task(kind="examine", points=(c.point,)) for c in rows.values()]
        for answer in self._pool.run(tasks):
            candidate = rows[answer.task.points[0].key]
            row = self._measured(candidate, _evaluation(candidate, answer))
            store.finish(row, self._session, self._seconds())
            self._done[candidate.id] = self._rank(row)
            self._report(
                "evaluate", len(self._done), self._budget.max_evaluations, _line(candidate, row)
            )

    def _measured(self, candidate: CandidateRow, row: EvaluationRow) -> EvaluationRow:
        """The evaluation with the judge's verdict, where there is a GPU."""
        if self._gpu is None or not row.passed:
            return row
        verdict = measure(self._setting, candidate.point)
        seconds = row.wall_seconds + verdict.seconds
        if verdict.status == "passed" and verdict.timings:
            measured = verdict.timings[0].candidate.median / 1e3
            return replace(row, measured=measured, wall_seconds=seconds, verdict=verdict.to_json())
        findings = [*row.record["findings"], verdict_finding(verdict)]
        return replace(
            row,
            status="judge",
            detail=f"{verdict.status}: {verdict.detail}",
            wall_seconds=seconds,
            record={**row.record, "findings": findings},
            verdict=verdict.to_json(),
        )

    # -- confirmation ----------------------------------------------------------------------------

    def _confirm(self) -> None:
        """Put the best candidate to all input families; if it fails, the next one."""
        for number in range(1, CONFIRMATIONS + 1):
            leading = ranked(self._store)
            if not leading or leading[0].candidate in self._store.confirmations():
                return
            candidate = self._store.candidate(leading[0].candidate)
            status, detail = self._confirmed(candidate)
            self._store.add_confirmation(candidate.id, status, detail)
            self._report(
                "confirm",
                number,
                CONFIRMATIONS,
                f"candidate {candidate.id} on all inputs: {status}",
            )

    def _confirmed(self, candidate: CandidateRow) -> tuple[str, str]:
        """Status and detail of a confirmation."""
        if self._gpu is not None:
            variant = self._setting.variant(candidate.variant)
            programs = elaborate(variant.file, variant.meta(candidate.meta)).programs
            verdict = grade(
                self._setting, candidate.point, simulation_cases(programs, self._setting)
            )
            return verdict.status, verdict.detail
        (answer,) = self._pool.run([Task(kind="confirm", points=(candidate.point,))])
        if answer.failure:
            return answer.failure, answer.detail
        return answer.results[0]["status"], answer.results[0]["detail"]


def _evaluation(candidate: CandidateRow, answer: Answer) -> EvaluationRow:
    """The row for what a worker found, or for its failure."""
    if answer.failure:
        return EvaluationRow(
            candidate=candidate.id,
            status=answer.failure,
            detail=answer.detail,
            estimated=None,
            measured=None,
            spill_bytes=0,
            wall_seconds=0.0,
            record={"findings": [failure_finding(answer)]},
        )
    (found,) = answer.results
    return EvaluationRow(
        candidate=candidate.id,
        status=found["status"],
        detail=found["detail"],
        estimated=found["seconds"],
        measured=None,
        spill_bytes=found["spill_bytes"],
        wall_seconds=sum(found["stages"].values()),
        record=found,
    )


def _line(candidate: CandidateRow, row: EvaluationRow) -> str:
    """One evaluation for the progress display."""
    meta = " ".join(f"{name}={value}" for name, value in candidate.meta.items())
    if row.passed and row.seconds is not None:
        kind = "estimated" if row.measured is None else "measured"
        return f"{candidate.variant} {meta}: {row.seconds * 1e3:.4g} ms {kind}"
    return f"{candidate.variant} {meta}: {row.status}: {row.detail}"
