"""``a_operand``: an acc fragment of 8- or 32-bit elements in the order of an A operand.

An acc fragment gives lane c of a quad columns 2c and 2c + 1 of every 8; the matrix instructions
want four bytes of a row in each lane, which for 8-bit elements are columns 4c to 4c + 3 of every
16, for 32-bit ones column c of every 4. (PTX ISA, Matrix Fragments for mma.m16n8k8 and m16n8k32.)
"""

from __future__ import annotations

from typing import Any

from cake.ir.dtypes import E4M3, E5M2, F32, I8, TF32, U8
from cake.ir.nodes import Call
from cake.ir.types import WARP, Fragment
from cake.ops import check
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    TypingContext,
    no_effects,
    operand,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.matrix_access import per_row
from cake.ops.values import from_matrix, to_matrix
from cake.ops.warp_values import FULL

DTYPES = (E4M3, E5M2, I8, U8, TF32, F32)


def _typing(t: TypingContext, call: Call) -> Fragment:
    e, x = check.fragment(t, operand(call, "fragment"), "the operand")
    if x.dtype.bits == 16:
        t.fail("an acc fragment of 16-bit elements is an A operand as it is", e)
    if x.layout != "acc" or x.dtype not in DTYPES:
        names = ", ".join(d.name for d in DTYPES)
        t.fail(f"it takes an acc fragment of {names}, got {x}", e)
    deep = 2 * per_row(x.dtype)
    if x.shape[1] % deep:
        t.fail(
            f"the columns must be a multiple of {deep} for {x.dtype}, got {x.shape[1]}",
            e,
            facts={"columns": x.shape[1], "multiple_of": deep},
        )
    return Fragment(x.dtype, x.shape, "a_ldmatrix", x.warps)


def _source(call: Call) -> Any:
    x = operand(call, "fragment")
    assert x is not None
    return x


def _meaning(unit: Unit, call: Call) -> Any:
    x, t = _source(call), call.type
    assert isinstance(t, Fragment)
    return from_matrix(t, to_matrix(x.type, unit.eval(x)))


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, t = _source(call), call.type
    assert isinstance(t, Fragment)
    array = cg.array(x)
    name = dest or cg.fresh("operand")
    if dest is None:
        cg.declare(t, name)
    atoms = t.shape[1] // 8
    with cg.unrolled(t.shape[0] // (16 * t.warps)), cg.unrolled(2, "h"):
        if t.dtype.bits == 8:
            _emit_bytes(cg, array, name, atoms)
        else:
            _emit_words(cg, array, name, atoms)
    return name


def _emit_bytes(cg: Emitter, array: str, name: str, atoms: int) -> None:
    """Two atoms, half h of each, make a row of 16 bytes: every lane collects two pairs."""
    code = f"""\
__device__ __forceinline__ unsigned collect_bytes(unsigned x0, unsigned x1, int h, int lane) {{
  const unsigned both = __byte_perm(x0, x1, h ? 0x7632 : 0x5410);
  const int from = (lane & ~3) + 2 * (lane & 1);
  const unsigned first = __shfl_sync({FULL}, both, from);
  const unsigned second = __shfl_sync({FULL}, both, from + 1);
  return __byte_perm(first, second, lane & 2 ? 0x7632 : 0x5410);
}}"""
    collect = cg.helper("collect_bytes", code)
    with cg.unrolled(atoms // 2, "j"):
        at = f"{array}[i * {atoms} + 2 * j"
        to = f"{name}[(i * {atoms // 2} + j) * 2 + h]"
        cg.line(f"{to} = {collect}({at}], {at} + 1], h, lane);")


def _emit_words(cg: Emitter, array: str, name: str, atoms: int) -> None:
    """An atom, half h, makes two rows of 16 bytes (t = 0, 1): every lane picks one column."""
    code = f"""\
__device__ __forceinline__ float pick_word(float x0, float x1, int t, int lane) {{
  const int from = (lane & ~3) + 2 * t + (lane >> 1 & 1);
  const float even = __shfl_sync({FULL}, x0, from), odd = __shfl_sync({FULL}, x1, from);
  return lane & 1 ? odd : even;
}}"""
    pick = cg.helper("pick_word", code)
    with cg.unrolled(atoms, "j"), cg.unrolled(2, "t"):
        at = f"{array}[(i * {atoms} + j) * 4 + 2 * h"
        to = f"{name}[(i * {2 * atoms} + 2 * j + t) * 2 + h]"
        cg.line(f"{to} = {pick}({at}], {at} + 1], t, lane);")


def _cost(call: Call, threads: int) -> Cost:
    t = call.type
    assert isinstance(t, Fragment)
    words = t.registers * t.dtype.bytes // 4
    return Cost(
        alu=3 * words * threads, issue=5 * words * threads // WARP, smem=8 * words * threads
    )


register(
    Primitive(
        name="a_operand",
        params=(Param("fragment"),),
        doc="""An acc ``fragment`` of 8-bit elements, tf32 or f32 as an A operand in the order that
ldmatrix brings.

``mma`` takes it with a B operand from ldmatrix, ``wgmma`` as A in registers: a product whose result
is cast to fp8 or tf32 is multiplied on without a way through memory. The columns are a multiple of
32 bytes. Two exchanges within a quad a register.""",
        source="PTX ISA, shfl.sync; Matrix Fragments for mma.m16n8k8 and m16n8k32",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        convergent=True,
    )
)
