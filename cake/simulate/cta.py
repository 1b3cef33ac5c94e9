"""A CTA: shared memory, tensor memory and barriers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from cake.ir.program import Barrier, Pipeline, Program, Smem
from cake.ops.rings import ring_facts
from cake.simulate.arithmetic import Floats
from cake.simulate.barriers import HardwareBarrier, MBarrierState
from cake.simulate.codes import SMEM_BOUNDS
from cake.simulate.engine import Engine
from cake.simulate.errors import Finding, Origin
from cake.simulate.global_memory import GlobalTensor
from cake.simulate.shared import SharedMemory
from cake.simulate.stamps import Stamps
from cake.simulate.tensor_memory import TensorMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What all CTAs of a launch share; ``ticks`` stand for time."""

    program: Program
    tensors: Mapping[str, GlobalTensor]
    scalars: Mapping[str, Any]
    grid_size: int
    arithmetic: Floats
    ticks: Iterator[int] = field(default_factory=count)


@dataclass(slots=True, kw_only=True)
class Cta:
    """One thread block.

    ``cluster`` lists the CTAs of its cluster by rank, itself included. ``lets`` are the kernel's
    values, the grid's coordinates among them.
    """

    launch: Launch
    engine: Engine
    block: int
    rank: int
    cluster: list[Cta]
    lets: Mapping[str, Any]
    stamps: Stamps
    smem: SharedMemory = field(init=False)
    tensor_memory: TensorMemory = field(init=False)
    hardware: dict[str, HardwareBarrier] = field(default_factory=dict)
    full: dict[str, list[MBarrierState]] = field(default_factory=dict)
    empty: dict[str, list[MBarrierState]] = field(default_factory=dict)
    raw: dict[str, list[MBarrierState]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.smem = SharedMemory(self.program, self.stamps, self.engine)
        self.tensor_memory = TensorMemory(self.program)
        for ring in self.program.find(Pipeline):
            self._ring(ring)
        for bar in self.program.find(Barrier):
            self.raw[bar.name] = [
                MBarrierState(f"{bar.name}[{i}]", bar.arrivals) for i in range(bar.slots)
            ]

    @property
    def program(self) -> Program:
        return self.launch.program

    @property
    def tensors(self) -> Mapping[str, GlobalTensor]:
        return self.launch.tensors

    @property
    def scalars(self) -> Mapping[str, Any]:
        return self.launch.scalars

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

    def _released(self, ring: Pipeline, stage: int, by: Origin | None) -> None:
        """All consumers have released the stage: what it holds is no longer theirs to read."""
        for name in ring.buffers:
            decl = self.program.resource(name)
            # A ring over tensor memory hands over what the simulator does not hold.
            if isinstance(decl, Smem):
                self.smem.release(decl, stage, by)

    def peer(self, rank: int | None) -> Cta:
        """A CTA of the cluster by rank (None: this one)."""
        if rank is None:
            return self
        if not 0 <= rank < len(self.cluster):
            size = len(self.cluster)
            message = f"peer {rank} is outside the cluster of {size}"
            raise Finding(SMEM_BOUNDS, message, {"peer": rank, "cluster": size})
        return self.cluster[rank]

    def hardware_barrier(self, key: str, threads: int) -> HardwareBarrier:
        """A named, CTA or cluster barrier, made at its first use."""
        whole = key == "cluster"
        table = self.cluster[0].hardware if whole else self.hardware
        return table.setdefault(key, HardwareBarrier(key, threads, split=whole))
