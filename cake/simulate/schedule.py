"""Which unit goes next: the units of some CTAs, run to their end under one adversary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from cake.diag import Related
from cake.ir.nodes import Block, walk_calls
from cake.ops.base import Access, lookup
from cake.ops.machine import Wait
from cake.simulate.codes import DEADLOCK, EXIT_IN_FLIGHT, TMEM_HELD, TOO_LONG
from cake.simulate.engine import Engine, Operation, Progress
from cake.simulate.errors import Finding
from cake.simulate.interpreter import Pause, Step, run_block
from cake.simulate.orders import Order
from cake.simulate.unit import UnitState

PATIENCE = 200
"""Fruitless looks at memory after which asynchronous work goes on without being waited for."""
MAX_SPINS = 5_000
"""Fruitless looks after which nothing is expected to change any more."""
MAX_LISTED = 12
"""Units that a report of a deadlock lists."""


@dataclass(slots=True, eq=False)
class Task:
    """A running unit.

    ``acted``: it did something that others may notice since its last round of a while loop.
    ``seen``: the count of effects when a round last changed nothing; ``looked``: the step of it.
    """

    unit: UnitState
    body: Iterator[Step]
    step: Step = Pause.EFFECT
    acted: bool = True
    seen: int = -1
    looked: int = 0

    def describe(self) -> str:
        """What the unit is waiting for."""
        who = self.unit.describe()
        if isinstance(self.step, Pause):
            return f"{who} goes round a while loop"
        detail = "" if self.step.barrier is None else f" ({self.step.barrier.describe()})"
        return f"{who} waits for {self.step.what}{detail}"


class Schedule:
    """Units that run together; a fault is raised as a placed :class:`Finding`."""

    def __init__(
        self, units: Sequence[UnitState], engine: Engine, random: Random, max_steps: int
    ) -> None:
        self.engine = engine
        self.order = engine.order
        self.random = random
        self.max_steps = max_steps
        self.steps = 0
        late = _delayed(units, engine.order, random)
        self.tasks = sorted((Task(u, _body(u)) for u in units), key=lambda t: t.unit in late)
        self.members: dict[int, frozenset[int]] = {}
        for u in units:
            self.members[u.cta.block] = self.members.get(u.cta.block, frozenset()) | {u.identity}
        self.effects = 0
        self.spins = 0
        self.turn = 0

    def run(self) -> None:
        """Run all units to their end, and let everything in flight take effect."""
        while self.tasks:
            if self.order.complete == "random" and self.random.random() < 0.3:
                self._engine_step()
            task = self._next()
            if task is not None:
                self._advance(task)
            elif not self._engine_step():
                raise self._deadlock()
            self.steps += 1
            if self.steps > self.max_steps:
                message = f"more than {self.max_steps} steps"
                raise self.tasks[0].unit.locate(Finding(TOO_LONG, message, {"steps": self.steps}))
        while self.engine.step():
            pass

    # -- choice --------------------------------------------------------------------------------

    def _next(self) -> Task | None:
        """The unit that goes next; None if all wait for asynchronous work or for each other."""
        draining: Task | None = None
        spinning: Task | None = None
        for task in self._by_preference():
            if isinstance(task.step, Pause):
                if task.seen != self.effects:
                    return task
                if spinning is None or task.looked < spinning.looked:
                    spinning = task
            elif task.step.drains and not self._finishes_now():
                draining = draining or task
            elif task.step.ready():
                return task
        # Work that a unit waits for by name is finished as late as possible: when all others wait.
        return draining or (None if spinning is None else self._look_again(spinning))

    def _finishes_now(self) -> bool:
        when = self.order.complete
        return when == "early" or (when == "random" and self.random.random() < 0.5)

    def _by_preference(self) -> Sequence[Task]:
        units = self.order.units
        if units == "random":
            return self.random.sample(self.tasks, len(self.tasks))
        if units == "last":
            return self.tasks[::-1]
        if units == "turns":
            return self.tasks[self.turn :] + self.tasks[: self.turn]
        return self.tasks

    def _look_again(self, task: Task) -> Task:
        """A unit goes round its loop again although nothing has changed."""
        self.spins += 1
        if self.spins % PATIENCE == 0:
            self._engine_step()
        if self.spins > MAX_SPINS:
            raise self._deadlock()
        task.looked = self.steps
        return task

    # -- progress ------------------------------------------------------------------------------

    def _engine_step(self) -> bool:
        went_on = self.engine.step()
        if went_on:
            self._noticed()
        return went_on

    def _noticed(self) -> None:
        self.effects += 1
        self.spins = 0

    def _advance(self, task: Task) -> None:
        try:
            if not isinstance(task.step, Pause):
                task.step.ready()
            task.step = next(task.body)
        except StopIteration:
            self._end(task)
            return
        except Finding as f:
            raise task.unit.locate(f) from None
        if self.order.units == "turns":
            self.turn = self.tasks.index(task) + 1
        if task.step is Pause.SPIN:
            if not task.acted:
                task.seen = self.effects
            task.acted = False
        elif task.step is not Pause.READ:
            task.acted = True
            self._noticed()

    def _end(self, task: Task) -> None:
        """Nothing of a unit may be in flight at its end; at its CTA's end, no copy either."""
        self.tasks.remove(task)
        self._noticed()
        unit = task.unit
        self._refuse(self.engine.left_by(unit.identity), f"{unit.describe()} ends")
        if all(t.unit.cta is not unit.cta for t in self.tasks):
            copy = self.engine.copying(self.members[unit.cta.block])
            self._refuse(copy, f"CTA {unit.cta.block} ends")
            _check_freed(unit)

    def _refuse(self, op: Operation | None, what: str) -> None:
        """A finding for an operation in flight at an end; a fault of its own comes first."""
        if op is not None:
            op.advance(Progress.DONE)
            raise _in_flight(op, what)

    def _deadlock(self) -> Finding:
        listed = self.tasks[:MAX_LISTED]
        waiting = [t.describe() for t in listed]
        more = len(self.tasks) - len(listed)
        message = "no unit can proceed: " + "; ".join(waiting)
        message += f"; and {more} more" if more else ""
        related = [
            Related(span=t.unit.place.loc, message=t.describe())
            for t in listed
            if t.unit.place is not None
        ]
        awaited = [t.step.barrier for t in listed if isinstance(t.step, Wait) and t.step.barrier]
        related += [place for barrier in awaited for place in barrier.arrivals()]
        facts = {"waiting": waiting, **_states(listed)}
        places = tuple(dict.fromkeys(related))
        return self.tasks[0].unit.locate(Finding(DEADLOCK, message, facts, related=places))


