"""The walk over tiles: its order, and the C++ and host forms of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from cake.codegen.cuda_text import CInt
from cake.codegen.cuda_tiles import decode, group_count, host_resident, host_tiles, step_extents
from cake.codegen.hostexpr import HostExpr
from cake.ops.raster import Walk, tile_at, walk_length

WALKS = [
    (Walk(rank=1, axis=0, band=1, cluster=1), (7,)),
    (Walk(rank=1, axis=0, band=1, cluster=2), (7,)),
    (Walk(rank=2, axis=1, band=1, cluster=1), (3, 5)),
    (Walk(rank=2, axis=1, band=1, cluster=2), (3, 5)),
    (Walk(rank=2, axis=0, band=4, cluster=1), (10, 3)),
    (Walk(rank=2, axis=0, band=2, cluster=2), (10, 3)),
    (Walk(rank=2, axis=0, band=2, cluster=2), (9, 3)),
    (Walk(rank=3, axis=2, band=1, cluster=1), (2, 3, 4)),
    (Walk(rank=3, axis=1, band=8, cluster=1), (2, 9, 4)),
    (Walk(rank=4, axis=2, band=2, cluster=2), (2, 2, 5, 3)),
]


@pytest.mark.parametrize(("walk", "extents"), WALKS)
def test_every_tile_is_walked_once(walk: Walk, extents: tuple[int, ...]) -> None:
    tiles = [tile_at(walk, extents, i) for i in range(walk_length(walk, extents))]
    assert sorted(t for t in tiles if t is not None) == list(product(*map(range, extents)))


def test_a_band_is_walked_column_by_column() -> None:
    walk = Walk(rank=2, axis=0, band=2, cluster=1)
    assert [tile_at(walk, (3, 2), i) for i in range(6)] == [
        *((0, 0), (1, 0), (0, 1), (1, 1)),
        *((2, 0), (2, 1)),
    ]


def test_ranks_of_a_cluster_are_neighbours() -> None:
    walk = Walk(rank=2, axis=0, band=2, cluster=2)
    tiles = [tile_at(walk, (9, 3), i) for i in range(walk_length(walk, (9, 3)))]
    for first, second in zip(tiles[::2], tiles[1::2], strict=True):
        assert first is not None
        row, column = first
        assert second == (None if row == 8 else (row + 1, column))


def c_coordinates(walk: Walk, extents: tuple[int, ...], index: int) -> tuple[int, ...]:
    """What the emitted definitions compute; C's division of non-negative ints is Python's //."""
    names = [f"v{axis}" for axis in range(walk.rank)]
    symbols: list[CInt] = [f"e{axis}" for axis in range(walk.rank)]
    given = {f"e{axis}": extent for axis, extent in enumerate(extents)}
    sizes = step_extents(walk, symbols)
    used: set[str] = set()

    def fresh(stem: str) -> str:
        name = f"{stem}{len(used)}"
        used.add(name)
        return name

    scope: dict[str, Any] = {
        **given,
        "tile": index // walk.cluster,
        "cta_rank": index % walk.cluster,
        "min": min,
    }
    for d in decode(walk, sizes, "tile", names, fresh):
        scope[d.name] = eval(d.value.replace("/", "//"), {}, scope)
    groups = eval(str(group_count(sizes)).replace("/", "//"), {}, given)
    assert groups * walk.cluster == walk_length(walk, extents)
    return tuple(scope[n] for n in names)


@pytest.mark.parametrize(("walk", "extents"), WALKS)
def test_emitted_coordinates_agree(walk: Walk, extents: tuple[int, ...]) -> None:
    for index in range(walk_length(walk, extents)):
        expected = tile_at(walk, extents, index)
        found = c_coordinates(walk, extents, index)
        exists = found[walk.axis] < extents[walk.axis]
        assert (found if exists else None) == expected


@pytest.mark.parametrize(("walk", "extents"), WALKS)
def test_the_host_counts_the_same_tiles(walk: Walk, extents: tuple[int, ...]) -> None:
    env = {f"E{axis}": extent for axis, extent in enumerate(extents)} | {"device_sms": 5}
    count = host_tiles(walk, list(env)[: walk.rank])
    assert HostExpr(count).evaluate(env) == walk_length(walk, extents)
    grid = HostExpr(host_resident(walk, count, 1)).evaluate(env)
    assert grid <= max(walk_length(walk, extents), walk.cluster)
    assert grid % walk.cluster == 0
    assert 0 < grid <= 5


def test_a_batch_of_one_costs_no_division() -> None:
    walk = Walk(rank=3, axis=1, band=8, cluster=1)
    names = ["v0", "v1", "v2"]
    alone = decode(walk, [1, "e1", "e2"], "tile", names, lambda stem: stem)
    flat = Walk(rank=2, axis=0, band=8, cluster=1)
    plain = decode(flat, ["e1", "e2"], "tile", names[1:], lambda stem: stem)
    assert [(d.name, d.value) for d in alone] == [*((d.name, d.value) for d in plain), ("v0", "0")]
