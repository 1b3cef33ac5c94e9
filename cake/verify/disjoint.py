"""Stores of different CTAs to one tensor: which lie apart by their polynomials alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from cake.ir.nodes import Const, Static, TileLoop
from cake.ir.program import Grid, Tiles, WorkspaceDecl
from cake.verify.context import Context
from cake.verify.footprints import Footprint, footprints
from cake.verify.poly import ZERO, Poly
from cake.verify.questions import Apart

CTA = "block_index()"
"""Key of the number of the CTA in the grid."""


def plain_stores(ctx: Context) -> Iterator[Footprint]:
    """Stores of computed values to tensors. Sums are for several CTAs to make, a constant such as
    a flag may be stored by all, and workspaces have protocols of their own."""
    scratch = {w.name for w in ctx.program.find(WorkspaceDecl)}
    for f in footprints(ctx):
        values = [a for a in f.site.call.args[1:2] if a is not None]
        constant = all(isinstance(a, Const | Static) for a in values)
        if f.access.action == "write" and not constant and f.place.tensor not in scratch:
            yield f


def ctas_and_tiles(ctx: Context, f: Footprint) -> tuple[str, ...]:
    """Keys of the atoms that tell the CTA and its tile from others where a store executes."""
    loops = [a.stmt for a in f.site.around if isinstance(a.stmt, TileLoop)]
    found = [v for g in ctx.program.find(Grid) for v in g.vars]
    found += [str(v) for s in loops for v in ctx.integers.variables[id(s)]]
    if found or not ctx.program.find(Tiles):
        return tuple(found)
    return (str(ctx.integers.atoms.add(CTA, lows=[0])),)


def unseparated(ctx: Context) -> Iterator[Apart]:
    """Pairs of stores of which it does not show that different CTAs write different elements."""
    stores = list(plain_stores(ctx))
    for f, g in combinations_with_replacement(stores, 2):
        if f.place.tensor == g.place.tensor and not _separated(ctx, f, g):
            yield Apart(first=f, second=g)


def _separated(ctx: Context, f: Footprint, g: Footprint) -> bool:
    """Whether each coordinate in which two CTAs may differ keeps the stores apart, given that they
    agree in those looked at before."""
    left = [c for c in ctas_and_tiles(ctx, f) if _several(ctx, c)]
    if ctas_and_tiles(ctx, g) != ctas_and_tiles(ctx, f):
        return False
    agreed = {a for d in ctx.program.dims for a in ctx.integers.values[d].atoms}
    while left:
        found = next((c for c in left if _keeps_apart(ctx, f, g, c, agreed)), None)
        if found is None:
            return False
        left.remove(found)
        agreed.add(found)
    return True


def _several(ctx: Context, coordinate: str) -> bool:
    if coordinate == CTA:
        return True
    highs = ctx.integers.atoms.get(coordinate).highs
    return any(b.value.constant != 0 for b in highs)


def _keeps_apart(ctx: Context, f: Footprint, g: Footprint, c: str, agreed: set[str]) -> bool:
    if all(_only_first(ctx, x, c) for x in (f, g)):
        return True
    for axis in range(len(f.extents)):
        for fixed in (True, False):
            a, b = (_strip(ctx, x, axis, c, agreed, fixed) for x in (f, g))
            if a is not None and a == b:
                return True
    return False


def _only_first(ctx: Context, f: Footprint, c: str) -> bool:
    """Whether only the CTA with coordinate 0 comes to the store."""
    return c != CTA and ctx.integers.proved(-Poly.atom(c), ctx.given(f.site, f.mask))


def _strip(
    ctx: Context, f: Footprint, axis: int, c: str, agreed: set[str], fixed: bool
) -> tuple[Poly, Poly] | None:
    """The width of the strip that each value of a coordinate has along an axis, and where strip 0
    begins, if all that the store touches lies in its strip. ``fixed``: a constant offset counts to
    where strip 0 begins, not to the place within the strip."""
    p = ctx.integers.poly(f.place.index[axis])
    parts = None if p is None else p.split(c)
    if parts is None:
        return None
    width, rest = parts
    start = Poly(tuple(t for t in rest.terms if agreed.issuperset(t[0]) and (t[0] or fixed)))
    if width == ZERO or not agreed.issuperset(width.atoms):
        return None
    given = ctx.given(f.site, f.mask)
    within = rest - start
    room = width - within - f.extents[axis]
    fits = ctx.integers.proved(within, given) and ctx.integers.proved(room, given)
    return (width, start) if fits else None
