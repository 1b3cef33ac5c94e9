"""Small systems of actors, made at random: most of them wrong in some way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from random import Random

from cake.diag import Span
from cake.verify.phase import events as ev
from cake.verify.phase.events import Access, Actor, Barrier, Event, Landing, Region, System

BYTES = 16


class Maker:
    """Makes events; each has a place and an instance of its own."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.made = 0

    def place(self) -> Span:
        self.made += 1
        return Span(file="system", line=self.made, col=1, end_line=self.made, end_col=2)

    def access(self, cell: int, action: ev.Action, proxy: ev.Proxy = "generic") -> Access:
        self.made += 1
        return Access(("smem", 0, "X", 0), Region(1 << cell), action, proxy, self.made)

    def touch(self, cell: int, action: ev.Action) -> Event:
        return ev.Touch(self.place(), (self.access(cell, action),))

    def copy(self, barrier: int, cell: int) -> list[Event]:
        """Announce the bytes of a copy, and start it."""
        landing = Landing(barrier, BYTES, (self.access(cell, "write", "async"),))
        return [ev.Expect(self.place(), barrier, BYTES), ev.Copy(self.place(), (landing,), ())]

    def ring(self) -> System:
        """A ring with one producer, by stores or by copies, changed in up to two places."""
        r = self.random
        stages, consumers, copies = r.choice([1, 2]), r.choice([1, 1, 2]), r.random() < 0.6
        steps = [(n % stages, n // stages % 2) for n in range(r.choice([1, 2, 3, 4]))]
        producer: list[Event] = []
        for s, parity in steps:
            producer.append(ev.Wait(self.place(), stages + s, parity ^ 1))
            producer += self.copy(s, s) if copies else [self.touch(s, "write")]
            producer.append(ev.Arrive(self.place(), s, 1))
        actors = [producer]
        for _ in range(consumers):
            actors.append([])
            for s, parity in steps:
                actors[-1] += [
                    ev.Wait(self.place(), s, parity),
                    self.touch(s, "read"),
                    ev.Arrive(self.place(), stages + s, 1),
                ]
        counts = [1] * stages + [consumers] * stages
        for _ in range(r.choice([0, 1, 1, 2])):
            self._change(r.choice(actors), len(counts))
        if r.random() < 0.15:
            i = r.randrange(len(counts))
            counts[i] = max(1, counts[i] + r.choice([-1, 1]))
        return _system([("mbarrier", c) for c in counts], actors)

    def _change(self, events: list[Event], barriers: int) -> None:
        """Drop, swap, repeat or alter one event."""
        if not events:
            return
        i = self.random.randrange(len(events))
        event = events[i]
        kind = self.random.randrange(5)
        if kind == 0:
            del events[i]
        elif kind == 1 and i + 1 < len(events):
            events[i], events[i + 1] = events[i + 1], event
        elif kind == 2:
            events.insert(i, replace(event, place=self.place()))
        elif kind == 3 and isinstance(event, ev.Wait):
            events[i] = replace(event, parity=event.parity ^ 1)
        elif any(f.name == "barrier" for f in fields(event)):
            other = self.random.randrange(barriers)
            events[i] = replace(event, barrier=other)  # type: ignore[call-arg]

    def mbarriers(self) -> System:
        """Two or three actors with any events on two mbarriers."""
        r = self.random
        choices: list[Callable[[], list[Event]]] = [
            lambda: [ev.Wait(self.place(), r.randrange(2), 0)],
            lambda: [ev.Wait(self.place(), r.randrange(2), r.choice([0, 1]))],
            lambda: [ev.Arrive(self.place(), 0, 1)],
            lambda: [ev.Arrive(self.place(), 1, 1)],
            lambda: [self.touch(0, r.choice(["read", "write"]))],
            lambda: self.copy(r.randrange(2), 0),
        ]
        counts = [r.choice([1, 1, 2]) for _ in range(2)]
        return _system([("mbarrier", c) for c in counts], self._actors(choices))

    def mixed(self) -> System:
        """Two or three actors with an mbarrier, hardware barriers and engines."""
        r = self.random

        def sync() -> list[Event]:
            barrier = r.choice([1, 1, 2])
            return [ev.Meet(self.place(), barrier, 32), ev.Await(self.place(), barrier)]

        def product() -> list[Event]:
            access = self.access(0, r.choice(["read", "write"]), "async")
            return [ev.Issue(self.place(), "wgmma", (access,)), ev.Commit(self.place(), "wgmma")]

        choices: list[Callable[[], list[Event]]] = [
            sync,
            sync,
            product,
            lambda: [ev.Meet(self.place(), r.choice([1, 2]), 32)],
            lambda: [self.touch(0, r.choice(["read", "write"]))],
            lambda: [ev.Drain(self.place(), "wgmma", r.choice([0, 0, 1]))],
            lambda: [ev.ArriveWhenDone(self.place(), 0, 1, "wgmma")],
            lambda: [ev.Wait(self.place(), 0, r.choice([0, 0, 1]))],
            lambda: [ev.Arrive(self.place(), 0, 1)],
        ]
        counts: list[tuple[ev.BarrierKind, int]] = [
            ("mbarrier", r.choice([1, 1, 2])),
            ("hardware", r.choice([64, 64, 96])),
            ("hardware", 64),
        ]
        return _system(counts, self._actors(choices))

    def _actors(self, choices: list[Callable[[], list[Event]]]) -> list[list[Event]]:
        r = self.random
        return [
            [e for _ in range(r.randrange(2, 6)) for e in r.choice(choices)()]
            for _ in range(r.choice([2, 2, 3]))
        ]


def _system(counts: list[tuple[ev.BarrierKind, int]], actors: list[list[Event]]) -> System:
    return System(
        barriers=tuple(
            Barrier(kind=kind, name="b", slot=i, cta=0, count=count)
            for i, (kind, count) in enumerate(counts)
        ),
        actors=tuple(
            Actor(role=f"r{i}", unit=0, warps=None, cta=0, threads=32, events=tuple(events))
            for i, events in enumerate(actors)
        ),
    )
