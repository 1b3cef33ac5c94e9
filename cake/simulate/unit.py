"""A running warp or warpgroup: the simulator's implementation of ``cake.ops.machine.Unit``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

import numpy as np

from cake.ir.dtypes import numpy_dtype
from cake.ir.nodes import (
    Call,
    Const,
    DimRef,
    Element,
    Expr,
    Node,
    ResourceRef,
    Static,
    TensorRef,
    VarRef,
    View,
)
from cake.ir.program import Pipeline, ResourceDecl, Role, Smem
from cake.ir.types import Scalar, SmemView, Type, element_dtype, is_array, registers
from cake.ops.base import Completion, lookup
from cake.ops.machine import MBarrier, Proxy, Wait
from cake.simulate.engine import Operation
from cake.simulate.errors import Finding

if TYPE_CHECKING:
    from cake.simulate.cta import Cta

Side = Literal["fill", "use"]
POISON_INTEGER = 0x5A
"""What an unwritten integer register holds: fits every width and is no plausible index."""


class UnitState:
    """One unit of one CTA. ``identity`` numbers units over the whole simulation, from 1."""

    def __init__(self, cta: Cta, role: Role, index: int, identity: int) -> None:
        self.cta = cta
        self.program = cta.program
        self.role = role.name
        self.index = index
        self.identity = identity
        self.threads = role.unit_threads
        self.block_rank = cta.rank
        self.cluster_size = len(cta.cluster)
        self.variables: dict[str, Any] = dict(cta.lets)
        self.masks: list[Any] = [np.ones(self.threads, np.bool_)]
        self.cursors: dict[tuple[str, str], tuple[int, int]] = {}
        self.in_flight: dict[str, list[Operation]] = {}
        self.inside_operation = 0
        self.place: Node | None = None

    # -- control -------------------------------------------------------------------------------

    @property
    def mask(self) -> Any:
        """Active threads."""
        return self.masks[-1]

    def describe(self) -> str:
        """Who this is, for reports."""
        return f"CTA {self.cta.block} role {self.role}[{self.index}]"

    def fail(self, code: str, message: str, **facts: Any) -> NoReturn:
        raise Finding(code, message, {"role": self.role, "unit": self.index, **facts})

    def uninitialised(self, t: Type) -> Any:
        """A new register value that nothing has written yet: NaN, or a marked integer."""
        dtype = element_dtype(t)
        assert dtype is not None
        shape = (self.threads, registers(t)) if is_array(t) else (self.threads,)
        poison = float("nan") if dtype.is_float else numpy_dtype(dtype).type(POISON_INTEGER)
        return np.full(shape, poison, numpy_dtype(dtype))

    def extent(self, tensor: str, axis: int) -> int:
        return int(self.cta.tensors[tensor].array.shape[axis])

    def resource(self, name: str) -> ResourceDecl:
        return self.program.resource(name)

    # -- values --------------------------------------------------------------------------------

    def eval(self, e: Expr) -> Any:
        """Value of an expression; a primitive that blocks cannot stand inside another."""
        if isinstance(e, Const):
            assert isinstance(e.type, Scalar)
            return numpy_dtype(e.type.dtype).type(e.value)
        if isinstance(e, Static):
            return e.value
        if isinstance(e, VarRef):
            return self._variable(e.name)
        if isinstance(e, DimRef):
            return self.cta.scalars[e.name]
        if isinstance(e, Element):
            return self._element(e)
        if isinstance(e, Call):
            return self._call(e)
        if isinstance(e, ResourceRef):
            return e.name
        raise TypeError(f"{type(e).__name__} is a place, not a value")

    def _variable(self, name: str) -> Any:
        if name in self.in_flight and not self.inside_operation:
            self.in_flight[name] = [op for op in self.in_flight[name] if not op.done]
            if self.in_flight[name]:
                self.fail("CK506", f"{name} is touched while wgmma owns it", variable=name)
        return self.variables[name]

    def _element(self, e: Element) -> Any:
        array, index = self.eval(e.base), self.eval(e.index)
        length = array.shape[1]
        if np.any(np.less(index, 0)) or np.any(np.greater_equal(index, length)):
            self.fail("CK502", f"register index outside {length} registers", length=length)
        if np.ndim(index) == 0:
            return array[:, int(index)].copy()
        return np.take_along_axis(array, np.asarray(index)[:, None], axis=1)[:, 0]

    def _call(self, e: Call) -> Any:
        result = self.call(e)
        if inspect.isgenerator(result):
            try:
                while True:
                    wait = next(result)
                    if isinstance(wait, Wait) and not wait.ready():
                        self.fail("CK505", f"{e.op} blocks inside an expression")
            except StopIteration as stop:
                return stop.value
        return result

    def call(self, e: Call) -> Any:
        """Start a primitive: its value, or a generator that returns it."""
        primitive = lookup(e.op)
        assert primitive is not None
        if primitive.meaning is None:
            self.fail("CK505", f"{e.op} has no meaning in the simulator")
        return primitive.meaning(cast(Any, self), e)

    # -- shared memory -------------------------------------------------------------------------

    def _located(self, view: Expr, index: Sequence[Any] | None) -> tuple[Smem, int, list[Any]]:
        """Buffer, stage and coordinates (one array for each declared axis)."""
        assert isinstance(view, View)
        assert isinstance(view.type, SmemView)
        decl = self.program.resource(view.base)
        assert isinstance(decl, Smem)
        shape = view.type.shape
        logical = list(index) if index is not None else self._whole(view.type)
        if view.type.transposed:
            logical[-2:] = [logical[-1], logical[-2]]
        dropped = len(decl.shape) - len(shape)
        dims = max((np.ndim(i) for i in logical), default=0)
        coordinates: list[Any] = []
        for axis, offset in enumerate(view.offsets):
            start = np.asarray(self.eval(offset))
            if start.ndim == 1 and dims > 1:
                start = start.reshape(-1, *([1] * (dims - 1)))
            if axis < dropped:
                coordinates.append(start)
            else:
                self._inside(view, axis - dropped, logical[axis - dropped])
                coordinates.append(start + logical[axis - dropped])
        stage = 0 if view.stage is None else int(self.eval(view.stage))
        return decl, stage, coordinates

    def _inside(self, view: View, axis: int, index: Any) -> None:
        assert isinstance(view.type, SmemView)
        extent = view.type.shape[axis]
        if np.any(np.less(index, 0)) or np.any(np.greater_equal(index, extent)):
            self.fail("CK502", f"an index is outside extent {extent} of a view of {view.base}")

    @staticmethod
    def _whole(t: SmemView) -> list[Any]:
        shape = t.shape
        if t.transposed:
            shape = (*shape[:-2], shape[-1], shape[-2])
        return list(np.indices(shape)) if shape else []

    def _memory(self, peer: int | None) -> Any:
        return (self.cta if peer is None else self.cta.cluster[peer]).smem

    def smem_read(
        self,
        view: Expr,
        index: Sequence[Any] | None = None,
        *,
        mask: Any = None,
        proxy: Proxy = "generic",
        peer: int | None = None,
    ) -> Any:
        decl, stage, coordinates = self._located(view, index)
        memory = self._memory(peer)
        if mask is None or np.all(mask):
            addresses = memory.addresses(decl, stage, coordinates)
            return memory.read(decl, addresses, asynchronous=proxy == "async").copy()
        coordinates = list(np.broadcast_arrays(*coordinates, mask)[:-1])
        chosen = np.broadcast_to(mask, coordinates[0].shape)
        out = np.zeros(coordinates[0].shape, numpy_dtype(decl.dtype))
        addresses = memory.addresses(decl, stage, [c[chosen] for c in coordinates])
        out[chosen] = memory.read(decl, addresses, asynchronous=proxy == "async")
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
        decl, stage, coordinates = self._located(view, index)
        if mask is None and proxy == "generic" and not np.all(self.mask):
            mask = self.mask
        if mask is not None:
            coordinates = list(np.broadcast_arrays(*coordinates, np.asarray(mask))[:-1])
            chosen = np.broadcast_to(mask, coordinates[0].shape)
            values = np.broadcast_to(values, coordinates[0].shape)[chosen]
            coordinates = [c[chosen] for c in coordinates]
        memory = self._memory(peer)
        addresses = memory.addresses(decl, stage, coordinates)
        memory.write(decl, addresses, values, unit=self.identity if proxy == "generic" else 0)

    def smem_update(
        self,
        view: Expr,
        values: Any,
        index: Sequence[Any],
        op: Callable[[Any, Any], Any],
        *,
        mask: Any = None,
    ) -> Any:
        decl, stage, coordinates = self._located(view, index)
        memory = self._memory(None)
        want = self.mask if mask is None else mask
        arrays = np.broadcast_arrays(*coordinates, np.asarray(values), want)
        coords, given, chosen = arrays[:-2], arrays[-2], arrays[-1]
        old = np.zeros(given.shape, numpy_dtype(decl.dtype))
        for i in np.ndindex(given.shape):
            if chosen[i]:
                address = memory.addresses(decl, stage, [c[i] for c in coords])
                old[i] = memory.read(decl, address, asynchronous=False)
                memory.write(decl, address, op(old[i], given[i]), unit=self.identity)
        return old

    # -- global memory -------------------------------------------------------------------------

    def _coordinates(self, place: Expr, offset: Sequence[Any]) -> tuple[Any, list[Any]]:
        assert isinstance(place, TensorRef)
        dims = max((np.ndim(o) for o in offset), default=0)
        out = []
        for e, o in zip(place.index, offset, strict=True):
            start = np.asarray(self.eval(e)).astype(np.int64)
            if start.ndim == 1 and dims > 1:
                start = start.reshape(-1, *([1] * (dims - 1)))
            out.append(start + np.asarray(o, np.int64))
        return self.cta.tensors[place.tensor], out

    def global_read(
        self,
        place: Expr,
        offset: Sequence[Any],
        *,
        mask: Any = None,
        fill: Any = None,
        proxy: Proxy = "generic",
    ) -> Any:
        tensor, coordinates = self._coordinates(place, offset)
        return tensor.read(coordinates, self._active(coordinates, mask, proxy), fill)

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
        tensor, coordinates = self._coordinates(place, offset)
        tensor.write(coordinates, values, self._active(coordinates, mask, proxy), clip=clip)

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
        tensor, coordinates = self._coordinates(place, offset)
        active = self._active(coordinates, mask, "generic")
        return tensor.update(coordinates, values, op, active, clip=clip)

    def _active(self, coordinates: Sequence[Any], mask: Any, proxy: Proxy) -> Any:
        """Which elements are accessed: the given mask, or the active threads along axis 0."""
        if mask is not None:
            return np.asarray(mask)
        if proxy == "async" or np.all(self.mask):
            return np.bool_(True)
        dims = max((np.ndim(c) for c in coordinates), default=0)
        return self.mask.reshape(-1, *([1] * max(dims - 1, 0)))

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
    ) -> None:
        barriers = ([] if barrier is None else [barrier]) + list(peers)
        register = writes_register.name if isinstance(writes_register, VarRef) else None
        op = Operation(
            completion,
            self.identity,
            self._guarded(fetch),
            self._guarded(land),
            barriers=barriers,
            tx=tx,
            register=register,
        )
        if register is not None:
            self.in_flight.setdefault(register, []).append(op)
        self.cta.engine.issue(op)

    def _guarded(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Work of an operation may touch the registers it owns, at the place that issued it."""
        place = self.place

        def run(*args: Any) -> Any:
            outer, self.place = self.place, place
            self.inside_operation += 1
            try:
                return work(*args)
            finally:
                self.inside_operation -= 1
                self.place = outer

        return run

    def commit(self, completion: Completion) -> None:
        self.cta.engine.commit(self.identity, completion)

    def drained(self, completion: Completion, pending: int, *, reads_only: bool = False) -> bool:
        self.cta.engine.drain(self.identity, completion, pending, reads_only=reads_only)
        return True

    def arrive_when_done(self, completion: Completion, barrier: MBarrier, count: int) -> None:
        op = Operation(
            completion,
            self.identity,
            lambda: None,
            lambda value: None,
            barriers=[barrier],
            arrivals=count,
        )
        self.cta.engine.issue(op)

    # -- barriers ------------------------------------------------------------------------------

    def full_barrier(self, pipeline: str, stage: int, rank: int | None = None) -> MBarrier:
        return self.cta.peer(rank).full[pipeline][int(stage)]

    def empty_barrier(self, pipeline: str, stage: int, rank: int | None = None) -> MBarrier:
        return self.cta.peer(rank).empty[pipeline][int(stage)]

    def mbarrier(self, name: str, slot: int, rank: int | None = None) -> MBarrier:
        return self.cta.peer(rank).raw[name][int(slot)]

    def cursor(self, pipeline: str, side: Side) -> tuple[int, int]:
        return self.cursors.get((pipeline, side), (0, 0))

    def advance(self, pipeline: str, side: Side) -> None:
        stage, phase = self.cursor(pipeline, side)
        ring = self.program.resource(pipeline)
        assert isinstance(ring, Pipeline)
        wrapped = stage + 1 == ring.stages
        self.cursors[pipeline, side] = (0, phase ^ 1) if wrapped else (stage + 1, phase)

    def fence_proxy(self) -> None:
        for cta in self.cta.cluster:
            cta.smem.fence(self.identity)

    def barrier_sync(self, key: str, threads: int) -> Iterator[Wait]:
        self.barrier_arrive(key, threads)
        yield from self.barrier_wait(key, threads)

    def barrier_arrive(self, key: str, threads: int) -> None:
        self.cta.hardware_barrier(key, threads).arrive(self.identity, self.threads)

    def barrier_wait(self, key: str, threads: int) -> Iterator[Wait]:
        barrier = self.cta.hardware_barrier(key, threads)
        generation = barrier.joined.get(self.identity, -1)
        yield Wait(
            lambda: barrier.generation > generation,
            f"barrier {key}: {barrier.arrived} of {threads} threads arrived",
        )
