"""``topk_insert``: insertion into a sorted list in each thread's registers."""

from __future__ import annotations

import numpy as np

from cake.ir.dtypes import F32, I32
from cake.ir.nodes import Call, Expr
from cake.ir.types import RegArray, Scalar, Void
from cake.ops import check
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    operand,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> Typed:
    lists = [operand(call, n) for n in ("values", "indices")]
    for e, name, dtype in zip(lists, ("values", "indices"), (F32, I32), strict=True):
        assert e is not None
        if not isinstance(e.type, RegArray) or e.type.dtype != dtype:
            t.fail(f"{name} must be registers of {dtype}, got {check.describe(e)}", e)
    first, second = (_length(e) for e in lists)
    if first != second:
        t.fail(f"values has {first} registers, indices has {second}", lists[1])
    args: list[Expr | None] = list(lists)
    for name, dtype in (("v", F32), ("i", I32)):
        e = operand(call, name)
        assert e is not None
        e = t.coerce(e, dtype)
        if not isinstance(e.type, Scalar):
            t.fail(f"{name} must be a scalar, got {check.describe(e)}", e)
        args.append(e)
    return Typed(Void(), tuple(args))


def _length(e: Expr | None) -> int:
    assert e is not None
    assert isinstance(e.type, RegArray)
    return e.type.length


def _effects(call: Call) -> Effects:
    return (
        Access("read", 0, "regs"),
        Access("read", 1, "regs"),
        Access("write", 0, "regs"),
        Access("write", 1, "regs"),
    )


def _meaning(unit: Unit, call: Call) -> None:
    values, indices, v, i = (unit.eval(e) for e in call.args if e is not None)
    v, i = (np.broadcast_to(x, (unit.threads,))[:, None] for x in (v, i))
    with np.errstate(all="ignore"):
        here = v < values
    # The list ascends, so the entries above v are its tail; all of them move up by one.
    moved = np.concatenate([np.zeros_like(here[:, :1]), here[:, :-1]], axis=1)
    for array, new in ((values, v), (indices, i)):
        lower = np.roll(array, 1, axis=1)
        result = np.where(moved, lower, np.where(here, new, array))
        array[...] = np.where(unit.mask[:, None], result, array)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    arrays = [cg.array(e) for e in call.args[:2] if e is not None]
    new = [cg.scalar(e) for e in call.args[2:] if e is not None]
    k = _length(call.args[0])
    name = "topk_insert"
    code = """\
// From the last entry down: entries above v move up, v takes the place of the lowest of them.
template <int k>
__device__ __forceinline__ void topk_insert(float (&values)[k], int (&indices)[k], float v, int i) {
#pragma unroll
  for (int j = k - 1; j > 0; --j) {
    const bool here = v < values[j], moved = v < values[j - 1];
    values[j] = moved ? values[j - 1] : here ? v : values[j];
    indices[j] = moved ? indices[j - 1] : here ? i : indices[j];
  }
  const bool first = v < values[0];
  values[0] = first ? v : values[0];
  indices[0] = first ? i : indices[0];
}"""
    cg.line(f"{cg.helper(name, code)}<{k}>({', '.join([*arrays, *new])});")


def _cost(call: Call, threads: int) -> Cost:
    k = _length(call.args[0])
    return Cost(alu=5 * k * threads, issue=5 * k * threads // 32)


register(
    Primitive(
        name="topk_insert",
        params=(Param("values"), Param("indices"), Param("v"), Param("i")),
        doc="""Insert (v, i) into a list of the k smallest values in each thread's registers.

``values`` (f32, ascending) and ``indices`` (i32) are register arrays of k elements, best filled
with inf and -1. The largest entry leaves if v is smaller than it; on a tie the earlier entry stays
in front. A NaN is not inserted. The cost is about 5 k operations, with or without an insertion.""",
        source="insertion step of insertion sort, without branches",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
