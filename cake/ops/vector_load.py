"""Loads of row and column vectors from shared memory: what ``cols`` and ``rows`` share."""

from __future__ import annotations

from cake.ir.dtypes import F32, I32, U32, DType
from cake.ir.nodes import Call, Expr, View
from cake.ir.program import Smem
from cake.ir.types import Scalar, SmemView, registers
from cake.ops import check, tiles
from cake.ops.base import Access, Cost, CostRule, Effects, TypingContext
from cake.ops.c_types import C_TYPE, CONSTRAINT, PTX_TYPE
from cake.ops.emit import Emitter

DTYPES = (F32, I32, U32)


def typed_view(t: TypingContext, call: Call, unit: int) -> tuple[View, SmemView]:
    """A 1-D view of 32-bit elements whose extent is a multiple of ``unit``."""
    e, view = check.smem(t, call.args[0], "the source", rank=1)
    assert isinstance(e, View)
    if view.dtype not in DTYPES:
        t.fail(f"the source must hold f32, i32 or u32, got {view.dtype}", e)
    if view.shape[0] % unit:
        t.fail(
            f"the source must have a multiple of {unit} elements, got {view.shape[0]}",
            e,
            facts={"elements": view.shape[0], "multiple_of": unit},
        )
    return e, view


def uniform_offsets(t: TypingContext, view: View) -> None:
    """All threads load from one vector."""
    for offset in view.offsets:
        if isinstance(offset.type, Scalar):
            check.uniform(t, offset, "an offset of the source")


def typed_pairs(t: TypingContext, view: View, what: str) -> None:
    """Two neighbours from an even column on lie on 8 bytes."""
    tiles.typed_multiple(t, view.offsets[-1], 2, f"the offset of {what}")
    decl = t.resource(view.base)
    if isinstance(decl, Smem) and decl.shape[-1] % 2:
        t.fail(
            f"rows of {view.base} have {decl.shape[-1]} elements, so {what} is not aligned to the"
            " 8 bytes of an access",
            view,
            helps=("give the buffer an even last extent",),
        )


def effects(call: Call) -> Effects:
    """A generic read of the view."""
    return (Access("read", 0, "smem"),)


def load_helper(cg: Emitter, dtype: DType, width: int) -> str:
    """``void name(T& x0, ..., unsigned address)``: one load of ``width`` (1 or 2) elements."""
    c, constraint, suffix = C_TYPE[dtype], CONSTRAINT[dtype], PTX_TYPE[dtype]
    results = ", ".join(f"{c}& x{k}" for k in range(width))
    outputs = ", ".join(f'"={constraint}"(x{k})' for k in range(width))
    names = ", ".join(f"%{k}" for k in range(width))
    vector, operand = (f".v{width}", f"{{{names}}}") if width > 1 else ("", names)
    name = f"vector_load_{suffix}{'x2' if width == 2 else ''}"
    return cg.helper(
        name,
        f"""__device__ __forceinline__ void {name}({results}, unsigned address) {{
  asm volatile("ld.shared{vector}.{suffix} {operand}, [%{width}];"
               : {outputs} : "r"(address));
}}""",
    )


def source(call: Call) -> tuple[Expr, DType]:
    """The view operand and its element type."""
    view = call.args[0]
    assert view is not None
    assert isinstance(view.type, SmemView)
    return view, view.type.dtype


def cost(width: int, distinct: int) -> CostRule:
    """Loads of ``width`` elements; of a warp's lanes, ``distinct`` address different elements."""

    def rule(call: Call, threads: int) -> Cost:
        loads = registers(call.type) // width
        warps = threads // 32
        return Cost(issue=loads * warps, smem=loads * warps * distinct * width * 4)

    return rule
