"""The walk over the roles of a program that finds its work; see :mod:`cake.cost.work`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from cake.cost.values import GRID_SAMPLES, LOOP_SAMPLES, Values, samples
from cake.diag import Span
from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Do,
    Element,
    Expr,
    For,
    If,
    ResourceRef,
    RoleBody,
    SetElement,
    Stmt,
    TensorRef,
    TileLoop,
    View,
    While,
)
from cake.ir.program import Cluster, Grid, Program, Role
from cake.ir.types import WARP, Resource, Void
from cake.ops.base import Access, Cost, lookup, static

LOOP_COST = Cost(alu=2, issue=3)
"""Of one iteration of a rolled loop, by thread (alu) and by warp (issue): count, compare, jump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The work of one call site in a CTA of average load.

    ``times`` sums the executions over the role's units, ``active`` weighs them by the share of
    active threads. ``cost`` is that of one execution by one unit. ``tensor`` is the global tensor
    that the bytes belong to, None for none. ``waits``: the thread waits for device memory here.
    """

    role: str
    op: str
    loc: Span
    cost: Cost
    times: float
    active: float
    tensor: str | None
    waits: bool


class Walk:
    """Walks the roles of one program and collects their work."""

    def __init__(
        self,
        program: Program,
        dims: Mapping[str, int | float],
        extents: list[int],
        tiles: int,
        ctas: int,
    ) -> None:
        self.program = program
        self.dims = dims
        self.extents = extents
        self.ctas = ctas
        self.tiles_per_cta = tiles / max(1, ctas)
        self.sites: list[Site] = []
        self.exposed: dict[str, float] = {}
        self.fills: dict[str, float] = {}
        self.assumptions: list[str] = []

    def role(self, body: RoleBody) -> None:
        decl = self.program.resource(body.role)
        assert isinstance(decl, Role)
        self.decl = decl
        threads = decl.warps * WARP
        self.values = Values(self.dims, threads, decl.unit_threads)
        self.exposed[decl.name] = 0.0
        if body.unit is not None:
            self.values.variables[body.unit] = np.arange(threads) // decl.unit_threads
        names = [v for g in self.program.find(Grid) for v in g.vars]
        self._along(names, 1.0, body.body, np.ones(threads, np.bool_), lets=True)

    def _along(
        self, names: list[str], times: float, body: Block, mask: Any, *, lets: bool = False
    ) -> None:
        """``body`` for the average of all tiles, ``times`` over; ``names`` are the coordinates."""
        if not names:
            if lets:
                self._lets()
            self._block(body, mask)
            return
        positions, weights = samples(self.extents[-len(names)], GRID_SAMPLES)
        scale = times / max(1, weights.sum())
        with self.values.axis(weights * scale) as shape:
            self.values.variables[names[0]] = positions.reshape(shape)
            self._along(names[1:], 1.0, body, mask, lets=lets)
        self.values.variables.pop(names[0], None)

    def _lets(self) -> None:
        for let in self.program.lets:
            self.values.variables[let.targets[0]] = self.values.eval(let.value)

    # -- statements ------------------------------------------------------------------------------

    def _block(self, block: Block, mask: Any) -> None:
        times, active = self._executions(mask)
        if not times:
            return
        waits = False
        for s in block:
            before = len(self.sites)
            self._statement(s, mask, times, active)
            if isinstance(s, Assign | Do | SetElement):
                waits |= any(site.waits for site in self.sites[before:])
        if waits:  # Those of one block overlap: they count once an execution.
            self.exposed[self.decl.name] += times / self.decl.units

    def _executions(self, mask: Any) -> tuple[float, float]:
        """How often the units of the role run a statement, and the same by active threads."""
        by_warp = mask.reshape(*mask.shape[:-1], -1, WARP)
        warps_per_unit = self.decl.unit_threads // WARP
        times = self.values.expectation(by_warp.any(-1)).sum() / warps_per_unit
        active = self.values.expectation(by_warp.mean(-1)).sum() / warps_per_unit
        return float(times), float(active)

    def _statement(self, s: Stmt, mask: Any, times: float, active: float) -> None:
        if isinstance(s, Assign):
            self._expression(s.value, s, times, active)
            self._assign(s)
        elif isinstance(s, Do):
            self._expression(s.call, s, times, active)
        elif isinstance(s, SetElement):
            self._expression(s.value, s, times, active)
        elif isinstance(s, For):
            self._for(s, mask, times, active)
        elif isinstance(s, TileLoop):
            self.values.forget(s.body)
            self._along(list(s.vars), self.tiles_per_cta, s.body, mask)
            self.values.forget(s.body)
        elif isinstance(s, While):
            self.values.forget(s.body)
            self._expression(s.cond, s, times, active)
            self._unknown_loop(s, s.body, mask)
            self.values.forget(s.body)
        elif isinstance(s, If):
            self._if(s, mask, times, active)
        elif isinstance(s, Bracket):
            self._bracket(s, mask, times, active)

    def _assign(self, s: Assign) -> None:
        self.values.forget((s,))
        if len(s.targets) == 1:
            self.values.variables[s.targets[0]] = self.values.eval(s.value)

    def _for(self, s: For, mask: Any, times: float, active: float) -> None:
        for e in (s.start, s.stop, s.step):
            self._expression(e, s, times, active)
        start, stop, step = (self.values.eval(e) for e in (s.start, s.stop, s.step))
        self.values.forget(s.body)
        if start is None or stop is None or step is None:
            self._unknown_loop(s, s.body, mask)
        else:
            trips = np.maximum(-((start - stop) // step), 0)
            positions, weights = samples(int(trips.max()), LOOP_SAMPLES)
            with self.values.axis(weights) as shape:
                index = positions.reshape(shape)
                self.values.variables[s.var] = start + index * step
                self._loop_overhead(s, mask & (index < trips))
                self._block(s.body, mask & (index < trips))
        self.values.variables.pop(s.var, None)
        self.values.forget(s.body)

    def _unknown_loop(self, s: Stmt, body: Block, mask: Any) -> None:
        """A loop whose length only the data know: long enough to read its tensors once."""
        first, exposed = len(self.sites), self.exposed[self.decl.name]
        self._block(body, mask)
        read: dict[str, float] = {}
        for site in self.sites[first:]:
            if site.tensor is not None and site.cost.gmem_read:
                size = site.cost.gmem_read * site.active * self.ctas
                read[site.tensor] = read.get(site.tensor, 0.0) + size
        missing = {name: self._tensor_bytes(name) / size for name, size in read.items() if size}
        name = max(missing, key=lambda n: missing[n], default="")
        trips = max(1.0, missing.get(name, 1.0))
        known = f"so that {name} is read once" if trips > 1 else "1"
        self._note(s, f"the number of iterations depends on data: {known} assumed")
        self.sites[first:] = [
            replace(site, times=site.times * trips, active=site.active * trips)
            for site in self.sites[first:]
        ]
        gained = self.exposed[self.decl.name] - exposed
        self.exposed[self.decl.name] += gained * (trips - 1)

    def _tensor_bytes(self, name: str) -> float:
        """The size of a tensor parameter; 0 for a workspace or an unknown dimension."""
        tensor = next((t for t in self.program.tensors if t.name == name), None)
        if tensor is None:
            return 0.0
        extents = [d if isinstance(d, int) else self.dims.get(d, 0) for d in tensor.shape]
        return float(prod(extents)) * tensor.dtype.bytes

    def _loop_overhead(self, s: For, mask: Any) -> None:
        if not s.unroll:
            threads = self.decl.unit_threads
            cost = Cost(alu=LOOP_COST.alu * threads, issue=LOOP_COST.issue * (threads // WARP))
            self._add("for", s.loc, cost, *self._executions(mask))

    def _if(self, s: If, mask: Any, times: float, active: float) -> None:
        self._expression(s.cond, s, times, active)
        cond = self.values.eval(s.cond)
        if cond is None:
            self._note(s, "the condition depends on data: both branches count in full")
        before = dict(self.values.variables)
        self._block(s.then, mask if cond is None else mask & cond)
        then, self.values.variables = self.values.variables, before
        before = dict(before)
        self._block(s.orelse, mask if cond is None else mask & ~cond)
        self.values.merge(cond, then, self.values.variables)

    def _bracket(self, s: Bracket, mask: Any, times: float, active: float) -> None:
        ring = ResourceRef(name=s.pipeline, type=Resource("pipeline"), loc=s.loc)
        for op in ("acquire", "commit") if s.side == "fill" else ("wait", "release"):
            self._call(Call(op=op, args=(ring,), type=Void(), loc=s.loc), s, times, active)
        self._block(s.body, mask)

    # -- expressions -----------------------------------------------------------------------------

    def _expression(self, e: Expr, s: Stmt, times: float, active: float) -> None:
        """The calls of an expression; subscripts are part of the access that they belong to."""
        if isinstance(e, View | TensorRef):
            return
        if isinstance(e, Element):
            self._expression(e.base, s, times, active)
        elif isinstance(e, Call):
            for a in e.args:
                if a is not None:
                    self._expression(a, s, times, active)
            self._call(e, s, times, active)

    def _call(self, call: Call, s: Stmt, times: float, active: float) -> None:
        primitive = lookup(call.op)
        assert primitive is not None
        if primitive.cost is None:
            self._note(s, f"{call.op} has no cost")
            return
        if call.op == "acquire" and isinstance(call.args[0], ResourceRef):
            name = call.args[0].name
            self.fills[name] = self.fills.get(name, 0.0) + times / self.decl.units
        if call.op == "cp_async_wait":
            ahead: int = static(call, "pending")
            self.exposed[self.decl.name] += times / self.decl.units / (ahead + 1)
        accesses = [x for x in primitive.effects(call) if isinstance(x, Access)]
        touched = [x for x in accesses if x.space == "global"]
        operand = call.args[touched[0].operand] if touched else None
        self._add(
            call.op,
            s.loc,
            self._shared(call, primitive.cost(call, self.decl.unit_threads)),
            times,
            active,
            tensor=operand.tensor if isinstance(operand, TensorRef) else None,
            waits=any(x.action != "write" and x.completes == "now" for x in touched),
        )

    def _shared(self, call: Call, cost: Cost) -> Cost:
        """A multicast copy is fetched once by the cluster: each CTA reads its share."""
        if call.op == "tma_load" and static(call, "multicast"):
            size = next((c.size for c in self.program.find(Cluster)), 1)
            return replace(cost, gmem_read=cost.gmem_read // size)
        return cost

    def _add(
        self,
        op: str,
        loc: Span,
        cost: Cost,
        times: float,
        active: float,
        *,
        tensor: str | None = None,
        waits: bool = False,
    ) -> None:
        if cost != Cost():
            self.sites.append(
                Site(
                    role=self.decl.name,
                    op=op,
                    loc=loc,
                    cost=cost,
                    times=times,
                    active=active,
                    tensor=tensor,
                    waits=waits,
                )
            )

    def _note(self, s: Stmt, text: str) -> None:
        self.assumptions.append(f"{s.loc.file}:{s.loc.line}: {text}")
