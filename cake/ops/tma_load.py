"""``tma_load(view, place)``: a TMA tensor copy from global into shared memory."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import numpy as np

from cake.ir.nodes import Call
from cake.ir.program import Cluster, Pipeline
from cake.ir.types import SmemView, Type, Void
from cake.ops import check, completion
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
from cake.ops.tiles import freeze, place_of, tile_axes, tile_of, tile_offsets
from cake.ops.tma_boxes import (
    AXES,
    check_origin,
    cluster_parts,
    slice_of,
    tma_copies,
    typed_boxes,
)

_Form = Literal["own", "multicast", "pair"]
CACHE_HINTS = ("evict_first", "evict_last", "evict_normal")


def _typing(t: TypingContext, call: Call) -> Type | Typed:
    parts = 1
    multicast, cache, outside = at(call, "multicast", "cache", "outside")
    check.one_of(t, outside, "outside", ("zero", "nan"))
    check.one_of(t, multicast, "multicast", (True, False))
    check.one_of(t, cache, "cache", (None, *CACHE_HINTS))
    if static(call, "multicast"):
        parts = _typed_cluster(t)
    view, _ = typed_boxes(t, call, call.args[0], call.args[1], parts)
    slot = completion.typed(t, call, view)
    ring = completion.ring_of(call, view)
    if parts > 1 and ring is not None:
        declared = t.resource(ring)
        assert isinstance(declared, Pipeline)
        if declared.pair:
            t.fail(f"each CTA of a pair loads its own part, so ring {ring} takes no multicast")
        if not declared.multicast:
            t.fail(
                f"a multicast copy writes the other CTAs' stages too, but ring {ring} is local",
                helps=(f"declare {ring} = pipeline(..., multicast=True)",),
            )
    assert isinstance(view.type, SmemView)
    if static(call, "outside") == "nan" and not view.type.dtype.is_float:
        t.fail(f"only floating-point elements can be NaN, got {view.type.dtype}", outside)
    return Typed(Void(), (*call.args[:-1], slot))


def _typed_cluster(t: TypingContext) -> int:
    if not t.target.tma_multicast:
        t.fail(f"{t.target.name} has no fast multicast", code="CK201")
    try:
        cluster = t.resource("cluster")
    except KeyError:
        t.fail("multicast needs a cluster", helps=("write cluster(2) before the roles",))
    assert isinstance(cluster, Cluster)
    return cluster.size


def _effects(call: Call) -> Effects:
    return (
        Access("write", 0, "smem", "async", "mbarrier"),
        Access("read", 1, "global", "async", "mbarrier"),
    )


def _meaning(unit: Unit, call: Call) -> None:
    (view, tile), place = tile_of(call.args[0]), place_of(call.args[1])
    to, source = freeze(unit, view), freeze(unit, place)
    check_origin(unit, call, view)
    parts = cluster_parts(call, unit.program.resources)
    ranks = range(unit.cluster_size) if parts > 1 else [None]
    part = slice_of(tile.shape, parts)
    first = unit.block_rank * part[0] if parts > 1 else 0
    inside = list(np.indices(part))
    inside[0] = inside[0] + first
    outside = tile_offsets(call, part, len(place.index))
    outside[tile_axes(call, len(part), len(place.index))[0]] = inside[0]

    def land(values: Any) -> None:
        for rank in ranks:
            unit.smem_write(to, values, inside, proxy="async", peer=rank)

    fill = float("nan") if static(call, "outside") == "nan" else 0
    barriers = [completion.mbarrier(unit, call, view, rank) for rank in ranks]
    unit.issue(
        "mbarrier",
        lambda: unit.global_read(source, outside, fill=fill, proxy="async"),
        land,
        barrier=barriers[0],
        tx=prod(part) * tile.dtype.bits // 8,
        peers=barriers[1:],
    )


def _cost(call: Call, threads: int) -> Cost:
    _, tile = tile_of(call.args[0])
    size = prod(tile.shape) * tile.dtype.bits // 8
    return Cost(issue=4 * (threads // 32), smem=size, gmem_read=size)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    view, place = tile_of(call.args[0])[0], place_of(call.args[1])
    parts = cluster_parts(call, cg.program.resources)
    bar = completion.address(cg, call, view)
    form: _Form = "pair" if completion.in_pair(cg, call, view) else "own"
    form = "multicast" if parts > 1 else form
    name = _helper(cg, len(place.index), form, static(call, "cache"))
    mask = f", {(1 << parts) - 1}" if parts > 1 else ""
    with cg.elected():
        for tensor_map, to, coordinates in tma_copies(
            cg, call, view, place, parts, static(call, "outside")
        ):
            cg.line(f"{name}({to}, {tensor_map}, {bar}, {', '.join(coordinates)}{mask});")


def _helper(cg: Emitter, rank: int, form: _Form, cache: str | None) -> str:
    """The copy instruction; ``pair``: its barrier may lie in the other CTA of the pair."""
    name = f"tma_load_{rank}d"
    parameters = ["unsigned to", "const void* map", "unsigned bar"]
    parameters += [f"int c{i}" for i in range(rank)]
    operands = ['"r"(to)', '"l"(map)', '"r"(bar)', *(f'"r"(c{i})' for i in range(rank))]
    box = ", ".join(f"%{3 + i}" for i in range(rank))
    # A copy into the own CTA needs no cluster; .shared::cluster without one is slow on sm_120a.
    op = f"cp.async.bulk.tensor.{rank}d.shared::{'cta' if form == 'own' else 'cluster'}.global"
    op += ".mbarrier::complete_tx::bytes"
    tail = ""
    if form == "pair":
        name, op = f"{name}_pair", f"{op}.cta_group::2"
    if form == "multicast":
        name, op = f"{name}_multicast", f"{op}.multicast::cluster"
        tail += f", %{len(operands)}"
        parameters.append("unsigned short ctas")
        operands.append('"h"(ctas)')
    policy = ""
    if cache is not None:
        name, op = f"{name}_{cache}", f"{op}.L2::cache_hint"
        tail += f", %{len(operands)}"
        operands.append('"l"(policy)')
        policy = f"""\
  unsigned long long policy;
  asm("createpolicy.fractional.L2::{cache}.b64 %0, 1.0;" : "=l"(policy));
"""
    code = f"""\
__device__ __forceinline__ void {name}({", ".join(parameters)}) {{
{policy}  asm volatile(
      "{op} "
      "[%0], [%1, {{{box}}}], [%2]{tail};"
      ::{", ".join(operands)} : "memory");
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="tma_load",
        params=(
            Param("view", "place"),
            Param("place", "place"),
            Param("multicast", "static", False, keyword_only=True),
            Param("cache", "static", None, keyword_only=True),
            Param("outside", "static", "zero", keyword_only=True),
            AXES,
            *completion.PARAMS,
        ),
        doc="One thread starts TMA copies of the tile at `place` into `view`; elements outside the"
        ' tensor become zero (outside="nan": NaN) and'
        " count as bytes all the same. `view` is a stage or whole rows of"
        " it; its axes run along the last axes of the tensor, or along those that `axes` names in"
        " ascending order, the last one among them. Completes on the full barrier of the"
        " ring whose slot indexes the view, or on slot `slot` of the mbarrier `barrier`."
        " multicast: each CTA of the cluster loads its slice of the outermost axis and multicasts"
        " it to all, so every CTA must make the same copy. cache: L2 eviction priority,"
        " evict_first, evict_last or evict_normal.",
        source="PTX ISA 9.0, cp.async.bulk.tensor; CUDA driver API, cuTensorMapEncodeTiled",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="tma",
        convergent=True,
    )
)
