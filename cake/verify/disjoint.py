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

Strip = tuple[int, Poly, Poly]
"""Axis, width, and where the strip of coordinate 0 begins."""
Strips = tuple[tuple[str, frozenset[Strip]], ...]

_ONLY_FIRST: Strip = (-1, ZERO, ZERO)
"""Only the CTA with coordinate 0 comes to the store."""


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
    """Pairs of stores of which it does not show that different CTAs write different elements; one
    of pairs that are alike."""
    stores = [(f, _strips(ctx, f)) for f in plain_stores(ctx)]
    seen = set()
    for (f, a), (g, b) in combinations_with_replacement(stores, 2):
        if f.place.tensor != g.place.tensor or _apart(a, b) or _elsewhere(ctx, f, g):
            continue
        # Unrolled stores differ in constants along axes in which both of a pair agree.
        alike = (f.place.tensor, _places(ctx, f, g), _conditions(ctx, f), _conditions(ctx, g))
        if alike not in seen:
            seen.add(alike)
            yield Apart(first=f, second=g)


def _places(ctx: Context, f: Footprint, g: Footprint) -> tuple[object, ...]:
    """Where two stores write, along the axes that matter for whether they meet."""
    ends = zip(f.place.index, g.place.index, f.extents, g.extents, strict=True)
    found = [(ctx.integers.poly(a), ctx.integers.poly(b), n, m) for a, b, n, m in ends]
    return tuple(x for x in found if x[0] is None or x[0].constant is None or x[0] != x[1])


def _conditions(ctx: Context, f: Footprint) -> tuple[object, ...]:
    """When a store executes."""
    conditions = [(ctx.integers.text(c), branch) for c, branch in f.site.conditions]
    return (*conditions, None if f.mask is None else ctx.integers.text(f.mask))


def _strips(ctx: Context, f: Footprint) -> Strips | None:
    """For each coordinate in which CTAs may differ, the strips that keep a store's elements apart
    if they do and agree in the coordinates before; None if there are not such for all of them."""
    left = [c for c in ctas_and_tiles(ctx, f) if _several(ctx, c)]
    agreed = _sizes(ctx)
    found: list[tuple[str, frozenset[Strip]]] = []
    while left:
        tried = ((c, frozenset(_of_coordinate(ctx, f, c, agreed))) for c in left)
        best = next(((c, strips) for c, strips in tried if strips), None)
        if best is None:
            return None
        found.append(best)
        left.remove(best[0])
        agreed.add(best[0])
    return tuple(found)


def _apart(a: Strips | None, b: Strips | None) -> bool:
    """Whether two stores have common strips for the same coordinates in the same order."""
    if a is None or b is None or [c for c, _ in a] != [c for c, _ in b]:
        return False
    return all(x & y for (_, x), (_, y) in zip(a, b, strict=True))


def _elsewhere(ctx: Context, f: Footprint, g: Footprint) -> bool:
    """Whether two stores differ along an axis whatever CTA, thread and round they belong to."""
    sizes = _sizes(ctx)
    for a, b, n, m in zip(f.place.index, g.place.index, f.extents, g.extents, strict=True):
        p, q = ctx.integers.poly(a), ctx.integers.poly(b)
        if p is None or q is None or not sizes.issuperset(p.atoms | q.atoms):
            continue
        distance = (p - q).constant
        if distance is not None and (distance >= m or distance <= -n):
            return True
    return False


def _sizes(ctx: Context) -> set[str]:
    return {a for d in ctx.program.dims for a in ctx.integers.values[d].atoms}


def _several(ctx: Context, coordinate: str) -> bool:
    if coordinate == CTA:
        return True
    highs = ctx.integers.atoms.get(coordinate).highs
    return any(b.value.constant != 0 for b in highs)


def _of_coordinate(ctx: Context, f: Footprint, c: str, agreed: set[str]) -> Iterator[Strip]:
    if c != CTA and ctx.integers.proved(-Poly.atom(c), ctx.given(f.site, f.mask)):
        yield _ONLY_FIRST
    for axis in range(len(f.extents)):
        for fixed in (True, False):
            strip = _strip(ctx, f, axis, c, agreed, fixed)
            if strip is not None:
                yield (axis, *strip)


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
