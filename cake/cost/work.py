"""The work of a kernel at concrete dimensions, call by call.

Each role's body is walked once. Loops are evaluated to trip counts (sampled where they are long,
see :func:`cake.cost.values.samples`), conditions to the share of threads and iterations for which
they hold. A warp that runs a statement for some of its threads pays for the instruction in full
and moves the bytes of the active threads alone. Where only the data know, a condition counts in
full, and a loop is taken to read some tensor once from end to end (or to run once, if it reads
none); each such place is named in ``Work.assumptions``.

Arithmetic on addresses (inside subscripts) is not counted: compilers hoist and fold most of it, and
the memory primitives include their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from cake.cost.values import Values
from cake.cost.walk import Site, Walk
from cake.ir.nodes import (
    Expr,
)
from cake.ir.program import Grid, Program, Tiles
from cake.ir.types import WARP


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All work of a kernel: ``sites`` for an average CTA of ``ctas``.

    ``exposed`` counts, for each role, the waits for device memory that one of its warps cannot
    overlap with each other; ``fills`` the fills of each ring.
    """

    ctas: int
    tiles: int
    persistent: bool
    sites: tuple[Site, ...]
    exposed: Mapping[str, float]
    fills: Mapping[str, float]
    assumptions: tuple[str, ...]


def work_of(program: Program, dims: Mapping[str, int | float], resident_ctas: int) -> Work:
    """Count the work of ``program``.

    ``dims`` binds every run-time dimension and scalar parameter that extents, trip counts and
    conditions use. ``resident_ctas`` is how many CTAs the device holds at once: a persistent tile
    set is shared by that many.
    """
    host = _host_values(program, dims)
    grids: tuple[Grid | Tiles, ...] = program.find(Grid) + program.find(Tiles)
    extents = [_extent(host, e) for e in grids[0].extents] if grids else []
    tiles = prod(extents)
    persistent = bool(grids) and isinstance(grids[0], Tiles)
    ctas = min(tiles, resident_ctas) if persistent else tiles
    walk = Walk(program, dims, extents, tiles, ctas)
    for role in program.roles:
        walk.role(role)
    return Work(
        ctas=ctas,
        tiles=tiles,
        persistent=persistent,
        sites=tuple(walk.sites),
        exposed=walk.exposed,
        fills=walk.fills,
        assumptions=tuple(dict.fromkeys(walk.assumptions)),
    )


def _host_values(program: Program, dims: Mapping[str, int | float]) -> Values:
    """Kernel-level values that do not depend on the grid."""
    host = Values(dims, WARP, WARP)
    for let in program.lets:
        host.variables[let.targets[0]] = host.eval(let.value)
    return host


def _extent(host: Values, e: Expr) -> int:
    value = host.eval(e)
    if value is None:
        raise ValueError(f"{e.loc}: the extent of the grid needs a dimension that was not given")
    return int(value)
