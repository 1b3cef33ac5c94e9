"""``reduce_add(target, value)``: atomic sums without an answer, vectors of f32 where they exist."""

from __future__ import annotations

import numpy as np

from cake.ir.dtypes import F32, DType, numpy_dtype
from cake.ir.nodes import Call, Expr, View
from cake.ir.types import RegArray, Void
from cake.ops.atomics import (
    ADD_TYPES,
    NOTE,
    OPTIONS,
    address_type,
    cost,
    effects,
    qualifiers,
    typed_element,
    typed_target,
    update,
    wrapped_add,
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
    publish_if_releasing,
    typed_mask,
    typed_scalar,
)
from cake.ops.tiles import check_multiple, typed_multiple
from cake.targets import Target, get

ORDERS = ("relaxed", "release")
"""Nothing is returned, so there is nothing to acquire."""


def _step(target: Target, dtype: DType, count: int) -> int:
    """Elements of a register array that one instruction adds."""
    if dtype != F32 or not target.red_vector_f32:
        return 1
    return 4 if count % 4 == 0 else 2 if count % 2 == 0 else 1


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
    step = _step(get(cg.target), dtype, count)
    cg.require_alignment(to.tensor, step * dtype.bytes)  # type: ignore[attr-defined]
    name = _helper(cg, call, dtype, step)
    for first in range(0, count, step):
        parts = ", ".join(f"{array}[{first + k}]" for k in range(step))
        cg.line(f"{name}({address(cg, to, str(first))}, {parts});")


def _helper(cg: Emitter, call: Call, dtype: DType, count: int) -> str:
    w, variant = element(dtype), qualifiers(call)
    vector = f".v{count}" if count > 1 else ""
    name = f"reduce_add_{variant}{vector}_{w.ptx}".replace(".", "_")
    at_type, constraint = address_type(call)
    parameters = "".join(f", {w.c} v{i}" for i in range(count))
    names = ", ".join(f"%{1 + i}" for i in range(count))
    inputs = ", ".join(f'"{w.constraint}"(v{i})' for i in range(count))
    operands = f"{{{names}}}" if count > 1 else names
    code = f"""\
__device__ __forceinline__ void {name}({at_type} at{parameters}) {{
  asm volatile("red.{variant}.add{vector}.{ADD_TYPES[dtype]} [%0], {operands};"
               ::"{constraint}"(at), {inputs} : "memory");
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="reduce_add",
        params=(Param("target", "place"), Param("value"), *OPTIONS),
        doc="Add a scalar to an element, or a register array to neighbours along the last axis of a"
        " tensor; nothing is returned. f32 arrays of even length go two or four at a time on sm_90"
        " and later: the last coordinate is then a multiple of that, and the launch is guarded for"
        " the tensor's alignment. order: relaxed, release." + NOTE,
        source="PTX ISA 9.0, red",
        typing=_typing,
        effects=effects,
        meaning=_meaning,
        cost=cost,
        emit={"": _emit},
    )
)
