"""The barriers of a cluster by number, with the arrivals that make a phase of each."""

from __future__ import annotations

from cake.ir.program import Barrier, NamedBarrier, Pipeline, Program, Smem
from cake.ops.cta_sync import role_threads
from cake.ops.rings import RingFacts, ring_facts
from cake.verify.phase import events
from cake.verify.phase.events import BarrierKind, Key

CLUSTER = "cluster"


class Wiring:
    """Numbers the barriers of all CTAs of a cluster. ``ranks`` are the CTAs that exist."""

    def __init__(self, program: Program, ranks: tuple[int, ...]) -> None:
        self.program = program
        self.ranks = ranks
        self.rings: dict[str, RingFacts] = {
            p.name: ring_facts(program, p.name) for p in program.find(Pipeline)
        }
        self.barriers: list[events.Barrier] = []
        self._numbers: dict[tuple[str, str, int, int], int] = {}
        self.cta_threads = role_threads(program)
        for rank in ranks:
            self._declare(rank)
        self._add("cluster", CLUSTER, -1, 0, 0)

    def _declare(self, rank: int) -> None:
        for ring in self.program.find(Pipeline):
            facts = self.rings[ring.name]
            for stage in range(ring.stages):
                self._add("full", ring.name, stage, rank, facts.full_count)
                guards = self._buffers(ring, stage, rank)
                self._add("empty", ring.name, stage, rank, facts.empty_count, guards)
        for raw in self.program.find(Barrier):
            for slot in range(raw.slots):
                self._add("mbarrier", raw.name, slot, rank, raw.arrivals)
        self._add("hardware", "cta", -1, rank, self.cta_threads)
        for named in self.program.find(NamedBarrier):
            for slot in range(named.slots):
                self._add("hardware", named.name, slot, rank, named.threads)
        for role in self.program.role_decls():
            self._add("hardware", f"role {role.name}", -1, rank, role.warps * 32)
            for unit in range(role.units):
                self._add("hardware", f"unit {role.name}", unit, rank, role.unit_threads)

    def _buffers(self, ring: Pipeline, stage: int, rank: int) -> tuple[Key, ...]:
        """The blocks of a ring's stage that are its own; in all CTAs that its fills reach."""
        rings = self.program.find(Pipeline)
        found: list[Key] = []
        for name in ring.buffers:
            buffer = self.program.resource(name)
            assert isinstance(buffer, Smem)
            if buffer.pool is None and sum(name in r.buffers for r in rings) == 1:
                ranks = self.ranks if ring.multicast else (rank,)
                found += [("smem", r, name, stage) for r in ranks]
        return tuple(found)

    def _add(
        self,
        kind: BarrierKind,
        name: str,
        slot: int,
        rank: int,
        count: int,
        guards: tuple[Key, ...] = (),
    ) -> None:
        self._numbers[kind, name, slot, rank] = len(self.barriers)
        self.barriers.append(
            events.Barrier(kind=kind, name=name, slot=slot, cta=rank, count=count, guards=guards)
        )

    def number(self, kind: BarrierKind, name: str, slot: int, rank: int) -> int | None:
        """The number of a barrier; None if there is none of that slot or rank."""
        return self._numbers.get((kind, name, slot, rank))

    def cluster(self) -> int:
        """The number of the cluster's barrier."""
        return self._numbers["cluster", CLUSTER, -1, 0]
