"""A running warp or warpgroup: the simulator's implementation of ``cake.ops.machine.Unit``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cake.diag import Related
from cake.ir.nodes import Expr
from cake.ir.program import Pipeline, Role
from cake.ops.base import Completion
from cake.ops.machine import BarrierState, MBarrier, Wait
from cake.simulate.accesses import MemoryUnit
from cake.simulate.barriers import MBarrierState
from cake.simulate.cta import Cta
from cake.simulate.engine import Operation
from cake.simulate.errors import Origin
from cake.simulate.stamps import Accesses
from cake.simulate.tensor_memory import TensorMemory

Side = Literal["fill", "use"]


@dataclass(frozen=True, slots=True)
class UnitBarrier:
    """An mbarrier as a statement of one unit sees it: its arrivals publish the unit's accesses."""

    state: MBarrierState
    accesses: Accesses
    origin: Origin

    def arrive(self, count: int = 1, *, tx: int = 0) -> None:
        self.state.clock = np.maximum(self.state.clock, self.accesses.publish())
        self.state.arrive(count, tx=tx, by=self.origin)

    def expect_tx(self, tx: int) -> None:
        self.state.expect_tx(tx)

    def complete_tx(self, tx: int) -> None:
        self.state.complete_tx(tx)

    def passed(self, parity: int) -> bool:
        passed = self.state.passed(parity)
        if passed:
            self.accesses.learn(self.state.clock)
        return passed

    def describe(self) -> str:
        return self.state.describe()

    def due(self) -> BarrierState:
        return self.state.due()

    def arrivals(self) -> tuple[Related, ...]:
        return self.state.arrivals()


class UnitState(MemoryUnit):
    """One unit of one CTA."""

    def __init__(self, cta: Cta, role: Role, index: int, identity: int) -> None:
        super().__init__(cta, role, index, identity)
        self.block = cta.block
        self.grid_size = cta.launch.grid_size
        self.block_rank = cta.rank
        self.cluster_size = len(cta.cluster)
        self.cursors: dict[tuple[str, str], tuple[int, int]] = {}

    def tensor_memory(self, rank: int | None = None) -> TensorMemory:
        memory = self.cta.peer(rank).tensor_memory
        memory.user = self.origin()
        return memory

    def clock(self) -> int:
        return next(self.cta.launch.ticks)

    # -- asynchronous work ---------------------------------------------------------------------

    def issue(
        self,
        completion: Completion,
        fetch: Callable[[], Any],
        land: Callable[[Any], None],
        *,
        barrier: MBarrier | None = None,
        tx: int = 0,
        peers: Sequence[MBarrier] = (),
        writes_register: Expr | None = None,
        reads_register: Expr | None = None,
        delivers: Any = None,
    ) -> None:
        op = Operation(
            kind=completion,
            issuer=self,
            place=self.place,
            fetch=self._as_issued(fetch),
            land=self._as_issued(land),
            barriers=([] if barrier is None else [barrier]) + list(peers),
            tx=tx,
        )
        if writes_register is not None:
            self.registers_held.own(self.registers(writes_register, read=False), op)
        if reads_register is not None:
            self.registers_held.lend(self.registers(reads_register, read=True), op)
        if delivers is not None:
            self.registers_held.own(delivers, op)
        self.cta.engine.issue(op)

    def _as_issued(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Work that runs later, with the place and the active threads of its issue."""
        place, mask = self.place, self.mask

        def run(*args: Any) -> Any:
            outer, self.place = self.place, place
            self.masks.append(mask)
            try:
                return work(*args)
            finally:
                self.masks.pop()
                self.place = outer

        return run

    def commit(self, completion: Completion) -> None:
        self.cta.engine.commit(self.identity, completion)

    def drained(self, completion: Completion, pending: int, *, reads_only: bool = False) -> bool:
        self.cta.engine.drain(self.identity, completion, pending, reads_only=reads_only)
        return True

    def arrive_when_done(self, completion: Completion, barrier: MBarrier, count: int) -> None:
        op = Operation(
            kind=completion,
            issuer=self,
            place=self.place,
            fetch=lambda: None,
            land=lambda value: None,
            barriers=[barrier],
            arrivals=count,
        )
        self.cta.engine.signal(op)

    # -- barriers ------------------------------------------------------------------------------

    def full_barrier(self, pipeline: str, stage: int, rank: int | None = None) -> MBarrier:
        return self._barrier(self.cta.peer(rank).full[pipeline], stage)

    def empty_barrier(self, pipeline: str, stage: int, rank: int | None = None) -> MBarrier:
        return self._barrier(self.cta.peer(rank).empty[pipeline], stage)

    def mbarrier(self, name: str, slot: int, rank: int | None = None) -> MBarrier:
        return self._barrier(self.cta.peer(rank).raw[name], slot)

    def _barrier(self, slots: Sequence[MBarrierState], slot: int) -> MBarrier:
        return UnitBarrier(slots[int(slot)], self.accesses, self.origin())

    def origin(self) -> Origin:
        """This unit at the statement being executed."""
        assert self.place is not None
        return Origin(self.accesses.who, self.place.loc)

    def cursor(self, pipeline: str, side: Side) -> tuple[int, int]:
        return self.cursors.get((pipeline, side), (0, 0))

    def advance(self, pipeline: str, side: Side) -> None:
        stage, phase = self.cursor(pipeline, side)
        ring = self.program.resource(pipeline)
        assert isinstance(ring, Pipeline)
        wrapped = stage + 1 == ring.stages
        self.cursors[pipeline, side] = (0, phase ^ 1) if wrapped else (stage + 1, phase)

    def fence_proxy(self) -> None:
        self.accesses.fence(self.mask)

    def publish(self) -> None:
        stamps = self.cta.stamps
        stamps.released = np.maximum(stamps.released, self.accesses.publish())

    def barrier_sync(self, key: str, threads: int) -> Iterator[Wait]:
        self.barrier_arrive(key, threads)
        yield from self.barrier_wait(key, threads)

    def barrier_arrive(self, key: str, threads: int) -> None:
        barrier = self.cta.hardware_barrier(key, threads)
        barrier.clock = np.maximum(barrier.clock, self.accesses.publish())
        barrier.arrive(self.identity, self.threads, self.origin())

    def barrier_wait(self, key: str, threads: int) -> Iterator[Wait]:
        barrier = self.cta.hardware_barrier(key, threads)
        generation = barrier.awaited(self.identity)
        yield Wait(lambda: barrier.generation > generation, f"barrier {key}", barrier)
        self.accesses.learn(barrier.clock)
