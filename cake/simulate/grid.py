"""Tiles of a grid or persistent tile set, as the shared walk orders them."""

from __future__ import annotations

from collections.abc import Sequence

from cake.ir.program import Grid, Pipeline, Program, Tiles
from cake.ops.raster import tile_at, walk_length, walk_of


def length(program: Program, tiles: Grid | Tiles, extents: Sequence[int]) -> int:
    """CTAs (of a grid) or tiles walked, those that do not exist included."""
    return walk_length(walk_of(program, tiles), [max(e, 0) for e in extents])


def coordinates(
    program: Program, tiles: Grid | Tiles, extents: Sequence[int], index: int
) -> tuple[int, ...] | None:
    """Coordinates of tile ``index``, outermost first.

    A tile that does not exist is None, unless rings span the cluster: then its CTA still takes
    part, with a coordinate outside.
    """
    walk = walk_of(program, tiles)
    point = tile_at(walk, extents, index)
    rings: tuple[Pipeline, ...] = program.find(Pipeline)
    if point is None and any(r.clustered for r in rings):
        padded = list(extents)
        padded[walk.axis] = -(-padded[walk.axis] // walk.cluster) * walk.cluster
        return tile_at(walk, padded, index)
    return point
