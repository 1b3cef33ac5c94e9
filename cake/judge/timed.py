"""The parent's side of timing: fresh processes, checked samples, intervals, the physics floor."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from cake.judge import laps
from cake.judge.arguments import POISONS
from cake.judge.candidate import HOST_CODE, Candidate
from cake.judge.clocks import Clocks, ClockWatch
from cake.judge.evaluation import Evaluation, TimingPlan
from cake.judge.floor import floor_ms, impossible
from cake.judge.link import Link, Stop
from cake.judge.passes import against_reference, load_outputs
from cake.judge.protocol import Array, ProtocolError, Time, Timed
from cake.judge.statistics import Interval, block_ratios, interval
from cake.judge.verdict import Summary, TimingResult
from cake.workloads import Case, generate, get, problem

Outputs = Mapping[str, Array]


@dataclass(slots=True)
class _Samples:
    """What all processes together measured. ``wrong`` describes outputs of timed samples that were
    not right."""

    timed: list[Timed] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Timing:
    """Times one case of an evaluation, whose candidate has passed it."""

    def __init__(self, evaluation: Evaluation, plan: TimingPlan, case: Case, seed: int) -> None:
        self._evaluation = evaluation
        self._contract = get(evaluation.workload)
        self._plan = plan
        self._case = case
        self._seed = seed
        # What is timed has numbers of its own: no guess about the checked runs leads to them.
        self._first_content = secrets.randbits(63) if evaluation.seed is None else seed + 1
        self._instance = problem(self._contract, case.shape, case.dtype)

    def result(self, link: Link, scratch: Path) -> TimingResult:
        """Times from the child at ``link`` and from fresh ones; raises :class:`Stop`."""
        plan, found = self._plan, _Samples()
        sides = [link.candidate, *([plan.rival] if plan.rival else [])]
        foreign = any(side.runner in HOST_CODE for side in sides)
        if foreign and self._evaluation.device != "cpu":
            raise Stop(
                "refused",
                "a candidate with host code shares its process with the device's clock, so its "
                "times are worth nothing; on a GPU only schedules and CUDA sources are timed",
                final=False,
            )
        with ClockWatch(on_gpu=self._evaluation.device == "cuda") as watch, ExitStack() as held:
            for number in range(plan.processes):
                here = link
                if number:
                    here = held.enter_context(Link(self._evaluation, link.candidate, scratch))
                    here.build(self._case)
                with scratch_folder(scratch) as folder, scratch_folder(scratch.parent) as other:
                    if foreign:
                        self._race(here, (folder, other), swapped=number % 2 == 1, found=found)
                    else:
                        self._ask(here, folder, swapped=number % 2 == 1, found=found)
        return self._summary(found, watch.clocks(), link.environment.get("device", ""))

    def _content(self, number: int) -> dict[str, Array]:
        return generate(
            self._contract,
            self._case.shape,
            self._case.dtype,
            self._plan.family,
            self._first_content + number,
        )

    def _checked(self) -> frozenset[int]:
        count = min(self._plan.checked, self._plan.samples)
        return frozenset(secrets.SystemRandom().sample(range(self._plan.samples), count))

    # -- in the child, which has no code of others -------------------------------------------------

    def _ask(self, link: Link, folder: Path, *, swapped: bool, found: _Samples) -> None:
        plan, keep = self._plan, self._checked()
        contents = [self._content(number) for number in range(plan.contents)]
        folders = [folder / f"contents{number}" for number in range(plan.contents)]
        for path, arrays in zip(folders, contents, strict=True):
            link.hand_over(path, arrays)
        request = Time(
            contents=tuple(map(str, folders)),
            outputs=str(folder / "outputs"),
            baseline=plan.baseline,
            rival=plan.rival,
            warmup=plan.warmup,
            samples=plan.samples,
            keep=tuple(sorted(keep)),
            swapped=swapped,
            noise_samples=plan.samples // 2 if plan.noise else 0,
            columns=plan.columns,
        )
        timed = link.ask(request, self._evaluation.limits.time, Timed)
        if len(timed.candidate_ms) != plan.samples:
            given = len(timed.candidate_ms)
            raise Stop("crashed", f"{given} samples instead of {plan.samples}", final=True)
        found.timed.append(timed)
        for sample in sorted(keep):
            try:
                outputs = load_outputs(self._instance, folder / "outputs" / str(sample))
            except ProtocolError as error:
                text = f"the outputs are not usable: {error}"
                raise Stop("crashed", text, final=True) from None
            # Whatever number the child says, it names one of the contents.
            content = contents[timed.kept.get(str(sample), 0) % len(contents)]
            self._check(found, sample, content, outputs)

    def _check(self, found: _Samples, sample: int, inputs: Outputs, outputs: Outputs) -> None:
        seed = self._seed + sample
        right = against_reference(self._evaluation, self._case, inputs, outputs, seed)
        if detail := right.detail:
            found.wrong.append(f"timed sample {sample}: {detail}")

    # -- on shared memory, for candidates with host code -------------------------------------------

    def _race(
        self, link: Link, folders: tuple[Path, Path], *, swapped: bool, found: _Samples
    ) -> None:
        """Laps of both sides in turn, each on inputs that nobody has seen before. While one runs,
        the other is stopped: it could else take the machine's time from it."""
        plan, keep = self._plan, self._checked()
        limit = self._evaluation.limits.run
        with ExitStack() as held:
            other, missing = self._opponent(held, folders[1])
            links = [link, *other]
            tracks = [
                [
                    laps.Track(side, self._instance, folder / str(turn), POISONS[0])
                    for turn in (0, 1)
                ]
                for side, folder in zip(links, folders, strict=False)
            ]
            times: list[list[float]] = [[] for _ in tracks]
            for number in range(-plan.warmup, plan.samples):
                inputs = self._content(number + plan.warmup)
                forward = (number % 2 == 0) is not swapped
                for at in range(len(tracks)) if forward else reversed(range(len(tracks))):
                    track = tracks[at][number % 2]
                    with links[at].alone(links):
                        times[at].append(track.lap(inputs, limit))
                    if at == 0 and number in keep:
                        self._check(found, number, inputs, track.outputs)
        times = [side[plan.warmup :] for side in times]
        found.timed.append(
            Timed(
                clock=laps.CLOCK,
                candidate_ms=tuple(times[0]),
                baseline_ms=tuple(times[1]) if len(times) > 1 else (),
                baseline_problem=missing,
                kept={},
            )
        )

    def _opponent(self, held: ExitStack, folder: Path) -> tuple[list[Link], str]:
        """A child of its own for what the candidate is timed beside, or why there is none."""
        plan = self._plan
        other = plan.rival
        if plan.baseline is not None:
            other = Candidate(runner="baseline", entry=plan.baseline)
        if other is None:
            return [], ""
        link = held.enter_context(Link(self._evaluation, other, folder))
        try:
            link.build(self._case)
        except Stop as stop:
            return [], stop.detail
        return [link], ""

    # -- the result ------------------------------------------------------------------------------

    def _summary(self, found: _Samples, clocks: Clocks, device: str) -> TimingResult:
        plan, first = self._plan, found.timed[0]
        candidate = [ms for timed in found.timed for ms in timed.candidate_ms]
        baseline = [ms for timed in found.timed for ms in timed.baseline_ms]
        ratio = _ratio([(t.baseline_ms, t.candidate_ms) for t in found.timed if t.baseline_ms])
        same = _ratio([(t.same_ms[0], t.same_ms[1]) for t in found.timed if len(t.same_ms) == 2])
        pairs = [b / c for b, c in zip(baseline, candidate, strict=False) if c > 0]
        wrong = list(found.wrong)
        if reason := impossible(self._instance, device, median(candidate)):
            wrong.append(reason)
        named = plan.baseline or (plan.rival.entry if plan.rival else "")
        details = [first.baseline_problem] if named and first.baseline_problem else []
        return TimingResult(
            case=self._case,
            clock=" and ".join(dict.fromkeys(timed.clock for timed in found.timed)),
            candidate=Summary.of(candidate),
            baseline_name=named,
            baseline=Summary.of(baseline) if baseline else None,
            speedup=median(pairs) if pairs else None,
            status="incorrect" if wrong else "passed",
            detail="\n".join([*wrong, *details]),
            ratio=ratio,
            same=same,
            floor_ms=floor_ms(self._instance, device),
            columns=first.candidate_columns,
            baseline_columns=first.baseline_columns,
            clocks=clocks,
            candidate_ms=tuple(candidate),
            baseline_ms=tuple(baseline),
            process_samples=tuple(len(timed.candidate_ms) for timed in found.timed),
        )


def _ratio(processes: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Interval | None:
    """The interval over processes; None where a clock could not resolve a sample."""
    try:
        return interval([block_ratios(top, bottom) for top, bottom in processes])
    except ValueError:
        return None


@contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """A folder for the arrays of one request; large ones must not pile up."""
    with TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
