"""What a primitive's emission may ask of the CUDA emitter.

How values look in the emitted C++: scalars are ``float``, ``int``, ``unsigned``, ``long long``,
``bool``; 16-bit floats are their bits in ``unsigned short``. Register arrays, fragments and vectors
are C arrays indexed by register: ``float a[N]``; 16-bit elements are packed two to an
``unsigned`` (``unsigned a[N/2]``, low half first), 8-bit four to one; bools are ``bool a[N]``.
Shared-memory addresses are 32-bit ``unsigned`` in the shared window.

An emission takes the name of an existing variable for its result, or None. An array result is
written there, else into a fresh array, whose name is returned; a scalar result is returned as an
expression. The operands do not read that variable, unless the call is fused (element by element).
A :class:`cake.ir.types.Tuple` result is returned as names of fresh arrays joined by ``", "``, to be
copied: the destinations may be operands. ``lanes`` returns the name of the array that it opens: a
variable bound to it is an alias.

Ids of hardware barriers come from :func:`cake.ops.barrier_ids.barrier_ids`, counts and bytes of a
ring from :func:`cake.ops.rings.ring_facts`.

Names free to use in emitted code: ``lane`` (0..31), ``warp_in_unit`` (0..3), ``unit_thread``
(0..unit_threads-1), ``unit`` (unit index in its role), ``cta_rank`` (rank in the cluster).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from cake.ir.nodes import Expr
from cake.ir.program import Program, ResourceDecl
from cake.ir.types import Type


class Emitter(Protocol):
    """The CUDA being written for one role."""

    target: str
    program: Program
    role: str
    """Name of the role being written."""
    unit_threads: int

    def resource(self, name: str) -> ResourceDecl: ...

    def line(self, text: str) -> None:
        """One line of C++ at the current indentation."""
        ...

    def block(self, head: str) -> AbstractContextManager[None]:
        """``head {`` ... ``}``."""
        ...

    def elected(self) -> AbstractContextManager[None]:
        """Code that one thread of the unit executes (the same thread every time)."""
        ...

    def unrolled(self, count: int, var: str = "i") -> AbstractContextManager[None]:
        """``#pragma unroll`` loop ``for (int var = 0; var < count; ++var)``."""
        ...

    def fresh(self, stem: str) -> str:
        """A name not used before in this function."""
        ...

    def helper(self, name: str, code: str) -> str:
        """Define a ``__device__`` function once, in front of the kernel; returns ``name``."""
        ...

    def declare(self, t: Type, name: str) -> None:
        """Declare an uninitialised variable or array for a value of type ``t``."""
        ...

    def scalar(self, e: Expr) -> str:
        """C expression of a scalar operand (nested primitives are emitted first)."""
        ...

    def array(self, e: Expr) -> str:
        """Name of the C array of an array operand, computed into a fresh one if needed."""
        ...

    def element(self, e: Expr, i: str, like: Type) -> str:
        """C expression of register ``i`` of operand ``e`` broadcast to the shape of ``like``.

        An atom, a call or parenthesised. A packed element comes as its bits (``unsigned short`` or
        ``unsigned char``). Calls that are fused (``elementwise_facets.is_fused``) are computed in
        place by ``elementwise_facets.element_expression``.
        """
        ...

    def smem_address(self, view: Expr, index: Sequence[str] = ()) -> str:
        """Shared address (``unsigned``) of an element of a view, swizzle applied.

        ``index``: C ints, one for each axis of the view's logical shape; empty means its origin.
        """
        ...

    def global_pointer(self, place: Expr, offset: Sequence[str] = ()) -> str:
        """Typed pointer to a coordinate (plus ``offset``, one C int an axis), 64-bit arithmetic.

        Element pointer types: float, int, unsigned short (16-bit floats), unsigned char (8-bit).
        """
        ...

    def coordinate(self, place: Expr) -> list[str]:
        """C expressions of a place's index, one for each axis."""
        ...

    def extent(self, tensor: str, axis: int) -> str:
        """C expression of a tensor's dimension."""
        ...

    def tensor_map(
        self, tensor: str, box: tuple[int, ...], swizzle: int, outside: str = "zero"
    ) -> str:
        """Address expression of the tensor map (a kernel parameter) for boxes of this shape.

        ``box`` has one entry for each axis of the tensor, outermost first. ``outside``: what
        elements outside the tensor read as, "zero" or "nan".
        """
        ...

    def full_barrier(self, pipeline: str, slot: str) -> str:
        """Shared address of a ring's full barrier for a stage expression."""
        ...

    def empty_barrier(self, pipeline: str, slot: str) -> str: ...

    def mbarrier(self, name: str, slot: str) -> str: ...

    def ring_cursor(self, pipeline: str, side: Literal["fill", "use"]) -> tuple[str, str]:
        """This role's place in a ring: variables ``int`` stage and ``unsigned`` phase.

        Declared, both 0, at the start of the role's body. Ring emission moves them (see
        :mod:`cake.ops.rings`): a producer waits for parity ``phase ^ 1`` of empty, a consumer for
        parity ``phase`` of full.
        """
        ...

    def require_alignment(self, tensor: str, bytes: int) -> None:
        """Launch only if the tensor's address and the strides of its outer axes are multiples of
        ``bytes`` and its last axis is contiguous."""
        ...
