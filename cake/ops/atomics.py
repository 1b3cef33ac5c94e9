"""Atomic read-modify-writes: one table. Every executing thread performs one, in no fixed order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake.ir.dtypes import BF16, F32, DType, numpy_dtype
from cake.ir.nodes import Call, Expr, View
from cake.ir.types import RegArray, Scalar, SmemView
from cake.ops import check
from cake.ops.atomic_table import ATOMICS, CAS_TYPES, float_order
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    at,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.memory_access import (
    active,
    address,
    dtype_of,
    element,
    indices,
    memory_of,
    publish_if_releasing,
    typed_mask,
    typed_scalar,
)

SCOPES = ("cta", "cluster", "gpu", "sys")
ORDERS = ("relaxed", "acquire", "release", "acq_rel")


OPTIONS = (
    Param("mask", default=None, keyword_only=True),
    Param("order", "static", "relaxed", keyword_only=True),
    Param("scope", "static", None, keyword_only=True),
)
NOTE = (
    " Every executing thread whose mask is true performs it. scope: cta, cluster, gpu, sys; by"
    " default gpu for tensors, cta for shared memory."
)
_ORDER_NOTE = " order: relaxed, acquire, release, acq_rel."


# -- typing ----------------------------------------------------------------------------------------


def typed_target(
    t: TypingContext,
    call: Call,
    admitted: dict[DType, str],
    orders: tuple[str, ...] = ORDERS,
) -> Expr:
    """One element of global or shared memory of an admitted type, and the options."""
    target = memory_of(t, call.args[0], "the target")
    dtype = dtype_of(target)
    if dtype not in admitted:
        names = ", ".join(d.name for d in admitted)
        t.fail(f"it takes {names}, the target holds {dtype}", target)
    if dtype == BF16 and not t.target.atomic_bf16x2:
        t.fail(f"{t.target.name} adds no bf16 in memory", target, code="CK201")
    order, scope = at(call, "order", "scope")
    check.one_of(t, order, "order", orders)
    check.one_of(t, scope, "scope", (None, *SCOPES))
    if static(call, "scope") == "cluster" and not t.target.cluster:
        t.fail(f"{t.target.name} has no clusters", scope, code="CK201")
    return target


def typed_element(t: TypingContext, target: Expr) -> None:
    """A single element of shared memory, or any place."""
    if isinstance(target.type, SmemView) and target.type.shape:
        t.fail(f"an atomic works on one element, got {target.type}", target, helps=("index it",))


def _typing(t: TypingContext, call: Call) -> Typed:
    target = typed_target(t, call, _types(call.op))
    typed_element(t, target)
    dtype = dtype_of(target)
    values = [typed_scalar(t, e, dtype, "the value") for e in call.args[1:-3]]
    mask, order, scope = call.args[-3:]
    return Typed(Scalar(dtype, True), (target, *values, typed_mask(t, mask), order, scope))


def _types(op: str) -> dict[DType, str]:
    return CAS_TYPES if op == "atomic_cas" else ATOMICS[op].types


def effects(call: Call) -> Effects:
    """An atomic access of the target."""
    return (Access("atomic", 0, "smem" if isinstance(call.args[0], View) else "global"),)


# -- meaning ---------------------------------------------------------------------------------------


def _meaning(unit: Unit, call: Call) -> Any:
    target, mask = call.args[0], call.args[-3]
    assert target is not None
    kind = numpy_dtype(dtype_of(target))
    operands = [
        np.broadcast_to(np.asarray(unit.eval(e)).astype(kind), (unit.threads,))
        for e in call.args[1:-3]
        if e is not None
    ]
    on = active(unit, mask, 1)
    publish_if_releasing(unit, call)
    if call.op == "atomic_cas":
        compare, swap = operands
        # The update gets the thread's number, because it needs two operands of it.
        return update(
            unit,
            target,
            np.arange(unit.threads),
            lambda old, i: np.where(old == compare[i], swap[i], old),
            on,
        )
    return update(unit, target, operands[0], ATOMICS[call.op].update, on)


def update(
    unit: Unit, target: Expr, values: Any, update: Callable[[Any, Any], Any], on: Any
) -> Any:
    """Old values (threads, ...) of atomic updates at the target plus axis 1 of ``values``."""
    if isinstance(target, View):
        return unit.smem_update(target, values, [], update, mask=on)
    along = np.broadcast_to(np.arange(values.shape[-1]), values.shape) if values.ndim > 1 else 0
    offsets = [np.zeros(values.shape, np.int64) for _ in indices(target)]
    offsets[-1] = offsets[-1] + along
    return unit.global_update(target, values, offsets, update, mask=on)


def cost(call: Call, threads: int) -> Cost:
    """One lane atomic for each element of each thread."""
    value = call.args[1]
    assert value is not None
    count = value.type.length if isinstance(value.type, RegArray) else 1
    return Cost(issue=2 * (threads // 32), atomics=threads * count)


# -- emission --------------------------------------------------------------------------------------


def qualifiers(call: Call) -> str:
    """Order, scope and state space, as they follow ``atom`` and ``red``."""
    shared = isinstance(call.args[0], View)
    scope = static(call, "scope") or ("cta" if shared else "gpu")
    return f"{static(call, 'order')}.{scope}.{'shared' if shared else 'global'}"


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    target, mask = call.args[0], call.args[-3]
    assert target is not None
    dtype = dtype_of(target)
    name = _helper(cg, call, dtype)
    values = ", ".join(cg.scalar(e) for e in call.args[1:-3] if e is not None)
    value = f"{name}({address(cg, target)}, {values})"
    return value if mask is None else f"({cg.scalar(mask)} ? {value} : ({element(dtype).c})0)"


def _helper(cg: Emitter, call: Call, dtype: DType) -> str:
    w, variant = element(dtype), qualifiers(call)
    op = "cas" if call.op == "atomic_cas" else ATOMICS[call.op].op
    count = len(call.args) - 4
    name = f"{call.op}_{variant.replace('.', '_')}_{dtype}"
    if dtype == F32 and op in ("min", "max"):
        return cg.helper(
            name, float_order(name, qualifiers(call), address_type(call), larger=op == "max")
        )
    at_type, constraint = address_type(call)
    parameters = "".join(f", {w.c} v{i}" for i in range(count))
    operands = ", ".join(f"%{2 + i}" for i in range(count))
    inputs = "".join(f', "{w.constraint}"(v{i})' for i in range(count))
    code = f"""\
