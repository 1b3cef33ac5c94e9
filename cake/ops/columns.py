"""``columns``: some columns of a fragment as a fragment of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import Fragment
from cake.ops import check
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    TypingContext,
    no_effects,
    operand,
    register,
    static,
)
from cake.ops.c_types import per_word
from cake.ops.emit import Emitter
from cake.ops.machine import Unit

ATOM = 8
"""Columns of an accumulator atom: a slice is made of whole atoms."""


def _typing(t: TypingContext, call: Call) -> Fragment:
    e, whole = check.fragment(t, operand(call, "fragment"), "the operand")
    if whole.layout != "acc" or whole.dtype.bits not in (16, 32):
        t.fail(f"it slices 16- and 32-bit fragments of the acc layout, got {whole}", e)
    start = check.static_int(t, operand(call, "start"), "start", 0, whole.shape[1] - ATOM)
    count = check.static_int(t, operand(call, "count"), "count", ATOM, whole.shape[1] - start)
    if start % ATOM or count % ATOM:
        t.fail(
            f"start and count are multiples of {ATOM}, got {start} and {count}",
            facts={"start": start, "count": count, "multiple_of": ATOM},
        )
    return Fragment(whole.dtype, (whole.shape[0], count), "acc", whole.warps)


def _registers(call: Call) -> list[int]:
    """Register of the whole fragment for each register of the slice."""
    source = operand(call, "fragment")
    assert source is not None
    whole, part = source.type, call.type
    assert isinstance(whole, Fragment)
    assert isinstance(part, Fragment)
    first = static(call, "start") // ATOM
    per_row, wide = part.shape[1] // ATOM, whole.shape[1] // ATOM
    return [
        ((atom // per_row) * wide + first + atom % per_row) * 4 + q
        for atom in range(part.registers // 4)
        for q in range(4)
    ]


def _meaning(unit: Unit, call: Call) -> Any:
    source = operand(call, "fragment")
    assert source is not None
    return np.asarray(unit.eval(source))[:, _registers(call)].copy()


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    source = operand(call, "fragment")
    assert source is not None
    name = cg.array(source)
    if dest is None:
        dest = cg.fresh("columns")
        cg.declare(call.type, dest)
    assert isinstance(call.type, Fragment)
    per = per_word(call.type.dtype)
    chosen = [r // per for r in _registers(call)[::per]]
    if chosen == list(range(chosen[0], chosen[0] + len(chosen))):
        with cg.unrolled(len(chosen)):
            cg.line(f"{dest}[i] = {name}[{chosen[0]} + i];")
    else:
        for i, r in enumerate(chosen):
            cg.line(f"{dest}[{i}] = {name}[{r}];")
    return dest


def _cost(call: Call, threads: int) -> Cost:
    return Cost()


register(
    Primitive(
        name="columns",
        params=(Param("fragment"), Param("start", "static"), Param("count", "static")),
        doc="""Columns [start, start + count) of a fragment of the acc layout; both multiples of 8.

A renaming of registers: no data moves. An epilogue works through a wide accumulator in slices, a
product through an A operand (16-bit elements) that stays in registers.""",
        source="PTX ISA, Matrix Fragments for mma.m16n8k16; Register Fragments for wgmma.m64nNk16",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
