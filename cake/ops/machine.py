"""What a primitive's meaning may ask of the simulator.

A unit (warp or warpgroup) is one coroutine. Values are numpy arrays: a scalar is 0-d (uniform) or
has shape (threads,); a register array, fragment or vector has shape (threads, registers), in the
register order of :mod:`cake.ir.fragments`. Element types are those of
:func:`cake.ir.dtypes.numpy_dtype`; tf32 is float32 already rounded.

A meaning is a function ``(unit, call) -> value``, or a generator that yields :class:`Wait` where
it may block and returns the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol

from cake.diag import Related
from cake.ir.dtypes import DType
from cake.ir.nodes import Expr
from cake.ir.program import Program, ResourceDecl
from cake.ir.types import Type
from cake.ops.base import Completion

Proxy = Literal["generic", "async"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierState:
    """A barrier's phase at hand, and the arrivals (or threads) and bytes that it waits for."""

    name: str
    phase: int
    arrivals: int
    bytes: int


class Barrier(Protocol):
    """Anything with phases that units wait for, with what deadlock reports say of it."""

    def describe(self) -> str:
        """The phase and what is due in it."""
        ...

    def due(self) -> BarrierState:
        """The same in figures."""
        ...

    def arrivals(self) -> tuple[Related, ...]:
        """Where the arrivals of the phase at hand were made."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """The unit blocks until ``ready()``; ``what`` says what it waits for, for deadlock reports.

    ``barrier`` is the barrier waited for, if it is one. ``drains``: ``ready`` does not look but
    makes the machine finish the unit's own operations (:meth:`Unit.drained`); the machine calls
    it as late as its adversary likes.
    """

    ready: Callable[[], bool]
    what: str
    barrier: Barrier | None = None
    drains: bool = False


class MBarrier(Barrier, Protocol):
    """One mbarrier: exact phase, pending arrivals and transaction count (PTX ISA, mbarrier)."""

    def arrive(self, count: int = 1, *, tx: int = 0) -> None:
        """``count`` arrivals; ``tx`` bytes are expected first (arrive.expect_tx)."""
        ...

    def expect_tx(self, tx: int) -> None:
        """``tx`` more bytes are expected in this phase; no arrival."""
        ...

    def complete_tx(self, tx: int) -> None: ...

    def passed(self, parity: int) -> bool:
        """test_wait.parity: has the phase of this parity completed?"""
        ...


class TensorMemory(Protocol):
    """The CTA's tensor memory: 128 lanes by columns of 32-bit cells. Misuse is a finding."""

    def free_block(self, columns: int) -> int | None:
        """First column of a free block, None if there is none now."""
        ...

    def allocate(self, columns: int) -> int:
        """Take the block that ``free_block`` names; its first column."""
        ...

    def free(self, column: int, columns: int) -> None: ...

    def read(self, column: int, columns: int, dtype: DType) -> Any:
        """Elements (lanes, columns) of a 32-bit type."""
        ...

    def issue(self, column: int, columns: int) -> None:
        """A product into these columns begins; ``write`` ends it."""
        ...

    def write(self, column: int, values: Any) -> None:
        """Store elements (lanes, columns) of a 32-bit type."""
        ...

    def products(self, column: int, columns: int) -> tuple[int, ...]:
        """Products issued so far into each of these columns."""
        ...

    def starts(self, column: int, columns: int) -> tuple[Related, ...]:
        """Where the last products into these columns were started, for a finding."""
        ...

    def busy(self, column: int, columns: int) -> bool:
        """Is a product into one of these columns in flight?"""
        ...


class Arithmetic(Protocol):
    """What floats are to the machine: rounded to their types, or exact elements of a ring."""

    def function(self, name: str, numpy: Callable[..., Any]) -> Callable[..., Any]:
        """What an elementwise primitive computes, given its numpy function."""
        ...

    def exact(self, value: Any) -> Any:
        """An exact sum in float64, as it is kept before it is rounded to its type."""
        ...


