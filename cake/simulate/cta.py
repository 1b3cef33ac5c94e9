"""A CTA: shared memory, barriers, units."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from cake.ir.program import Barrier, Pipeline, Program, Smem
from cake.ops.layout import smem_layout
from cake.ops.rings import ring_facts
from cake.simulate.barriers import HardwareBarrier, MBarrierState
from cake.simulate.engine import Engine
from cake.simulate.memory import GlobalTensor, SharedMemory


class Cta:
    """One thread block; ``cluster`` lists the CTAs of its cluster by rank, itself included."""

    def __init__(
        self,
        program: Program,
        block: int,
        rank: int,
        *,
        engine: Engine,
        tensors: Mapping[str, GlobalTensor],
        scalars: Mapping[str, Any],
        grid_size: int,
    ) -> None:
        self.program = program
        self.block = block
        self.rank = rank
        self.engine = engine
        self.tensors = tensors
        self.scalars = scalars
        self.grid_size = grid_size
        self.cluster: list[Cta] = [self]
        self.exists = True
        """False for a rank whose tile does not exist: it exits at once."""
        self.lets: dict[str, Any] = {}
        self.smem = SharedMemory(smem_layout(program))
        self.hardware: dict[str, HardwareBarrier] = {}
        self.full: dict[str, list[MBarrierState]] = {}
        self.empty: dict[str, list[MBarrierState]] = {}
        self.raw: dict[str, list[MBarrierState]] = {}
        for ring in program.find(Pipeline):
            self._ring(ring)
        for bar in program.find(Barrier):
            self.raw[bar.name] = [
                MBarrierState(f"{bar.name}[{i}]", bar.arrivals) for i in range(bar.slots)
            ]

    def _ring(self, ring: Pipeline) -> None:
        facts = ring_facts(self.program, ring.name)
        stages = range(ring.stages)
        self.full[ring.name] = [
            MBarrierState(f"{ring.name}.full[{i}]", facts.full_count) for i in stages
        ]
        self.empty[ring.name] = [
            MBarrierState(
                f"{ring.name}.empty[{i}]",
                facts.empty_count,
                on_flip=partial(self._released, ring, i),
            )
            for i in stages
        ]

    def _released(self, ring: Pipeline, stage: int) -> None:
        """All consumers have released the stage: what it holds is no longer theirs to read."""
        for name in ring.buffers:
            decl = self.program.resource(name)
            assert isinstance(decl, Smem)
            self.smem.poison(decl, stage)

    def peer(self, rank: int | None) -> Cta:
        """A CTA of the cluster by rank (None: this one)."""
        return self if rank is None else self.cluster[rank]

    def hardware_barrier(self, key: str, threads: int) -> HardwareBarrier:
        """A named, CTA or cluster barrier, made at its first use."""
        table = self.cluster[0].hardware if key == "cluster" else self.hardware
        return table.setdefault(key, HardwareBarrier(key, threads))
