"""The walk over tiles in C++ and on the host; its order is defined by :mod:`cake.ops.raster`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cake.codegen.cuda_text import CInt, paren
from cake.codegen.cuda_writer import Definition
from cake.ops.raster import Walk


def times(a: CInt, b: CInt) -> CInt:
    """Product of two C integers."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 1 or b == 1:
        return b if a == 1 else a
    return f"{paren(str(a))} * {paren(str(b))}"


def step_extents(walk: Walk, extents: Sequence[CInt]) -> list[CInt]:
    """Extents counted in steps: the divided axis in groups of ``cluster`` tiles."""
    found = list(extents)
    axis, c = walk.axis, walk.cluster
    if c > 1:
        size = found[axis]
        known = isinstance(size, int)
        found[axis] = -(-int(size) // c) if known else f"({paren(str(size))} + {c - 1}) / {c}"
    return found


def group_count(sizes: Sequence[CInt]) -> CInt:
    """Steps of the walk: groups of ``cluster`` tiles."""
    count: CInt = 1
    for size in sizes:
        count = times(count, size)
    return count


def decode(
    walk: Walk,
    sizes: Sequence[CInt],
    index: str,
    names: Sequence[str],
    fresh: Callable[[str], str],
) -> list[Definition]:
    """Coordinates ``names`` of step ``index`` (an ``int``), given the extents in steps."""
    out: list[Definition] = []

    def define(stem: str, value: str) -> str:
        name = fresh(stem)
        out.append(Definition(name, "int", value))
        return name

    def coordinate(axis: int, value: str) -> None:
        if axis == walk.axis and walk.cluster > 1:
            value = f"{paren(value)} * {walk.cluster} + cta_rank"
        out.append(Definition(names[axis], "int", value))

    def split(axes: range, index: str) -> None:
        """Row-major: the last of ``axes`` moves fastest."""
        for axis in reversed(axes):
            if axis == 0:
                coordinate(0, index)
                return
            size = paren(str(sizes[axis]))
            outer = define("outer", f"{paren(index)} / {size}")
            coordinate(axis, f"{paren(index)} - {outer} * {size}")
            index = outer

    if walk.axis == walk.rank - 1:
        split(range(walk.rank), index)
        return out
    rows, columns = sizes[-2:]
    at = index
    # Leading axes of one tile each, as of a schedule whose batch is left out, cost no division.
    batched = group_count(sizes[:-2]) != 1
    if batched:
        plane = paren(str(times(rows, columns)))
        outer = define("outer", f"{index} / {plane}")
        at = define("at", f"{index} - {outer} * {plane}")
    per_band = paren(str(times(walk.band, columns)))
    band = define("band", f"{at} / {per_band}")
    inside = define("at", f"{at} - {band} * {per_band}")
    first = define("first", f"{band} * {walk.band}")
    height = define("height", f"min({rows} - {first}, {walk.band})")
    column = define("column", f"{inside} / {height}")
    coordinate(walk.rank - 1, column)
    coordinate(walk.rank - 2, f"{first} + {inside} - {column} * {height}")
    if batched:
        split(range(walk.rank - 2), outer)
    else:
        for axis in range(walk.rank - 2):
            coordinate(axis, "0")
    return out


def host_tiles(walk: Walk, extents: Sequence[str]) -> str:
    """Host expression of the number of tiles walked, a multiple of the cluster's size."""
    sizes = list(extents)
    if walk.cluster > 1:
        sizes[walk.axis] = f"cdiv({sizes[walk.axis]}, {walk.cluster})"
        sizes.append(str(walk.cluster))
    return " * ".join(sizes)


def host_resident(walk: Walk, tiles: str, min_blocks: int) -> str:
    """Host expression of the CTAs launched for a persistent tile set: what is resident at once."""
    resident = f"device_sms * {min_blocks}" if min_blocks > 1 else "device_sms"
    if walk.cluster > 1:
        resident = f"max({resident} // {walk.cluster}, 1) * {walk.cluster}"
    return f"min({tiles}, {resident})"
