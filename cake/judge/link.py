"""A child that has been opened for one candidate: what it answers, or how it failed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from cake.judge.candidate import CONFINED, Candidate
from cake.judge.child import Child, ChildDied, ChildHang
from cake.judge.evaluation import Evaluation
from cake.judge.files import FileError
from cake.judge.protocol import (
    Array,
    Build,
    Built,
    Failed,
    Message,
    Open,
    ProtocolError,
    Ready,
    save_arrays,
)
from cake.judge.sandbox import MIB, Confinement
from cake.judge.verdict import Status
from cake.workloads import Case, get, problem

LEAST_FILE_BYTES = 64 * MIB

Answer = TypeVar("Answer", bound=Message)


class JudgeUnavailable(Exception):
    """The judge cannot work here: the device, a plugin or the runner is missing. No candidate
    has been started."""


class Stop(Exception):
    """The candidate failed in a way that ends its case; after ``final`` the child is gone."""

    def __init__(self, status: Status, detail: str, *, final: bool) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.final = final


class Link:
    """The parent's end of an opened child. A context manager: the child is killed on the way out.

    Raises :class:`JudgeUnavailable` if the child cannot open the device or find the runner.
    """

    def __init__(self, evaluation: Evaluation, candidate: Candidate, scratch: Path) -> None:
        self._evaluation = evaluation
        self.candidate = candidate
        *others, last = _ways(evaluation, confinement_of(evaluation, candidate, scratch))
        for confinement, modules in others:
            self._child = Child(confinement, modules)
            try:
                self.environment = self._open()
                return
            except JudgeUnavailable:
                self._child.close()
        self._child = Child(*last)
        try:
            self.environment = self._open()
        except JudgeUnavailable:
            self._child.close()
            raise

    def _open(self) -> Mapping[str, str]:
        evaluation = self._evaluation
        opening = Open(
            device=evaluation.device, plugins=evaluation.plugins, runner=self.candidate.runner
        )
        try:
            return self.ask(opening, evaluation.limits.start, Ready).environment
        except Stop as stop:
            raise JudgeUnavailable(stop.detail + self._child.output) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._child.close()

    @property
    def output(self) -> str:
        """The last part of what the child printed."""
        return self._child.output

    def build(self, case: Case) -> None:
        """Build the candidate for ``case``; raises :class:`Stop`."""
        building = Build(workload=self._evaluation.workload, case=case, candidate=self.candidate)
        self.ask(building, self._evaluation.limits.build, Built)

    @contextmanager
    def alone(self, links: Sequence[Link]) -> Iterator[None]:
        """The children of the other ``links`` are stopped for the block."""
        others = [link for link in links if link is not self]
        for link in others:
            link._child.stop()
        try:
            yield
        finally:
            for link in others:
                link._child.resume()

    def hand_over(self, folder: Path, arrays: Mapping[str, Array]) -> None:
        """Write arrays for the child; raises :class:`Stop` if it has put something in the way."""
        with tampering_stops():
            save_arrays(folder, arrays)

    def ask(self, message: Message, seconds: float, kind: type[Answer]) -> Answer:
        """The answer, which has to be of ``kind``; raises :class:`Stop` in place of any other."""
        try:
            answer = self._child.ask(message, seconds)
        except ChildHang as hang:
            raise Stop("hang", str(hang), final=True) from None
        except (ChildDied, ProtocolError) as death:
            raise Stop("crashed", str(death), final=True) from None
        if isinstance(answer, kind):
            return answer
        if isinstance(answer, Failed):
            detail = "\n".join(filter(None, (answer.message, answer.trace)))
            raise Stop(answer.status, detail, final=answer.status == "crashed")
        detail = f"the child answered {type(answer).__name__} to {type(message).__name__}"
        raise Stop("crashed", detail, final=True)


def _memory(wanted: int) -> int:
    """The bytes that were asked for, and no more than half of what the machine has."""
    present = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(wanted, present // 2)


def _ways(
    evaluation: Evaluation, confinement: Confinement | None
) -> list[tuple[Confinement | None, tuple[str, ...]]]:
    """How to start the child, and what to import before it is forked: the best way first.

    A GPU may not open in a process that was forked after torch was imported, nor in namespaces;
    there are more ways then. The environment of a verdict says what confinement is left.
    """
    ours = tuple(name for name in evaluation.plugins if name.startswith("cake.judge."))
    if evaluation.device == "cpu":
        return [(confinement, ours)]
    ways: list[tuple[Confinement | None, tuple[str, ...]]]
    ways = [(confinement, (*ours, "torch")), (confinement, ours)]
    if confinement is not None:
        ways.append((confinement.without_namespaces(), ours))
    return ways


@contextmanager
def tampering_stops() -> Iterator[None]:
    """Files that the child has cut, replaced or put in the way end it, not the judge."""
    try:
        yield
    except (FileError, FileExistsError, NotADirectoryError) as trick:
        raise Stop("crashed", f"the child tampered with its files: {trick}", final=True) from None


def confinement_of(
    evaluation: Evaluation, candidate: Candidate, scratch: Path
) -> Confinement | None:
    """How the child of ``candidate`` is confined; None for candidates that hold no foreign code."""
    if candidate.runner not in CONFINED:
        return None
    limits, cases = evaluation.limits, len(evaluation.cases)
    contract = get(evaluation.workload)
    families = len(evaluation.families or contract.families)
    wall = limits.start + cases * (limits.build + families * limits.run + limits.time)
    instances = [problem(contract, case.shape, case.dtype) for case in evaluation.cases]
    largest = max(made.bytes_of(s.name) for made in instances for s in contract.tensors)
    return Confinement(
        scratch=str(scratch),
        memory_bytes=_memory(limits.memory_bytes) if evaluation.device == "cpu" else None,
        file_bytes=max(LEAST_FILE_BYTES, largest + MIB),
        cpu_seconds=round(wall * (os.cpu_count() or 1)),
        namespaces=True,
    )
