"""The emitter of one role: implements :class:`cake.ops.emit.Emitter`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from cake.codegen import cuda_memory
from cake.codegen.cuda_state import KernelState
from cake.codegen.cuda_text import (
    CInt,
    bare,
    c_type,
    declaration,
    known,
    literal,
    memory_type,
    packing,
    paren,
    scaled,
)
from cake.codegen.cuda_writer import Writer
from cake.codegen.emit_findings import NO_EMISSION, fail
from cake.ir.dtypes import F32, I32, DType
from cake.ir.nodes import (
    Call,
    Const,
    DimRef,
    Element,
    Expr,
    Static,
    TensorRef,
    VarRef,
    View,
)
from cake.ir.program import ResourceDecl, Smem, WorkspaceDecl
from cake.ir.types import (
    WARP,
    ColVector,
    Fragment,
    RowVector,
    Scalar,
    Slot,
    Type,
    element_dtype,
    is_array,
    registers,
)
from cake.ops.barrier_ids import barrier_ids
from cake.ops.base import lookup
from cake.ops.elementwise_facets import element_expression, is_fused
from cake.ops.layout import MBARRIER_BYTES
from cake.targets import get

TILE_EXISTS = "tile_exists"
"""Whether the tile of a CTA in a cluster lies within the extents (see :mod:`cake.ops.raster`)."""

_ELECT_ONE = """\
__device__ __forceinline__ bool elect_one() {
  unsigned elected;
  asm volatile(
      "{\\n"
      ".reg .pred p;\\n"
      "elect.sync _|p, 0xffffffff;\\n"
      "selp.u32 %0, 1, 0, p;\\n"
      "}\\n" : "=r"(elected));
  return elected;
}"""


class CudaEmitter:
    """Writes the C++ of one role, or with ``role=""`` of kernel-level values."""

    def __init__(
        self, kernel: KernelState, writer: Writer, *, role: str = "", unit_threads: int = 0
    ) -> None:
        self.kernel = kernel
        self.writer = writer
        self.program = kernel.program
        self.target = kernel.program.target
        self.role = role
        self.unit_threads = unit_threads
        self.cursors: dict[tuple[str, str], tuple[str, str]] = {}
        self.store_guard: str | None = None
        """C condition under which stores to global memory take effect, None for always."""
        self._aliases: dict[str, str] = {}
        self._elected = False
        self._computed: list[dict[int, str]] = [{}]

    # -- text ----------------------------------------------------------------------------------

    def resource(self, name: str) -> ResourceDecl:
        return self.program.resource(name)

    def line(self, text: str) -> None:
        self.writer.line(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        with self.writer.block(head), self.temporaries():
            yield

    @contextmanager
    def temporaries(self) -> Iterator[None]:
        """A C++ scope: what is computed inside is not known outside."""
        self._computed.append({})
        try:
            yield
        finally:
            self._computed.pop()

    @contextmanager
    def statement(self) -> Iterator[None]:
        """A statement of its own: operands of the one around it are computed anew."""
        outer, self._computed = self._computed, [{}]
        try:
            yield
        finally:
            self._computed = outer

    @contextmanager
    def elected(self) -> Iterator[None]:
        if self._elected:
            yield
            return
        head = f"if ({self._elects()})"
        self._elected = True
        try:
            if self.writer.reopen(head):
                self.writer.depth += 1
                with self.temporaries():
                    yield
                self.writer.depth -= 1
                self.writer.line("}")
            else:
                with self.block(head):
                    yield
        finally:
            self._elected = False

    def _elects(self) -> str:
        """The condition that one thread of the unit fulfils.

        From elect.sync ptxas knows that it is one thread; for other conditions it puts a loop over
        the lanes round every TMA instruction.
        """
        if not get(self.target).elect_sync:
            return "lane == 0" if self.unit_threads == WARP else "unit_thread == 0"
        self.kernel.helper("elect_one", _ELECT_ONE)
        return "leader" if self.unit_threads == WARP else "warp_in_unit == 0 && leader"

    @contextmanager
    def unrolled(self, count: int, var: str = "i") -> Iterator[None]:
        if not self.kernel.names.is_fresh(var):
            self.kernel.locals.add(var)
        self.line("#pragma unroll")
        with self.block(f"for (int {var} = 0; {var} < {count}; ++{var})"):
            yield

    def fresh(self, stem: str) -> str:
        return self.kernel.names.fresh(stem)

    def helper(self, name: str, code: str) -> str:
        return self.kernel.helper(name, code)

    def declare(self, t: Type, name: str) -> None:
        self.line(f"{declaration(t, name)};")

    # -- values --------------------------------------------------------------------------------

    def name_of(self, variable: str) -> str:
        """The C variable that holds a variable; an alias of ``lanes`` is the opened one."""
        return self._aliases.get(variable) or self.kernel.names.of(variable)

    def bind(self, variable: str, name: str) -> None:
        """Let a variable be another name for a C variable."""
        self._aliases[variable] = name

    def scalar(self, e: Expr) -> str:
        if isinstance(e, Const):
            return literal(e.value, _scalar_dtype(e.type))
        if isinstance(e, Static):
            return literal(e.value, F32 if isinstance(e.value, float) else I32)
        if isinstance(e, VarRef):
            return self.name_of(e.name)
        if isinstance(e, DimRef):
            return self.kernel.names.of(e.name)
        if isinstance(e, Element):
            index = bare(self.scalar(e.index))
            return self._register(self.array(e.base), _scalar_dtype(e.type), index)
        if isinstance(e, Call):
            return self._call_scalar(e)
        raise TypeError(f"{type(e).__name__} at {e.loc} is no scalar")

    def _call_scalar(self, e: Call) -> str:
        """Pure calls become expressions; others are computed once, in front of the statement."""
        found = self._find(e)
        if found is not None:
            return found
        primitive = lookup(e.op)
        assert primitive is not None
        text = self.emit(e)
        if text is None:
            raise TypeError(f"{e.op} at {e.loc} gives no value")
        if primitive.effects(e) or primitive.convergent:
            if not text.isidentifier():
                name = self.fresh(e.op)
                self.line(f"const {_value_type(e.type)} {name} = {bare(text)};")
                text = name
            self._computed[-1][id(e)] = text
        return text

    def array(self, e: Expr) -> str:
        if isinstance(e, VarRef):
            return self.name_of(e.name)
        assert isinstance(e, Call)
        found = self._find(e)
        if found is None:
            found = self.emit(e)
            if found is None:
                raise TypeError(f"{e.op} at {e.loc} gives no value")
            self._computed[-1][id(e)] = found
        return found

    def element(self, e: Expr, i: str, like: Type) -> str:
        if not is_array(e.type):
            return self.scalar(e)
        smaller = registers(e.type) < registers(like)
        if isinstance(e, Call) and is_fused(e) and not smaller and self._find(e) is None:
            return element_expression(self, e, i, like)
        dtype = element_dtype(e.type)
        assert dtype is not None
        return self._register(self.array(e), dtype, _broadcast_index(e.type, like, i))

    def emit(self, call: Call, dest: str | None = None) -> str | None:
        """Write a primitive; its result as :mod:`cake.ops.emit` says."""
        primitive = lookup(call.op)
        emission = None if primitive is None else primitive.emission(self.target)
        if emission is None:
            fail(
                NO_EMISSION,
                f"{call.op} has no emission for {self.target}",
                call.loc,
                facts={"primitive": call.op, "target": self.target},
            )
        return emission(self, call, dest)

    def _find(self, e: Expr) -> str | None:
        return next((f[id(e)] for f in reversed(self._computed) if id(e) in f), None)

    def _register(self, array: str, dtype: DType, index: str) -> str:
        """C expression of one element of a register array."""
        per = packing(dtype)
        if per == 1:
            return f"{array}[{index}]"
        at = known(index)
        if isinstance(at, int):
            word, shift = f"{array}[{at // per}]", at % per * dtype.bits
            text = f"{word} >> {shift}" if shift else word
        else:
            text = f"{array}[{paren(at)} / {per}] >> {paren(at)} % {per} * {dtype.bits}"
        return f"(({c_type(dtype)}){paren(text)})"

    # -- memory --------------------------------------------------------------------------------

    def smem_address(self, view: Expr, index: Sequence[str] = ()) -> str:
        assert isinstance(view, View)
        buffer = self.resource(view.base)
        assert isinstance(buffer, Smem)
        offset = cuda_memory.element_offset(self, view, buffer, [known(i) for i in index])
        return cuda_memory.shared_address(self._stage_base(view), offset)

    def _stage_base(self, view: View) -> CInt:
        place = self.kernel.layout.buffers[view.base]
        return cuda_memory.stage_base(self, view, place, self.kernel.offsets[view.base])

    def global_pointer(self, place: Expr, offset: Sequence[str] = ()) -> str:
        assert isinstance(place, TensorRef)
        pointer = self.kernel.pointer(place.tensor)
        strides = [self.kernel.strides[place.tensor, a] for a in range(len(place.index) - 1)]
        at = cuda_memory.global_offset(self, place, strides, offset)
        return pointer if at == 0 else f"({pointer} + {at})"

    def coordinate(self, place: Expr) -> list[str]:
        assert isinstance(place, TensorRef)
        return [self.scalar(i) for i in place.index]

    def extent(self, tensor: str, axis: int) -> str:
        decl = self.kernel.tensor(tensor)
        if isinstance(decl, WorkspaceDecl):
            return self.scalar(decl.shape[axis])
        dim = decl.shape[axis]
        return str(dim) if isinstance(dim, int) else self.kernel.names.of(dim)

    def tensor_map(
        self, tensor: str, box: tuple[int, ...], swizzle: int, outside: str = "zero"
    ) -> str:
        return f"&{self.kernel.tensor_map(tensor, box, swizzle, outside)}"

    def require_alignment(self, tensor: str, bytes: int) -> None:
        self.kernel.require_alignment(tensor, bytes)

    # -- barriers ------------------------------------------------------------------------------

    def full_barrier(self, pipeline: str, slot: str) -> str:
        return self._barrier(f"{pipeline}_full", slot)

    def empty_barrier(self, pipeline: str, slot: str) -> str:
        return self._barrier(f"{pipeline}_empty", slot)

    def mbarrier(self, name: str, slot: str) -> str:
        return self._barrier(name, slot)

    def _barrier(self, name: str, slot: str) -> str:
        offset = scaled(known(bare(slot)), MBARRIER_BYTES, "u")
        return cuda_memory.shared_address(self.kernel.offsets[name], offset)

    def named_barrier_id(self, name: str) -> int:
        return barrier_ids(self.program).named[name]

    def ring_cursor(self, pipeline: str, side: Literal["fill", "use"]) -> tuple[str, str]:
        key = (pipeline, side)
        if key not in self.cursors:
            name = self.kernel.names.of(pipeline)
            self.cursors[key] = (self.fresh(f"{name}_stage"), self.fresh(f"{name}_phase"))
        return self.cursors[key]


def _scalar_dtype(t: Type) -> DType:
    assert isinstance(t, Scalar)
    return t.dtype


def _value_type(t: Type) -> str:
    return "int" if isinstance(t, Slot) else c_type(_scalar_dtype(t))


def pointer_type(dtype: DType, *, const: bool) -> str:
    """C type of a pointer to elements in global memory; read-only data is not aliased."""
    element = memory_type(dtype)
    return f"const {element}* __restrict__" if const else f"{element}*"


def _broadcast_index(t: Type, like: Type, i: str) -> str:
    """Index in a vector of the row or column of register ``i`` of a fragment.

    The C form of :func:`cake.ir.fragments.row_register` and ``col_register``.
    """
    if not isinstance(like, Fragment) or not isinstance(t, RowVector | ColVector):
        return i
    per_row = like.shape[1] // 8
    at = known(i)
    if isinstance(at, int):
        column = at // 4 % per_row * 2 + at % 2
        row = at // 4 // per_row * 2 + (at % 4 >> 1)
        return str(row if isinstance(t, RowVector) else column)
    at = paren(at)
    if isinstance(t, RowVector):
        return f"{at} / {4 * per_row} * 2 + {at} / 2 % 2"
    return f"{at} / 4 % {per_row} * 2 + {at} % 2"