def _delayed(units: Sequence[UnitState], order: Order, random: Random) -> list[UnitState]:
    """The units that run only when no other one can."""
    if order.delayed == "unit":
        return [random.choice(units)] if units else []
    if order.delayed == "cta":
        blocks = sorted({u.cta.block for u in units})
        late = random.choice(blocks) if blocks else None
        return [u for u in units if u.cta.block == late]
    if order.delayed == "consumers":
        producers = {r.role for r in units[0].program.roles if _copies(r.body)} if units else set()
        return [u for u in units if u.role not in producers]
    return []


def _copies(body: Block) -> bool:
    """Whether a role starts copies into shared memory."""
    calls = ((call, lookup(call.op)) for call in walk_calls(body))
    effects = (e for call, primitive in calls if primitive for e in primitive.effects(call))
    return any(
        isinstance(e, Access)
        and (e.action, e.space) == ("write", "smem")
        and e.completes in ("mbarrier", "cp_async")
        for e in effects
    )


def _states(tasks: Sequence[Task]) -> dict[str, list[Any]]:
    """The barriers that units wait for, one entry each unit: state and what is due."""
    states = [
        t.step.barrier.due() if isinstance(t.step, Wait) and t.step.barrier else None for t in tasks
    ]
    return {
        "barriers": [s and s.name for s in states],
        "phases": [s and s.phase for s in states],
        "arrivals_due": [s and s.arrivals for s in states],
        "bytes_due": [s and s.bytes for s in states],
    }


def _body(u: UnitState) -> Iterator[Step]:
    """What a unit executes."""
    for body in u.program.roles:
        if body.role == u.role:
            if body.unit is not None:
                u.variables[body.unit] = np.int32(u.index)
            return run_block(u, body.body)
    return iter(())


def _check_freed(unit: UnitState) -> None:
    """The last unit of a CTA has ended: no tensor memory may be left."""
    blocks = unit.cta.tensor_memory.blocks
    if blocks:
        columns = sum(blocks.values())
        message = f"CTA {unit.cta.block} ends and holds {columns} columns of tensor memory"
        related = unit.cta.tensor_memory.allocated()
        raise unit.locate(Finding(TMEM_HELD, message, {"columns": columns}, related=related))


def _in_flight(op: Operation, what: str) -> Finding:
    names = {
        "bulk_group": "a TMA store still reads shared memory",
        "cp_async": "a cp.async is in flight",
        "mbarrier": "a copy into it is in flight, whose barrier nobody waited for",
    }
    how = names.get(op.kind, f"{op.kind} is in flight")
    finding = Finding(EXIT_IN_FLIGHT, f"{what} while {how}", {"completion": op.kind})
    return op.issuer.locate(finding, op.place)
