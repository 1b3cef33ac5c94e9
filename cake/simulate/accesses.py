"""How a unit reaches memory: views and places become addresses, masks choose threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cake.diag import Related
from cake.ir.dtypes import numpy_dtype
from cake.ir.nodes import Expr, TensorRef, View
from cake.ir.program import Role, Smem
from cake.ir.types import WARP, SmemView
from cake.ops.machine import Proxy
from cake.simulate.codes import SMEM_BOUNDS
from cake.simulate.errors import Finding
from cake.simulate.evaluator import Evaluator
from cake.simulate.global_memory import turns
from cake.simulate.shared import SharedMemory
from cake.simulate.stamps import SETTLED, SEVERAL, Accesses

if TYPE_CHECKING:
    from cake.simulate.cta import Cta


class MemoryUnit(Evaluator):
    """The part of a unit that reads and writes memory. ``identity`` numbers units from 1."""

    def __init__(self, cta: Cta, role: Role, index: int, identity: int) -> None:
        arithmetic = cta.launch.arithmetic
        super().__init__(cta.program, cta.scalars, cta.lets, role.unit_threads, arithmetic)
        self.cta = cta
        self.role = role.name
        self.index = index
        self.identity = identity
        self.accesses = Accesses(cta.stamps, self.threads, self.describe())

    def describe(self) -> str:
        """Who this is, for reports."""
        return f"CTA {self.cta.block} role {self.role}[{self.index}]"

    def facts(self) -> dict[str, Any]:
        return {"cta": self.cta.block, "role": self.role, "unit": self.index}

    # -- shared memory -------------------------------------------------------------------------

    def smem_read(
        self,
        view: Expr,
        index: Sequence[Any] | None = None,
        *,
        mask: Any = None,
        proxy: Proxy = "generic",
        peer: int | None = None,
    ) -> Any:
        decl, stage, memory = self._buffer(view, peer)
        chosen = None if mask is None or np.all(mask) else mask
        addresses, shape, chosen = self._addresses(view, decl, stage, index, memory, chosen)
        if proxy == "async":
            memory.check_async(decl, addresses)
        else:
            threads = self._threads_of(shape, chosen, index)
            memory.check_load(decl, addresses, self.accesses, threads, self._stored_it)
            memory.note_load(decl, addresses, self._stamped(threads, store=False))
        values = memory.load(decl, stage, addresses)
        if chosen is None:
            return values
        out = np.zeros(shape, numpy_dtype(decl.dtype))
        out[chosen] = values
        return out

    def smem_write(
        self,
        view: Expr,
        values: Any,
        index: Sequence[Any] | None = None,
        *,
        mask: Any = None,
        proxy: Proxy = "generic",
        peer: int | None = None,
    ) -> None:
        decl, stage, memory = self._buffer(view, peer)
        if mask is None and proxy == "generic" and self.diverged:
            mask = self.mask
        chosen = None if mask is None or np.all(mask) else mask
        addresses, shape, chosen = self._addresses(view, decl, stage, index, memory, chosen)
        if chosen is not None:
            values = np.broadcast_to(values, shape)[chosen]
        rows: Any = SETTLED
        if proxy == "generic":
            threads = self._threads_of(shape, chosen, index)
            in_step = self._in_step(threads)
            memory.check_store(decl, addresses, self.accesses, threads, in_step)
            memory.check_overwrite(decl, addresses, values, self.accesses, threads, in_step)
            rows = self._stamped(threads, store=True)
        memory.store(decl, addresses, values, rows)

    def smem_update(
        self,
        view: Expr,
        values: Any,
        index: Sequence[Any],
        op: Callable[[Any, Any], Any],
        *,
        mask: Any = None,
    ) -> Any:
        decl, stage, memory = self._buffer(view, None)
        self.accesses.learn(self.cta.stamps.released)
        want = self.mask if mask is None else np.asarray(mask)
        values = np.asarray(values)
        want = np.broadcast_to(want, np.broadcast_shapes(want.shape, values.shape))
        addresses, shape, chosen = self._addresses(view, decl, stage, index, memory, want)
        threads = self._threads_of(shape, chosen, index)
        memory.check_load(decl, addresses, self.accesses, threads, self._stored_it)
        memory.check_store(decl, addresses, self.accesses, threads, self._in_step(threads))
        given = np.broadcast_to(values, shape)[chosen]
        before = np.zeros(given.shape, numpy_dtype(decl.dtype))
        for turn in turns(addresses):
            before[turn] = memory.load(decl, stage, addresses[turn])
            after = self.arithmetic.settle(op(before[turn], given[turn]))
            memory.store(decl, addresses[turn], after, SETTLED)
        old = np.zeros(shape, numpy_dtype(decl.dtype))
        old[chosen] = before
        return old

    def _buffer(self, view: Expr, peer: int | None) -> tuple[Smem, int, SharedMemory]:
        assert isinstance(view, View)
        decl = self.program.resource(view.base)
        assert isinstance(decl, Smem)
        stage = 0 if view.stage is None else int(self.eval(view.stage))
        return decl, stage, self.cta.peer(peer).smem

    def _addresses(
        self,
        view: Expr,
        decl: Smem,
        stage: int,
        index: Sequence[Any] | None,
        memory: SharedMemory,
        mask: Any,
    ) -> tuple[Any, tuple[int, ...], Any]:
        """Byte addresses of the accessed elements; the shape of all, and which of it (None: all).

        With a mask the addresses are flat.
        """
        assert isinstance(view, View)
        assert isinstance(view.type, SmemView)
        if index is None and mask is None:
            offsets = [int(self.eval(o)) for o in view.offsets]
            addresses = memory.tile(decl, stage, offsets, view.type)
            return addresses, addresses.shape, None
        coordinates = self._coordinates(view, view.type, index)
        if mask is None:
            addresses = memory.elements(decl, stage, coordinates)
            return addresses, addresses.shape, None
        *spread, chosen = np.broadcast_arrays(*coordinates, mask)
        addresses = memory.elements(decl, stage, [c[chosen] for c in spread])
        return addresses, chosen.shape, chosen

    def _coordinates(self, view: View, t: SmemView, index: Sequence[Any] | None) -> list[Any]:
        """One array for each declared axis of the buffer."""
        shape = t.shape if not t.transposed else (*t.shape[:-2], t.shape[-1], t.shape[-2])
        logical = list(np.indices(shape) if index is None else index)
        for axis, i in enumerate(logical):
            if np.any(np.less(i, 0)) or np.any(np.greater_equal(i, shape[axis])):
                self.fail(
                    SMEM_BOUNDS,
                    f"an index is outside extent {shape[axis]} of a view of {view.base}",
                    buffer=view.base,
                    extent=shape[axis],
                )
        if t.transposed:
            logical[-2:] = [logical[-1], logical[-2]]
        dims = max((np.ndim(i) for i in logical), default=0)
        starts = [_along_axis_0(np.asarray(self.eval(o)), dims) for o in view.offsets]
        dropped = len(starts) - len(logical)
        return starts[:dropped] + [s + i for s, i in zip(starts[dropped:], logical, strict=True)]

    def _threads_of(self, shape: tuple[int, ...], chosen: Any, index: Any) -> Any:
        """Which thread accesses each element, SEVERAL where that is not one.

        Per-thread accesses have the threads along axis 0. Of a whole tile the threads of the unit
        take equal parts.
        """
        if index is None and shape:
            size = int(np.prod(shape))
            threads = (np.arange(size) * self.threads // max(size, 1)).reshape(shape)
        elif shape and shape[0] == self.threads:
            threads = _along_axis_0(np.arange(self.threads), len(shape))
            threads = np.broadcast_to(threads, shape)
        else:
            active = np.nonzero(self.mask)[0]
            threads = np.full(shape, active[0] if len(active) == 1 else SEVERAL)
        return threads if chosen is None else threads[chosen]

    def _stamped(self, threads: Any, *, store: bool) -> Any:
        """Rows of the stamps for an access by ``threads`` in the statement being executed."""
        assert self.place is not None
        return self.accesses.rows(self.place.loc, threads, self.mask, store=store)

    def _stored_it(self, several: Any) -> bool:
        """Have all active threads stored a value that ``several`` threads stored alike?"""
        return not np.any(self.mask & ~several)

    def _in_step(self, threads: Any) -> Callable[[Any], bool]:
        """A warp whose threads all load an element and then all store to it does so in step."""
        together = self.threads == WARP and bool(np.all(threads == SEVERAL))
        return lambda several: together

    # -- global memory -------------------------------------------------------------------------

    def extent(self, tensor: str, axis: int) -> int:
        return int(self.cta.tensors[tensor].array.shape[axis])

    def global_read(
        self,
        place: Expr,
        offset: Sequence[Any],
        *,
        mask: Any = None,
        fill: Any = None,
        proxy: Proxy = "generic",
    ) -> Any:
        tensor, coordinates = self._global(place, offset)
        if proxy == "generic":
            self.accesses.learn(self.cta.stamps.released)
        try:
            return tensor.read(coordinates, self._accessed(coordinates, mask, proxy), fill)
        except Finding as finding:
            self._in_flight(finding)
            raise

    def _in_flight(self, finding: Finding) -> None:
        """Name the copy in flight that brings the data which a finding misses."""
        op = None if finding.arrived is None else self.cta.engine.bringing(finding.arrived)
        if op is not None and op.place is not None:
            finding.message += ": the copy that brings it has not completed"
            what = "the copy starts here and has not completed"
            finding.related += (Related(span=op.place.loc, message=what),)
            finding.unwritten = None

    def global_write(
        self,
        place: Expr,
        values: Any,
        offset: Sequence[Any],
        *,
        mask: Any = None,
        clip: bool = False,
        proxy: Proxy = "generic",
    ) -> None:
        tensor, coordinates = self._global(place, offset)
        tensor.write(coordinates, values, self._accessed(coordinates, mask, proxy), clip=clip)

    def global_update(
        self,
        place: Expr,
        values: Any,
        offset: Sequence[Any],
        op: Callable[[Any, Any], Any],
        *,
        mask: Any = None,
        clip: bool = False,
    ) -> Any:
        tensor, coordinates = self._global(place, offset)
        self.accesses.learn(self.cta.stamps.released)
        active = self._accessed(coordinates, mask, "generic")
        settle = self.arithmetic.settle
        return tensor.update(coordinates, values, lambda a, b: settle(op(a, b)), active, clip=clip)

    def _global(self, place: Expr, offset: Sequence[Any]) -> tuple[Any, list[Any]]:
        assert isinstance(place, TensorRef)
        dims = max((np.ndim(o) for o in offset), default=0)
        starts = [_along_axis_0(np.asarray(self.eval(e)), dims) for e in place.index]
        coordinates = [
            s.astype(np.int64) + np.asarray(o, np.int64)
            for s, o in zip(starts, offset, strict=True)
        ]
        return self.cta.tensors[place.tensor], coordinates

    def _accessed(self, coordinates: Sequence[Any], mask: Any, proxy: Proxy) -> Any:
        """Which elements are accessed: the given mask, or the active threads along axis 0."""
        if mask is not None:
            return np.asarray(mask)
        if proxy == "async" or not self.diverged:
            return np.bool_(True)
        dims = max((np.ndim(c) for c in coordinates), default=0)
        return _along_axis_0(self.mask, dims)


def _along_axis_0(value: Any, dims: int) -> Any:
    """A value for each thread, shaped to go with axis 0 of arrays of ``dims`` axes."""
    if value.ndim == 1 and dims > 1:
        return value.reshape(-1, *([1] * (dims - 1)))
    return value
