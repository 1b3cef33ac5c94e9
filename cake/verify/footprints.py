"""Which elements of a global tensor an access touches."""

from __future__ import annotations

from dataclasses import dataclass

from cake.ir.dtypes import DType
from cake.ir.nodes import Expr, TensorRef, View
from cake.ir.program import TensorParam, WorkspaceDecl
from cake.ir.types import ColVector, Fragment, RegArray, RowVector, SmemView, TensorPlace
from cake.ops.base import Access, static
from cake.ops.tiles import tile_extents
from cake.verify.context import Context, once
from cake.verify.poly import Poly
from cake.verify.sites import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """``extents[i]`` elements from ``place.index[i]`` along each axis.

    ``clipped``: the axes along which elements outside the tensor are dropped or read as a fill.
    ``mask``: the per-thread condition of the access, if it has one.
    """

    site: Site
    access: Access
    place: TensorRef
    extents: tuple[int, ...]
    clipped: frozenset[int]
    mask: Expr | None

    @property
    def dtype(self) -> DType:
        """Element type of the tensor."""
        assert isinstance(self.place.type, TensorPlace)
        return self.place.type.dtype


@once
def footprints(ctx: Context) -> tuple[Footprint, ...]:
    """Every access of the program to global memory; prefetches touch nothing."""
    return tuple(
        _footprint(site, access, place)
        for site in ctx.sites
        for access, place in site.accesses("global")
        if isinstance(place, TensorRef)
    )


def _footprint(site: Site, access: Access, place: TensorRef) -> Footprint:
    rank = len(place.index)
    tile = _tile(site, place)
    extents = tile_extents(site.call, tile, rank)
    options = {p.name: a for p, a in zip(site.primitive.params, site.call.args, strict=True)}
    return Footprint(
        site=site,
        access=access,
        place=place,
        extents=extents,
        clipped=_clipped(site, rank, len(tile)),
        mask=options.get("mask"),
    )


def _tile(site: Site, place: TensorRef) -> tuple[int, ...]:
    """Extents along the last axes: those of the view, the fragment or the vector that moves."""
    moved = [a for a in (site.call, *site.call.args) if a is not None and a is not place]
    if isinstance(site.call.type, RegArray):
        return (site.call.type.length,)
    for e in moved:
        if isinstance(e, View) and isinstance(e.type, SmemView):
            return e.type.shape
        if isinstance(e.type, Fragment):
            return e.type.shape
        if isinstance(e.type, RowVector):
            return (e.type.rows,)
        if isinstance(e.type, ColVector):
            return (e.type.cols,)
        if isinstance(e.type, RegArray):
            return (e.type.length,)
    return ()


def _clipped(site: Site, rank: int, tile: int) -> frozenset[int]:
    every = frozenset(range(rank))
    if site.call.op.startswith("tma_"):
        return every
    if site.call.op == "cp_async":
        if static(site.call, "zfill"):
            return every
        return every - {rank - 1} if static(site.call, "clamp") else frozenset()
    if any(p.name == "clip" for p in site.primitive.params) and static(site.call, "clip"):
        # A store clips fragments and vectors; a load gives a fragment.
        moved = (site.call, *site.call.args)
        if any(e is not None and isinstance(e.type, _CLIPPED) for e in moved):
            return every
    return frozenset()


_CLIPPED = (Fragment, RowVector, ColVector)


def extent_of(ctx: Context, tensor: str, axis: int) -> Poly:
    """The size of a tensor or workspace along an axis."""
    decl = next((t for t in ctx.program.tensors if t.name == tensor), None)
    if isinstance(decl, TensorParam):
        size = decl.shape[axis]
        return Poly.number(size) if isinstance(size, int) else ctx.integers.values[size]
    scratch = ctx.program.resource(tensor)
    assert isinstance(scratch, WorkspaceDecl)
    found = ctx.integers.poly(scratch.shape[axis])
    assert found is not None
    return found
