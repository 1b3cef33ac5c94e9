"""CUDA of ``argmin_cols``, ``argmin_rows`` and the like.

The epilogue of a distance kernel is bound by the pipe that compares and selects, so it does as
little there as possible: a group of columns is folded by min and compared with the running best
once; where it wins, its column is noted and its members are kept. Which member won is found once a
call.
"""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ir.types import Fragment, Tuple
from cake.ops.acc_parts import Axis
from cake.ops.argmin_order import Order
from cake.ops.base import operand, static
from cake.ops.emit import Emitter


def emit_walk(axis: Axis, order: Order, cg: Emitter, call: Call, dest: str | None) -> str:
    """Fresh arrays for best and arg: for each row (column) a fold over groups of the rest."""
    d, best, arg = (operand(call, n) for n in ("d", "best", "arg"))
    assert d is not None
    assert best is not None
    assert arg is not None
    t, group, base = d.type, static(call, "group"), operand(call, "base")
    assert isinstance(t, Fragment)
    assert isinstance(call.type, Tuple)
    results = [cg.fresh("best"), cg.fresh("arg")]
    r, k, top, at = (cg.fresh(n) for n in (axis.short[0], "k", "top", "at"))
    lane_place = cg.fresh("lane_column" if axis.keeps == "row" else "lane_row")
    kept = [cg.fresh("kept") for _ in range(group - 1)]
    start = "" if base is None else f"{cg.scalar(base)} + "
    old, old_arg = (cg.element(e, r, e.type) for e in (best, arg))
    places = [axis.register(t, r, f"({k} * {group} + {e})") for e in range(group)]
    x = [cg.element(d, place, t) for place in places]
    fold = cg.helper(*_fold_group(order, group))
    for name, item in zip(results, call.type.items, strict=True):
        cg.declare(item, name)
    with cg.unrolled(axis.kept(t), r):
        # The place is a float, so that the add pipe notes it. A fraction for each row keeps ptxas
        # from computing the sums once for all rows, which would turn every note into a select.
        cg.line(f"float {top} = {old}, {at} = -1.0f;")
        own = axis.lane_position(t)
        cg.line(f"const float {lane_place} = (float)({own}) + {r} * 0.00390625f;")
        if kept:
            cg.line(f"float {', '.join(f'{name} = 0.0f' for name in kept)};")
        with cg.unrolled(axis.walked(t) // group, k):
            state = [top, at, *kept, *x, lane_place, _group_place(axis, k, group)]
            cg.line(f"{fold}({', '.join(state)});")
        cg.line(f"{results[0]}[{r}] = {top};")
        found = f"{start}(int){at}{_member(axis, top, kept)}"
        cg.line(f"{results[1]}[{r}] = {at} < 0.0f ? {old_arg} : {found};")
    return ", ".join(results)


def _group_place(axis: Axis, k: str, group: int) -> str:
    """Where the first member of group ``k`` lies, less the lane's position."""
    if group > 1:
        return f"(float)({k} * {axis.distance(group)})"
    inner = f"{k} % 2" if axis.inner == 1 else f"{k} % 2 * {axis.inner}"
    return f"(float)({k} / 2 * {axis.outer} + {inner})"


def _member(axis: Axis, top: str, kept: list[str]) -> str:
    """Where in the winning group the best lies: at the first member that equals it."""
    if not kept:
        return ""
    place = str(axis.distance(len(kept)))
    for e in reversed(range(len(kept))):
        place = f"({kept[e]} == {top} ? {axis.distance(e)} : {place})"
    return f" + {place}"


def _fold_group(order: Order, group: int) -> tuple[str, str]:
    """A function that folds a group into the running best: (name, code).

    If the best of the group beats ``top``, its place goes to ``at`` and all members but the last
    go to ``kept``.
    """
    kept, members = [f"kept{e}" for e in range(group - 1)], [f"x{e}" for e in range(group)]
    outputs, inputs = ["top", "at", *kept], [*members, "lane_place", "place_of_group"]
    place = {n: f"%{i}" for i, n in enumerate([*outputs, *inputs])}
    low = "low" if group > 1 else place["x0"]
    text = [
        ".reg .pred better;",
        *_tree(order.ptx_fold, [place[m] for m in members]),
        f"setp.{order.ptx_better}.f32 better, {low}, %0;",
        f"{order.ptx_fold}.f32 %0, %0, {low};" if group > 1 else f"@better mov.f32 %0, {low};",
        f"@better add.rn.f32 %1, {place['lane_place']}, {place['place_of_group']};",
        *(f"@better mov.f32 {place[n]}, {place[m]};" for n, m in zip(kept, members, strict=False)),
    ]
    name = f"{order.name}_{group}"
    return name, _code(name, outputs, inputs, text)


def _tree(fold: str, members: list[str]) -> list[str]:
    """The fold of 2, 4 or 8 members into a register ``low``; nothing for a single one."""
    if len(members) == 1:
        return []
    lines = [".reg .f32 low, high;", f"{fold}.f32 low, {members[0]}, {members[1]};"]
    for a, b in zip(members[2::2], members[3::2], strict=True):
        lines += [f"{fold}.f32 high, {a}, {b};", f"{fold}.f32 low, low, high;"]
    return lines


def _code(name: str, outputs: list[str], inputs: list[str], text: list[str]) -> str:
    lines = "\n".join(f'      "{line}\\n"' for line in ["{", *text, "}"])
    parameters = [*(f"float& {n}" for n in outputs), *(f"float {n}" for n in inputs)]
    return f"""\
__device__ __forceinline__ void {name}(
    {", ".join(parameters)}) {{
  asm(
{lines}
      : {", ".join(f'"+f"({n})' for n in outputs)}
      : {", ".join(f'"f"({n})' for n in inputs)});
}}"""
