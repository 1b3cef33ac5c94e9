"""Loads and stores of a thread as ``__device__`` helpers: element types, vectors, spaces, caching.

A vector access moves 4, 8 or 16 bytes whose address is a multiple of its size. Everything is
``asm volatile``: compilers keep such statements in order, so no access crosses a barrier or fence.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, Literal

import numpy as np

from cake.ir.dtypes import BOOL, F32, F64, I32, I64, TF32, U32, DType
from cake.ir.nodes import Call, Expr, Static, TensorRef, View
from cake.ir.program import Smem
from cake.ir.types import Scalar, SmemView, TensorPlace
from cake.ops import check
from cake.ops.base import TypingContext, static
from cake.ops.emit import Emitter
from cake.ops.machine import Unit

MAX_BYTES = 16
"""The widest access of one thread (sm_80 to sm_90; sm_100 has a 32-byte form for global memory)."""


@dataclass(frozen=True, slots=True)
class Word:
    """How a register is spelled: C type, asm constraint, PTX type; ``bytes`` as in memory."""

    c: str
    constraint: str
    ptx: str
    bytes: int


_WIDE = {
    F32: Word("float", "f", "f32", 4),
    TF32: Word("float", "f", "f32", 4),
    F64: Word("double", "d", "f64", 8),
    I32: Word("int", "r", "s32", 4),
    U32: Word("unsigned", "r", "u32", 4),
    I64: Word("long long", "l", "s64", 8),
}
_PACKED = Word("unsigned", "r", "b32", 4)
_HALF = Word("unsigned short", "h", "b16", 2)
_BYTE = Word("unsigned char", "h", "u8", 1)
_BOOL = Word("bool", "r", "u8", 1)


def element(dtype: DType) -> Word:
    """One element on its own."""
    return _WIDE.get(dtype) or (_HALF if dtype.bits == 16 else _BYTE)


def word(dtype: DType) -> Word:
    """One word of a register array; 16- and 8-bit elements are packed, truth values are not."""
    return _BOOL if dtype == BOOL else _WIDE.get(dtype, _PACKED)


def per_word(dtype: DType) -> int:
    """Elements in a word of a register array."""
    return word(dtype).bytes // dtype.bytes


def vector_bytes(dtype: DType, count: int, pitch: int = MAX_BYTES) -> int:
    """Bytes of each access when ``count`` elements move; rows are ``pitch`` bytes apart."""
    if dtype == BOOL:
        return 1
    return gcd(count * dtype.bytes, pitch, MAX_BYTES)


# -- operands --------------------------------------------------------------------------------------


def memory_of(t: TypingContext, e: Expr | None, what: str) -> TensorRef | View:
    """A place in global memory or a view of at most one axis in shared memory."""
    if isinstance(e, TensorRef):
        return e
    if isinstance(e, View) and isinstance(e.type, SmemView):
        return e
    t.fail(
        f"{what} must be a place in a tensor or a shared-memory view,"
        f" got {'nothing' if e is None else check.describe(e)}",
        e,
    )


def dtype_of(e: Expr) -> DType:
    """Element type of a place or view."""
    assert isinstance(e.type, TensorPlace | SmemView)
    return e.type.dtype


def indices(e: Expr) -> tuple[Expr, ...]:
    """The coordinates that say where a place or view lies."""
    assert isinstance(e, TensorRef | View)
    return e.index if isinstance(e, TensorRef) else e.offsets


def varies(*operands: Expr | None) -> bool:
    """Does an operand differ between the threads of the unit?"""
    return any(e is not None and isinstance(e.type, Scalar) and e.type.varying for e in operands)


def typed_scalar(t: TypingContext, e: Expr | None, dtype: DType, what: str) -> Expr:
    """A scalar of the given element type; compile-time numbers take it."""
    if e is None or (not isinstance(e.type, Scalar) and not isinstance(e, Static)):
        t.fail(f"{what} must be a scalar, got {'nothing' if e is None else check.describe(e)}", e)
    return t.coerce(e, dtype)


def typed_mask(t: TypingContext, mask: Expr | None) -> Expr | None:
    """A bool for each thread, or none."""
    return None if mask is None else check.boolean(t, mask, "mask")


def typed_peer(t: TypingContext, memory: Expr, peer: Expr | None) -> Expr | None:
    """The rank of a CTA of the cluster whose shared memory is meant, or none."""
    if peer is None:
        return None
    if not isinstance(memory, View):
        t.fail("peer= selects another CTA's shared memory; global memory has no peers", peer)
    if not t.target.dsmem:
        t.fail(f"{t.target.name} has no distributed shared memory", peer, code="CK201")
    return check.uniform(t, check.integer(t, peer, "peer"), "peer")


def pitch_of(stage: TypingContext | Emitter | Unit, e: Expr) -> int:
    """Bytes between rows of a buffer, as far as they bound the alignment of a vector."""
    if not isinstance(e, View):
        return MAX_BYTES
    buffer = stage.resource(e.base)
    assert isinstance(buffer, Smem)
    return MAX_BYTES if len(buffer.shape) == 1 else buffer.shape[-1] * buffer.dtype.bytes


# -- meaning ---------------------------------------------------------------------------------------


def active(unit: Unit, mask: Expr | None, dims: int) -> Any:
    """Threads that take part, shaped to go with axis 0 of arrays of ``dims`` axes.

    With ``dims`` 0 the access is uniform: it happens if any thread is active.
    """
    on = np.asarray(unit.mask)
    if mask is not None:
        on = on & np.asarray(unit.eval(mask))
    if dims == 0:
        return np.bool_(on.any())
    return on.reshape(-1, *([1] * (dims - 1)))


def publish_if_releasing(unit: Unit, call: Call) -> None:
    """A releasing access publishes what the unit has stored before it."""
    if static(call, "order") in ("release", "acq_rel"):
        unit.publish()


def peer_rank(unit: Unit, peer: Expr | None) -> int | None:
    """A uniform peer rank as a number."""
    if peer is None:
        return None
    rank = int(unit.eval(peer))
    if not 0 <= rank < unit.cluster_size:
        unit.fail("CK502", f"peer {rank} is outside the cluster of {unit.cluster_size}", peer=rank)
    return rank


# -- emission --------------------------------------------------------------------------------------

Space = Literal["global", "shared", "peer"]


def address(cg: Emitter, e: Expr, offset: str = "0") -> str:
    """Where element ``offset`` (along the last axis) lies: a pointer, or a shared address."""
    if isinstance(e, TensorRef):
        return cg.global_pointer(e, ["0"] * (len(e.index) - 1) + [offset])
    assert isinstance(e.type, SmemView)
    return cg.smem_address(e, [offset] if e.type.shape else [])


def space_of(e: Expr, peer: Expr | None) -> Space:
    """The state space of an access."""
    return "global" if isinstance(e, TensorRef) else "shared" if peer is None else "peer"


@dataclass(frozen=True, slots=True)
class Form:
    """The variant of an access: state space, cache operator, memory order at GPU scope."""

    space: Space
    cache: str | None = None
    order: str | None = None

    @property
    def suffix(self) -> str:
        return "_".join(filter(None, (self.space, self.order, self.cache)))

    @property
    def parameter(self) -> str:
        """The address parameters of a helper."""
        at = "const void* at" if self.space == "global" else "unsigned at"
        return f"{at}, unsigned rank" if self.space == "peer" else at

    @property
    def ptx(self) -> str:
        """What stands between the opcode and the type."""
        order = f".{self.order}.gpu" if self.order else ""
        space = ".shared::cluster" if self.space == "peer" else f".{self.space}"
        return f"{order}{space}{f'.{self.cache}' if self.cache else ''}"

    @property
    def map_rank(self) -> str:
        """The line that turns an own address into the peer's."""
        if self.space != "peer":
            return ""
        return '  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(at), "r"(rank));\n'

    @property
    def constraint(self) -> str:
        return "l" if self.space == "global" else "r"