__device__ __forceinline__ {w.c} {name}({at_type} at{parameters}) {{
  {w.c} old;
  asm volatile("atom.{variant}.{op}.{_types(call.op)[dtype]} %0, [%1], {operands};"
               : "={w.constraint}"(old) : "{constraint}"(at){inputs} : "memory");
  return old;
}}"""
    return cg.helper(name, code)


def address_type(call: Call) -> tuple[str, str]:
    """C type and asm constraint of the target's address."""
    return ("unsigned", "r") if isinstance(call.args[0], View) else ("void*", "l")


for _name, _row in ATOMICS.items():
    register(
        Primitive(
            name=_name,
            params=(Param("target", "place"), Param("value"), *OPTIONS),
            doc=_row.doc
            + ("" if _name == "atomic_add" else " Returns the old value.")
            + NOTE
            + _ORDER_NOTE,
            source="PTX ISA 9.0, atom",
            typing=_typing,
            effects=effects,
            meaning=_meaning,
            cost=cost,
            emit={"": _emit},
        )
    )
register(
    Primitive(
        name="atomic_cas",
        params=(Param("target", "place"), Param("compare"), Param("value"), *OPTIONS),
        doc="Put `value` into the element `target` if it equals `compare`. Returns the old value."
        + NOTE
        + _ORDER_NOTE,
        source="PTX ISA 9.0, atom",
        typing=_typing,
        effects=effects,
        meaning=_meaning,
        cost=cost,
        emit={"": _emit},
    )
)
