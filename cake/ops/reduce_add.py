"""``reduce_add(target, value)``: atomic sums without an answer, vectors where they exist."""

from __future__ import annotations

import numpy as np

from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.nodes import Call, Expr, View
from cake.ir.types import RegArray, Void
from cake.ops.atomic_table import ADD_TYPES, wrapped_add
from cake.ops.atomics import (
    NOTE,
    OPTIONS,
    address_type,
    cost,
    effects,
    qualifiers,
    typed_element,
    typed_target,
    update,
)
from cake.ops.base import Param, Primitive, Typed, TypingContext, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.memory_access import (
    active,
    address,
    dtype_of,
    element,
    indices,
    per_word,
    publish_if_releasing,
    typed_mask,
    typed_scalar,
    word,
)
from cake.ops.tiles import check_multiple, typed_multiple
from cake.targets import Target, get

ORDERS = ("relaxed", "release")
"""Nothing is returned, so there is nothing to acquire."""


def _step(target: Target, dtype: DType, count: int) -> int:
    """Elements of a register array that one instruction adds: up to 16 bytes of floats."""
    per = per_word(dtype)
    if not dtype.is_float or not target.red_vector_f32:
        return per
    words = count // per
    return per * (4 if words % 4 == 0 else 2 if words % 2 == 0 else 1)


def _typing(t: TypingContext, call: Call) -> Typed:
    to, value = typed_target(t, call, ADD_TYPES, ORDERS), call.args[1]
    typed_element(t, to)
    assert value is not None
    dtype = dtype_of(to)
    if isinstance(value.type, RegArray):
        if value.type.dtype != dtype:
            t.fail(f"the target holds {dtype}, the value {value.type.dtype}", value)
        if isinstance(to, View):
            t.fail("a register array is added to a tensor; add to shared memory one by one", value)
        step = _step(t.target, dtype, value.type.length)
        typed_multiple(t, indices(to)[-1], step, "the last coordinate of a vector reduction")
    else:
        value = typed_scalar(t, value, dtype, "the value")
    mask, order, scope = call.args[2:]
    return Typed(Void(), (to, value, typed_mask(t, mask), order, scope))


def _meaning(unit: Unit, call: Call) -> None:
    to, value, mask = call.args[:3]
    assert to is not None
    assert value is not None
    dtype = dtype_of(to)
    publish_if_releasing(unit, call)
    if isinstance(value.type, RegArray):
        step = _step(get(unit.program.target), dtype, value.type.length)
        check_multiple(unit, call, indices(to)[-1], step, "the last coordinate")
        update(unit, to, unit.eval(value), wrapped_add, active(unit, mask, 2))
        return
    values = np.broadcast_to(np.asarray(unit.eval(value)), (unit.threads,))
    update(unit, to, values.astype(numpy_dtype(dtype)), wrapped_add, active(unit, mask, 1))


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    to, value, mask = call.args[:3]
    assert to is not None
    assert value is not None
    if mask is None:
        _emit_adds(cg, call, to, value)
        return
    with cg.block(f"if ({cg.scalar(mask)})"):
        _emit_adds(cg, call, to, value)


def _emit_adds(cg: Emitter, call: Call, to: Expr, value: Expr) -> None:
    dtype = dtype_of(to)
    if not isinstance(value.type, RegArray):
        cg.line(f"{_helper(cg, call, dtype, 1)}({address(cg, to)}, {cg.scalar(value)});")
        return
    array, count = cg.array(value), value.type.length
    step, per = _step(get(cg.target), dtype, count), per_word(dtype)
    cg.require_alignment(to.tensor, step * dtype.bytes)  # type: ignore[attr-defined]
    name = _helper(cg, call, dtype, step)
    for first in range(0, count, step):
        parts = ", ".join(f"{array}[{first // per + k}]" for k in range(step // per))
        cg.line(f"{name}({address(cg, to, str(first))}, {parts});")


def _helper(cg: Emitter, call: Call, dtype: DType, count: int) -> str:
    """A function that adds ``count`` elements, those of 16 bits by the pair."""
    pairs = count > 1 and per_word(dtype) == 2
    w, words = (word(dtype), count // 2) if pairs else (element(dtype), count)
    variant, kind = qualifiers(call), ADD_TYPES[dtype] + ("x2" if pairs else "")
    vector = f".v{words}" if words > 1 else ""
    name = f"reduce_add_{variant}_{dtype}x{count}".replace(".", "_")
    at_type, constraint = address_type(call)
    parameters = "".join(f", {w.c} v{i}" for i in range(words))
    names = ", ".join(f"%{1 + i}" for i in range(words))
    inputs = ", ".join(f'"{w.constraint}"(v{i})' for i in range(words))
    operands = f"{{{names}}}" if words > 1 else names
    # The vector comes in front of the type: add.v4.f32, add.noftz.v4.f16x2.
    head, _, last = kind.rpartition(".")
    form = f"add{f'.{head}' if head else ''}{vector}.{last}"
    code = f"""\
__device__ __forceinline__ void {name}({at_type} at{parameters}) {{
  asm volatile("red.{variant}.{form} [%0], {operands};"
               ::"{constraint}"(at), {inputs} : "memory");
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="reduce_add",
        params=(Param("target", "place"), Param("value"), *OPTIONS),
        doc="Add `value` to memory: a scalar to the element `target`, or a register array to the"
        " elements of a tensor from `target` on along the last axis; nothing is returned. Integers,"
        " f32, f16, and bf16 from sm_90 on. Arrays of floats go up to 16 bytes at a time on sm_90"
        " and later, arrays of f16 by the pair before: the last coordinate is then a multiple of"
        " that, and the launch is guarded for the tensor's alignment. order: relaxed, release."
        + NOTE,
        source="PTX ISA 9.0, red",
        typing=_typing,
        effects=effects,
        meaning=_meaning,
        cost=cost,
        emit={"": _emit},
    )
)
