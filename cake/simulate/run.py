"""Running a program over a grid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from cake.diag import Diagnostic, Span
from cake.ir.dtypes import numpy_dtype
from cake.ir.program import Cluster, Grid, Program, ScalarParam, Tiles, WorkspaceDecl
from cake.ops.machine import Wait
from cake.simulate.codes import BAD_ARGUMENT, DEADLOCK, EXIT_IN_FLIGHT, TOO_LONG
from cake.simulate.cta import Cta
from cake.simulate.engine import Engine
from cake.simulate.errors import Finding
from cake.simulate.grid import coordinates, length
from cake.simulate.interpreter import Step, run_block
from cake.simulate.memory import GlobalTensor
from cake.simulate.orders import ORDERS, Order
from cake.simulate.unit import UnitState

RESIDENT = 3
"""CTAs of a persistent grid, so that a few tiles already exercise the second wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What a run found. The tensors were written in place."""

    findings: tuple[Diagnostic, ...]
    ctas: int
    steps: int

    @property
    def ok(self) -> bool:
        return not self.findings


def simulate(
    program: Program,
    tensors: Mapping[str, Any],
    scalars: Mapping[str, int | float] | None = None,
    *,
    outputs: Collection[str] = (),
    order: str | Order = "late",
    seed: int = 0,
    resident: int = RESIDENT,
    blocks: Sequence[int] | None = None,
    reverse: bool = False,
    max_steps: int = 20_000_000,
) -> Simulation:
    """Execute a program on numpy arrays.

    Args:
        program: an elaborated program.
        tensors: an array of the right shape and element type for each tensor parameter; written
            in place.
        scalars: values of the scalar parameters.
        outputs: tensors whose contents are garbage until written (reading them is a finding).
        order: name of an adversary in ``ORDERS``, or an ``Order``.
        seed: of the adversary's random choices.
        resident: CTAs of a persistent grid.
        blocks: block numbers to run (default: all); whole clusters.
        reverse: run CTAs in descending order.
        max_steps: limit on scheduling steps over all CTAs.

    Returns:
        The findings (none on a right program), each at the author's statement.
    """
    try:
        run = _Run(program, tensors, scalars or {}, outputs, order, seed, resident, max_steps)
        run.execute(blocks, reverse)
    except Finding as f:
        diagnostic = Diagnostic.of(f.code, f.message, program.loc, facts=f.facts)
        return Simulation(findings=(diagnostic,), ctas=0, steps=0)
    return Simulation(findings=tuple(run.findings), ctas=run.ctas, steps=run.steps)


class _Run:
    def __init__(
        self,
        program: Program,
        tensors: Mapping[str, Any],
        scalars: Mapping[str, int | float],
        outputs: Collection[str],
        order: str | Order,
        seed: int,
        resident: int,
        max_steps: int,
    ) -> None:
        self.program = program
        self.order = ORDERS[order] if isinstance(order, str) else order
        self.random = Random(seed)
        self.max_steps = max_steps
        self.resident = resident
        self.findings: list[Diagnostic] = []
        self.steps = 0
        self.ctas = 0
        self.units = 0
        self.scalars = self._bind(tensors, scalars)
        self.tensors = {
            t.name: GlobalTensor(
                t.name,
                t.dtype,
                tensors[t.name],
                np.zeros(tensors[t.name].shape, np.bool_) if t.name in outputs else None,
            )
            for t in program.tensors
        }
        self.cluster = next((c.size for c in program.find(Cluster)), 1)

    def _bind(
        self, tensors: Mapping[str, Any], scalars: Mapping[str, int | float]
    ) -> dict[str, Any]:
        """Dimensions from shapes, and typed scalar parameters."""
        out: dict[str, Any] = {}
        for t in self.program.tensors:
            array = tensors.get(t.name)
            if array is None:
                raise Finding(BAD_ARGUMENT, f"tensor {t.name} is missing", {"tensor": t.name})
            wanted = numpy_dtype(t.dtype)
            if array.dtype != wanted or array.ndim != len(t.shape):
                raise Finding(
                    BAD_ARGUMENT,
                    f"{t.name} must be {t.dtype} of rank {len(t.shape)}, "
                    f"got {array.dtype} of rank {array.ndim}",
                    {"tensor": t.name},
                )
            for d, extent in zip(t.shape, array.shape, strict=True):
                expected = out.setdefault(d, np.int32(extent)) if isinstance(d, str) else d
                if int(expected) != extent:
                    raise Finding(
                        BAD_ARGUMENT,
                        f"{t.name}: dimension {d} is {extent}, expected {int(expected)}",
                        {"tensor": t.name, "extent": extent},
                    )
        for p in self.program.params:
            if isinstance(p, ScalarParam):
                if p.name not in scalars:
                    raise Finding(BAD_ARGUMENT, f"scalar {p.name} is missing", {"scalar": p.name})
                out[p.name] = numpy_dtype(p.dtype).type(scalars[p.name])
        return out

    # -- grid ----------------------------------------------------------------------------------

    def _host_values(self, grid_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Kernel-level values, given the grid's coordinates."""
        cta = self._cta(0, 0)
        host = UnitState(cta, self.program.role_decls()[0], 0, 0)
        host.variables = dict(grid_vars)
        for let in self.program.lets:
            host.variables[let.targets[0]] = host.eval(let.value)
        return host.variables

    def _extents(self, decl: Grid | Tiles | WorkspaceDecl) -> list[int]:
        cta = self._cta(0, 0)
        host = UnitState(cta, self.program.role_decls()[0], 0, 0)
        zeros = {v: np.int32(0) for g in self.program.find(Grid) for v in g.vars}
        host.variables = self._host_values(zeros)
        shape = decl.shape if isinstance(decl, WorkspaceDecl) else decl.extents
        return [int(host.eval(e)) for e in shape]

    def _cta(self, block: int, rank: int, engine: Engine | None = None, grid: int = 1) -> Cta:
        return Cta(
            self.program,
            block,
            rank,
            engine=engine or Engine(self.order, self.random),
            tensors=self.tensors,
            scalars=self.scalars,
            grid_size=grid,
        )

    def execute(self, blocks: Sequence[int] | None, reverse: bool) -> None:
        """Run every cluster of the grid, one after another, until one has a finding."""
        for w in self.program.find(WorkspaceDecl):
            shape = self._extents(w)
            valid = None if w.zeroed else np.zeros(shape, np.bool_)
            array = np.zeros(shape, numpy_dtype(w.dtype))
            self.tensors[w.name] = GlobalTensor(w.name, w.dtype, array, valid)
        grids: tuple[Grid, ...] = self.program.find(Grid)
        tiles: tuple[Tiles, ...] = self.program.find(Tiles)
        if grids:
            extents = self._extents(grids[0])
            size = length(self.program, grids[0], extents)
        elif tiles:
            extents = []
            size = min(length(self.program, tiles[0], self._extents(tiles[0])), self.resident)
        else:
            extents, size = [], 1
        size = -(-size // self.cluster) * self.cluster
        chosen = sorted({b // self.cluster for b in (range(size) if blocks is None else blocks)})
        for first in reversed(chosen) if reverse else chosen:
            self._cluster(first * self.cluster, size, grids, extents)
            if self.findings:
                return

    def _cluster(self, first: int, size: int, grids: tuple[Grid, ...], extents: list[int]) -> None:
        engine = Engine(self.order, self.random)
        ctas = [self._cta(first + r, r, engine, size) for r in range(self.cluster)]
        for cta in ctas:
            cta.cluster = ctas
            grid_vars: dict[str, Any] = {}
            if grids:
                point = coordinates(self.program, grids[0], extents, cta.block)
                cta.exists = point is not None
                if point is None:
                    continue
                grid_vars = {v: np.int32(c) for v, c in zip(grids[0].vars, point, strict=True)}
            cta.lets = self._host_values(grid_vars)
        running = [c for c in ctas if c.exists]
        self.ctas += len(running)
        _Schedule(self, engine, running).run()


class _Schedule:
    """The units of one cluster, run to the end."""

    def __init__(self, run: _Run, engine: Engine, ctas: list[Cta]) -> None:
        self.run_state = run
        self.engine = engine
        self.units: list[UnitState] = []
        self.bodies: dict[int, Iterator[Step]] = {}
        self.waits: dict[int, Wait | None] = {}
        for cta in ctas:
            for role in run.program.role_decls():
                for index in range(role.units):
                    run.units += 1
                    u = UnitState(cta, role, index, run.units)
                    self._start(u)

    def _start(self, u: UnitState) -> None:
        for body in self.run_state.program.roles:
            if body.role == u.role:
                if body.unit is not None:
                    u.variables[body.unit] = np.int32(u.index)
                self.units.append(u)
                self.bodies[u.identity] = run_block(u, body.body)
                self.waits[u.identity] = None

    def run(self) -> None:
        run = self.run_state
        while self.units:
            ready = [u for u in self.units if self._ready(u)]
            try:
                if not ready:
                    if not self.engine.step():
                        self._deadlock()
                        return
                    continue
                if run.order.complete == "random" and run.random.random() < 0.3:
                    self.engine.step()
                self._advance(self._choose(ready))
            except Finding as f:
                self._report(f, ready[0] if ready else self.units[0])
                return
            run.steps += 1
            if run.steps > run.max_steps:
                self._report(
                    Finding(TOO_LONG, f"more than {run.max_steps} steps", {"steps": run.steps}),
                    self.units[0],
                )
                return
        try:
            self.engine.finish_all()
        except Finding as f:
            run.findings.append(Diagnostic.of(f.code, f.message, run.program.loc, facts=f.facts))

    def _ready(self, u: UnitState) -> bool:
        wait = self.waits[u.identity]
        return wait is None or wait.ready()

    def _choose(self, ready: list[UnitState]) -> UnitState:
        units = self.run_state.order.units
        if units == "random":
            self.current = self.run_state.random.choice(ready)
        else:
            self.current = ready[0 if units == "first" else -1]
        return self.current

    def _advance(self, u: UnitState) -> None:
        try:
            step = next(self.bodies[u.identity])
        except StopIteration:
            if self.engine.unread(u.identity):
                u.fail(EXIT_IN_FLIGHT, "the role ends while a TMA store still reads shared memory")
            self.units.remove(u)
            return
        self.waits[u.identity] = step
        # A unit that steps aside goes behind the others of its kind.
        if step is None and len(self.units) > 1:
            self.units.remove(u)
            self.units.append(u)

    def _report(self, f: Finding, fallback: UnitState) -> None:
        u = getattr(self, "current", fallback)
        place: Span = self.run_state.program.loc if u.place is None else u.place.loc
        facts = {"cta": u.cta.block, "role": u.role, "unit": u.index, **f.facts}
        self.run_state.findings.append(Diagnostic.of(f.code, f.message, place, facts=facts))

    def _deadlock(self) -> None:
        waiting = []
        for u in self.units:
            wait = self.waits[u.identity]
            if wait is not None:
                waiting.append(f"{u.describe()} waits for {wait.what}")
        message = "no unit can proceed: " + "; ".join(waiting)
        finding = Finding(DEADLOCK, message, {"waiting": len(waiting)})
        self.current = self.units[0]
        self._report(finding, self.units[0])