def load_element(cg: Emitter, form: Form, dtype: DType) -> str:
    """Helper ``T name(at)`` that loads one element."""
    w = element(dtype)
    name = f"load_{form.suffix}_{w.ptx}"
    # A byte travels in a 16-bit register; PTX has no smaller ones.
    register = "unsigned short" if w.bytes == 1 else w.c
    code = f"""\
__device__ __forceinline__ {w.c} {name}({form.parameter}) {{
{form.map_rank}  {register} value;
  asm volatile("ld{form.ptx}.{w.ptx} %0, [%1];"
               : "={w.constraint}"(value) : "{form.constraint}"(at));
  return value;
}}"""
    return cg.helper(name, code)


def load_words(cg: Emitter, form: Form, dtype: DType, count: int) -> str:
    """Helper ``void name(T* to, at)`` that loads ``count`` words at once."""
    w = word(dtype)
    name = f"load_{form.suffix}_x{count}_{w.ptx}"
    outputs = ", ".join(f'"={w.constraint}"(to[{i}])' for i in range(count))
    op = f"ld{form.ptx}.{_dotted(count)}{w.ptx}"
    code = f"""\
__device__ __forceinline__ void {name}({w.c}* to, {form.parameter}) {{
{form.map_rank}  asm volatile("{op} {_operands(0, count)}, [%{count}];"
               : {outputs} : "{form.constraint}"(at));
}}"""
    return cg.helper(name, code)


def store_element(cg: Emitter, form: Form, dtype: DType) -> str:
    """Helper ``void name(at, T value)`` that stores one element."""
    w = element(dtype)
    name = f"store_{form.suffix}_{w.ptx}"
    value = "(unsigned short)value" if w.bytes == 1 else "value"
    code = f"""\
__device__ __forceinline__ void {name}({form.parameter}, {w.c} value) {{
{form.map_rank}  asm volatile("st{form.ptx}.{w.ptx} [%0], %1;"
               ::"{form.constraint}"(at), "{w.constraint}"({value}) : "memory");
}}"""
    return cg.helper(name, code)


def store_words(cg: Emitter, form: Form, dtype: DType, count: int) -> str:
    """Helper ``void name(at, const T* from)`` that stores ``count`` words at once."""
    w = word(dtype)
    name = f"store_{form.suffix}_x{count}_{w.ptx}"
    inputs = ", ".join(f'"{w.constraint}"(from[{i}])' for i in range(count))
    code = f"""\
__device__ __forceinline__ void {name}({form.parameter}, const {w.c}* from) {{
{form.map_rank}  asm volatile("st{form.ptx}.{_dotted(count)}{w.ptx} [%0], {_operands(1, count)};"
               ::"{form.constraint}"(at), {inputs} : "memory");
}}"""
    return cg.helper(name, code)


def _dotted(count: int) -> str:
    return f"v{count}." if count > 1 else ""


def _operands(first: int, count: int) -> str:
    names = ", ".join(f"%{first + i}" for i in range(count))
    return f"{{{names}}}" if count > 1 else names


def peer_argument(cg: Emitter, peer: Expr | None) -> str:
    """The rank argument of a helper for a peer's memory."""
    return "" if peer is None else f", {cg.scalar(peer)}"