class Unit(Protocol):
    """A running warp or warpgroup."""

    threads: int
    index: int
    """Unit index within its role."""
    role: str
    program: Program
    block: int
    """Number of the CTA in the grid."""
    grid_size: int
    """CTAs launched."""
    block_rank: int
    """Rank of the CTA in its cluster."""
    cluster_size: int

    @property
    def arithmetic(self) -> Arithmetic: ...

    @property
    def mask(self) -> Any:
        """Active threads: bool array (threads,)."""
        ...

    def eval(self, e: Expr) -> Any: ...

    def uninitialised(self, t: Type) -> Any:
        """A new register value of type ``t`` that nothing has written yet (poison)."""
        ...

    def registers(self, e: Expr, *, read: bool) -> Any:
        """The array itself of a register variable, for a primitive that opens or overwrites it.

        ``eval`` of a variable reads it, and is a finding where it holds nothing yet or belongs to
        an operation in flight. This is none, except that with ``read`` the array must hold data.
        """
        ...

    def resource(self, name: str) -> ResourceDecl: ...

    def tensor_memory(self, rank: int | None = None) -> TensorMemory:
        """The tensor memory of this CTA, or of CTA ``rank`` of the cluster."""
        ...

    def clock(self) -> int:
        """A number that grows from call to call of the whole launch: what stands for time."""
        ...

    def extent(self, tensor: str, axis: int) -> int:
        """Extent of a global tensor along an axis."""
        ...

    def fail(
        self, code: str, message: str, *, related: tuple[Related, ...] = (), **facts: Any
    ) -> NoReturn:
        """A simulation finding (CK5xx) at the current statement; ``related``: other places."""
        ...

    # Where a view's offset or a place's coordinate varies (shape (threads,)), it goes with axis 0
    # of the index arrays: those then have shape (threads, ...) or are 0-d. ``mask`` likewise.
    #
    # Shared memory. ``index`` has one int array (any common shape) for each axis of the view's
    # logical shape (after transposition); None means the whole tile in logical order.
    def smem_read(
        self,
        view: Expr,
        index: Sequence[Any] | None = None,
        *,
        mask: Any = None,
        proxy: Proxy = "generic",
        peer: int | None = None,
    ) -> Any: ...

    def smem_write(
        self,
        view: Expr,
        values: Any,
        index: Sequence[Any] | None = None,
        *,
        mask: Any = None,
        proxy: Proxy = "generic",
        peer: int | None = None,
    ) -> None: ...

    # Global memory. ``offset`` has one int array for each axis, added to the place's coordinate.
    # ``fill`` given: out-of-range elements read as fill / are not written; None: they are findings.
    def global_read(
        self,
        place: Expr,
        offset: Sequence[Any],
        *,
        mask: Any = None,
        fill: Any = None,
        proxy: Proxy = "generic",
    ) -> Any: ...

    def global_write(
        self,
        place: Expr,
        values: Any,
        offset: Sequence[Any],
        *,
        mask: Any = None,
        clip: bool = False,
        proxy: Proxy = "generic",
    ) -> None: ...

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
        """Atomic read-modify-write, one element after another; returns the old values."""
        ...

    def smem_update(
        self,
        view: Expr,
        values: Any,
        index: Sequence[Any],
        op: Callable[[Any, Any], Any],
        *,
        mask: Any = None,
    ) -> Any: ...

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
        """Start an asynchronous operation.

        ``fetch`` reads the sources and ``land`` writes the destination; the machine runs them as
        early or as late as the model allows, then completes ``tx`` bytes on ``barrier`` (and on
        each of ``peers``) or retires the operation from its group. ``writes_register`` names an
        accumulator that must not be touched, ``reads_register`` an operand that must not be
        written, until the unit has waited for the operation. ``delivers`` is a new array of
        registers, the result of the call: it holds the values, but must not be touched before.
        """
        ...

    def commit(self, completion: Completion) -> None:
        """Close the group of operations issued since the last commit (wgmma, bulk, cp.async)."""
        ...

    def drained(self, completion: Completion, pending: int, *, reads_only: bool = False) -> bool:
        """At most ``pending`` groups of this unit are unfinished; the machine finishes the rest."""
        ...

    def arrive_when_done(self, completion: Completion, barrier: MBarrier, count: int) -> None:
        """``count`` arrivals once everything of ``completion`` that this unit has issued so far,
        committed or not, is done (cp.async.mbarrier.arrive, tcgen05.commit)."""
        ...

    def full_barrier(self, pipeline: str, stage: int, rank: int | None = None) -> MBarrier: ...

    def empty_barrier(self, pipeline: str, stage: int, rank: int | None = None) -> MBarrier: ...

    def mbarrier(self, name: str, slot: int, rank: int | None = None) -> MBarrier: ...

    def cursor(self, pipeline: str, side: Literal["fill", "use"]) -> tuple[int, int]:
        """This unit's (stage, phase bit) on a side of a ring; both start at 0.

        A producer waits for parity ``phase ^ 1`` of empty, a consumer for parity ``phase`` of full.
        """
        ...

    def advance(self, pipeline: str, side: Literal["fill", "use"]) -> None:
        """Next stage; the phase bit flips when the stage wraps."""
        ...

    def fence_proxy(self) -> None:
        """Order the active threads' generic accesses before later ones by the async proxy."""
        ...

    def publish(self) -> None:
        """What the unit has stored is visible to whoever synchronises with it: a fence or a
        release. Arrivals at barriers do this themselves."""
        ...

    # Hardware barriers by key: the name of a declared named barrier, "cta", "cluster" (all CTAs of
    # the cluster), "role:NAME" or "unit:NAME:INDEX". ``threads`` take part in a generation.

    def barrier_sync(self, key: str, threads: int) -> Any:
        """Generator: arrive at a barrier and wait for its generation."""
        ...

    def barrier_arrive(self, key: str, threads: int) -> None: ...

    def barrier_wait(self, key: str, threads: int) -> Any:
        """Generator: wait for the generation in which this unit arrived last."""
        ...
