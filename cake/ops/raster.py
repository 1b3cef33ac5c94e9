"""In which order tiles are walked: from a linear index to the coordinates of a tile.

Simulator and emitter share this definition. Without a raster the last axis moves fastest. With
``raster=G`` the axis before the last is cut into bands of G tiles; a band is walked column by
column, so that CTAs resident together share operands in L2 (the last band may be lower). In a
cluster of c CTAs the c ranks take neighbours along the axis that moves fastest; where its extent is
no multiple of c, the ranks beyond it hold a tile that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from cake.ir.program import Cluster, Grid, Program, Tiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A walk over tiles: ``axis`` is the one that moves fastest and that a cluster divides.

    ``band`` is the height of a band in steps of ``cluster`` tiles, 1 without a raster.
    """

    rank: int
    axis: int
    band: int
    cluster: int


def cluster_size(program: Program) -> int:
    """CTAs of a cluster; 1 without clusters."""
    return next((c.size for c in program.find(Cluster)), 1)


def walk_of(program: Program, tiles: Grid | Tiles) -> Walk:
    """How the tiles of a grid or persistent tile set are walked."""
    cluster = cluster_size(program)
    rank = len(tiles.extents)
    banded = tiles.raster > 1 and rank > 1
    return Walk(
        rank=rank,
        axis=rank - 2 if banded else rank - 1,
        band=max(1, tiles.raster // cluster) if banded else 1,
        cluster=cluster,
    )


def steps(walk: Walk, extents: Sequence[int]) -> list[int]:
    """Extents counted in steps of the walk: the divided axis in groups of ``cluster`` tiles."""
    found = list(extents)
    found[walk.axis] = -(-found[walk.axis] // walk.cluster)
    return found


def walk_length(walk: Walk, extents: Sequence[int]) -> int:
    """Tiles walked, with those that do not exist: a multiple of the cluster's size."""
    return prod(steps(walk, extents)) * walk.cluster


def tile_at(walk: Walk, extents: Sequence[int], index: int) -> tuple[int, ...] | None:
    """Coordinates of tile ``index`` of the walk; None if there is no such tile."""
    group, rank = divmod(index, walk.cluster)
    sizes = steps(walk, extents)
    if walk.axis == walk.rank - 1:
        found = []
        for size in reversed(sizes):
            group, at = divmod(group, size)
            found.append(at)
        found.reverse()
    else:
        rows, columns = sizes[-2:]
        group, at = divmod(group, rows * columns)
        band, at = divmod(at, walk.band * columns)
        first = band * walk.band
        column, row = divmod(at, min(rows - first, walk.band))
        found = [first + row, column]
        for size in reversed(sizes[:-2]):
            group, at = divmod(group, size)
            found.insert(0, at)
    found[walk.axis] = found[walk.axis] * walk.cluster + rank
    return tuple(found) if found[walk.axis] < extents[walk.axis] else None
