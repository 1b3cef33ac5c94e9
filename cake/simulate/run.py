"""Running a program over a grid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from cake.diag import Diagnostic
from cake.ir.dtypes import numpy_dtype
from cake.ir.nodes import Expr
from cake.ir.program import Grid, Program, Tiles, WorkspaceDecl
from cake.ops.raster import cluster_size
from cake.simulate.arguments import bind
from cake.simulate.arithmetic import ArithmeticName, Floats, arithmetic_of
from cake.simulate.codes import INCOMPLETE_OUTPUT
from cake.simulate.cta import Cta, Launch
from cake.simulate.engine import Engine
from cake.simulate.errors import Finding
from cake.simulate.evaluator import Evaluator
from cake.simulate.global_memory import GlobalTensor
from cake.simulate.grid import coordinates, length
from cake.simulate.orders import ORDERS, Order
from cake.simulate.origins import writers
from cake.simulate.schedule import Schedule
from cake.simulate.stamps import Stamps
from cake.simulate.unit import UnitState

RESIDENT = 3
"""CTAs of a persistent grid, so that a few tiles already exercise the second wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What a run found. The tensors were written in place.

    ``modulus`` is that of ring arithmetic: the floats left behind are residues.
    """

    findings: tuple[Diagnostic, ...]
    ctas: int
    steps: int
    modulus: int | None = None

    @property
    def ok(self) -> bool:
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run. See :func:`simulate`."""

    order: str | Order = "late"
    seed: int = 0
    resident: int = RESIDENT
    blocks: Sequence[int] | None = None
    reverse: bool = False
    concurrent: bool = False
    arithmetic: ArithmeticName = "float"
    max_steps: int = 20_000_000


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
    concurrent: bool = False,
    arithmetic: ArithmeticName = "float",
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
        concurrent: run all CTAs together instead of one cluster after another. Programs whose
            CTAs wait for each other need it; it shows what depends on the CTAs' order.
        arithmetic: "float", or "ring" for exact arithmetic modulo a prime
            (:mod:`cake.simulate.arithmetic`). Float tensors are replaced by their residues.
        max_steps: limit on scheduling steps over all CTAs.

    Returns:
        The findings (none on a right program), each at the author's statement.
    """
    memory = {
        name: GlobalTensor.garbage(name, array) if name in outputs else GlobalTensor(name, array)
        for name, array in tensors.items()
    }
    options = Options(
        order=order,
        seed=seed,
        resident=resident,
        blocks=blocks,
        reverse=reverse,
        concurrent=concurrent,
        arithmetic=arithmetic,
        max_steps=max_steps,
    )
    return launch(program, memory, scalars or {}, options, arithmetic_of(arithmetic, [program]))


def launch(
    program: Program,
    memory: Mapping[str, GlobalTensor],
    scalars: Mapping[str, int | float],
    options: Options,
    arithmetic: Floats,
    before: Sequence[Program] = (),
) -> Simulation:
    """Execute a program on tensors that know where they have been written.

    ``before`` are the programs launched on them earlier.
    """
    run = _Run(program, options, arithmetic)
    findings: tuple[Diagnostic, ...] = ()
    try:
        run.execute(memory, scalars)
    except Finding as f:
        if f.unwritten is not None:
            f.related += writers((*before, program), f.unwritten)
        findings = (f.diagnostic(program.loc),)
    return Simulation(findings=findings, ctas=run.ctas, steps=run.steps, modulus=arithmetic.modulus)


@dataclass(slots=True)
class _Run:
    program: Program
    options: Options
    arithmetic: Floats
    random: Random = field(init=False)
    ctas: int = 0
    steps: int = 0
    units: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.options.seed)

    @property
    def order(self) -> Order:
        order = self.options.order
        return ORDERS[order] if isinstance(order, str) else order

    def execute(
        self, memory: Mapping[str, GlobalTensor], scalars: Mapping[str, int | float]
    ) -> None:
        """Run the chosen clusters, one after another or together."""
        bound = bind(self.program, {n: t.array for n, t in memory.items()}, scalars)
        bound = {name: self.arithmetic.settle(value) for name, value in bound.items()}
        for tensor in memory.values():
            self.arithmetic.settle(tensor.array)
        host = _Host(self.program, bound)
        workspaces = {w.name: host.workspace(w) for w in self.program.find(WorkspaceDecl)}
        launched = Launch(
            program=self.program,
            tensors={**memory, **workspaces},
            scalars=bound,
            grid_size=host.grid_size(self.options.resident),
            arithmetic=self.arithmetic,
        )
        size = cluster_size(self.program)
        blocks = range(launched.grid_size) if self.options.blocks is None else self.options.blocks
        reverse = self.options.reverse or self.order.reverse
        clusters = sorted({b // size for b in blocks}, reverse=reverse)
        if self.options.concurrent:
            self._together(launched, host, clusters)
        else:
            for cluster in clusters:
                self._together(launched, host, [cluster])
        for decl in self.program.find(WorkspaceDecl):
            if decl.zeroed:
                _check_zero(decl, workspaces[decl.name])

    def _together(self, launched: Launch, host: _Host, clusters: Sequence[int]) -> None:
        """The units of some clusters under one schedule."""
        engine = Engine(self.order, self.random)
        ctas = [cta for c in clusters for cta in host.cluster(launched, engine, c)]
        self.ctas += len(ctas)
        units = []
        for cta in ctas:
            for role in self.program.role_decls():
                for index in range(role.units):
                    self.units += 1
                    units.append(UnitState(cta, role, index, self.units))
        left = self.options.max_steps - self.steps
        schedule = Schedule(units, engine, self.random, left)
        try:
            schedule.run()
        finally:
            self.steps += schedule.steps


class _Host:
    """What is known before the launch: kernel-level values and the size of the grid."""

    def __init__(self, program: Program, scalars: Mapping[str, Any]) -> None:
        self.program = program
        self.scalars = scalars
        self.grid: Grid | None = next(iter(program.find(Grid)), None)
        self.extents: list[int] = []
        if self.grid is not None:
            self.extents = self._numbers(self.grid.extents)

    def values(self, point: Sequence[int]) -> dict[str, Any]:
        """Kernel-level values at a point of the grid."""
        names = () if self.grid is None else self.grid.vars
        at = {name: np.int32(c) for name, c in zip(names, point, strict=True)}
        evaluator = Evaluator(self.program, self.scalars, at)
        for let in self.program.lets:
            evaluator.variables[let.targets[0]] = evaluator.eval(let.value)
        return evaluator.variables

    def _numbers(self, exprs: Sequence[Expr]) -> list[int]:
        """Extents: they do not depend on the point, whose coordinates count as 0 here."""
        origin = () if self.grid is None else (0,) * len(self.grid.vars)
        evaluator = Evaluator(self.program, self.scalars, self.values(origin))
        return [int(evaluator.eval(e)) for e in exprs]

    def workspace(self, decl: WorkspaceDecl) -> GlobalTensor:
        array = np.zeros(self._numbers(decl.shape), numpy_dtype(decl.dtype))
        if decl.zeroed:
            return GlobalTensor(decl.name, array)
        return GlobalTensor.garbage(decl.name, array)

    def grid_size(self, resident: int) -> int:
        """CTAs launched: whole clusters."""
        tiles: tuple[Tiles, ...] = self.program.find(Tiles)
        count = 1
        if self.grid is not None:
            count = length(self.program, self.grid, self.extents)
        elif tiles:
            extents = self._numbers(tiles[0].extents)
            count = min(length(self.program, tiles[0], extents), resident)
        size = cluster_size(self.program)
        return -(-count // size) * size

    def cluster(self, launched: Launch, engine: Engine, number: int) -> Iterator[Cta]:
        """The CTAs of a cluster that have a tile; the others exit at once."""
        size = cluster_size(self.program)
        members: list[Cta] = []
        stamps = Stamps()
        for rank in range(size):
            block = number * size + rank
            point: tuple[int, ...] | None = ()
            if self.grid is not None:
                point = coordinates(self.program, self.grid, self.extents, block)
            cta = Cta(
                launch=launched,
                engine=engine,
                block=block,
                rank=rank,
                cluster=members,
                lets={} if point is None else self.values(point),
                stamps=stamps,
            )
            members.append(cta)
            if point is not None:
                yield cta


def _check_zero(decl: WorkspaceDecl, tensor: GlobalTensor) -> None:
    """A zeroed workspace is cleared once; every launch leaves it as it found it."""
    if tensor.array.any():
        index = tuple(int(i[0]) for i in np.nonzero(tensor.array))
        raise Finding(
            INCOMPLETE_OUTPUT,
            f"workspace {decl.name} is not zero at {index} when the kernel ends",
            {"workspace": decl.name, "index": str(index)},
        ).at(decl.loc, {})
