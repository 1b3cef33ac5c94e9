"""Runs of candidates with host code of their own: on tensors that only the parent fills, checks and
times.

Such a candidate shares a process with whatever the child would report, so nothing that the child
says counts. The parent writes inputs and poison into shared memory, asks for one lap, takes the
time of the answer by its own clock, and reads guards, inputs and outputs itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from cake.judge.arguments import POISONS, Arguments
from cake.judge.link import Link, tampering_stops
from cake.judge.protocol import Array, Lap, Lapped
from cake.judge.shared import SharedDevice
from cake.judge.verdict import Finding
from cake.workloads import Problem

CLOCK = "parent's clock, with the round trip to the child"
Outputs = Mapping[str, Array]


class Track:
    """Shared tensors of one problem for one child."""

    def __init__(self, link: Link, instance: Problem, folder: Path, poison: int) -> None:
        self._link = link
        self._folder = folder
        self.outputs: Outputs = {}
        with tampering_stops():
            self._arguments = Arguments(SharedDevice(folder), instance, poison)

    def lap(self, inputs: Mapping[str, Array], seconds: float) -> float:
        """Milliseconds of one run on ``inputs``; raises :class:`cake.judge.link.Stop`.

        ``outputs`` are what was there when the answer came: work that was put off is missing.
        """
        with tampering_stops():
            for tensor in self._arguments.tensors.values():
                tensor.spoil()
            self._arguments.load(inputs)
        request = Lap(tensors=str(self._folder))
        start = time.perf_counter()
        self._link.ask(request, seconds, Lapped)
        milliseconds = (time.perf_counter() - start) * 1e3
        with tampering_stops():
            self.outputs = self._arguments.outputs()
        return milliseconds

    def findings(self, inputs: Mapping[str, Array]) -> list[Finding]:
        """Overwritten guards and modified inputs; raises :class:`cake.judge.link.Stop`."""
        with tampering_stops():
            return self._arguments.findings(inputs)


def run_passes(
    link: Link, instance: Problem, inputs: Mapping[str, Array], folder: Path, seconds: float
) -> tuple[tuple[Finding, ...], Outputs, Outputs]:
    """Findings and outputs of two runs that differ in poison and pointers."""
    findings: list[Finding] = []
    outputs = []
    tracks = []  # kept, so that the second run gets other pointers
    for number, poison in enumerate(POISONS):
        track = Track(link, instance, folder / str(number), poison)
        tracks.append(track)
        track.lap(inputs, seconds)
        findings += track.findings(inputs)
        outputs.append(track.outputs)
    return tuple(dict.fromkeys(findings)), outputs[0], outputs[1]
