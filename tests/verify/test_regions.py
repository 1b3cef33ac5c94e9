"""Overlap of regions: units, threads, stages and earlier rounds of a loop."""

from __future__ import annotations

import pytest

from cake.ir.nodes import View, walk_exprs, walk_stmts
from cake.ir.program import Role
from cake.verify.context import Context
from cake.verify.offsets import Offset
from cake.verify.poly import ZERO, Poly
from cake.verify.regions import Region, Regions
from cake.verify.stage_blocks import StageBlocks

from .examples import programs

FRAME = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M"], y: Tensor[f32, "M"]):
    X = smem(f32, (64, 64), stages=4)
    r = role(warps=4)
    with r as u:
        for k in range(M):
            store({a}, 0.0)
            store({b}, 0.0)
"""


def _regions(a: str, b: str) -> tuple[Regions, Region, Region]:
    program = programs(FRAME.format(a=a, b=b))[0]
    ctx = Context(program)
    role = program.resource("r")
    assert isinstance(role, Role)
    regions = Regions(program, ctx.integers, role, StageBlocks(ctx.integers, ctx.sites))
    views = [
        e for s in walk_stmts(program.roles[0].body) for e in walk_exprs(s) if isinstance(e, View)
    ]
    first, second = (regions.of(v, {}) for v in views)
    return regions, first, second


@pytest.mark.parametrize(
    ("a", "b", "units", "threads"),
    [
        ("X[0][u, lane()]", "X[0][u, lane()]", "no", "no"),
        ("X[0][u, lane()]", "X[0][u, 31 - lane()]", "no", "yes"),
        ("X[0][u, lane()]", "X[0][3 - u, lane()]", "yes", "no"),
        ("X[0][0, lane()]", "X[0][0, lane() + 32]", "no", "no"),
        ("X[k % 4][0, lane()]", "X[(k + 1) % 4][0, lane()]", "no", "no"),
        ("X[k % 4][0, lane()]", "X[(k + 4) % 4][0, lane()]", "yes", "no"),
        ("X[u][0, lane()]", "X[u][0, lane()]", "no", "no"),
        ("X[u][0, lane()]", "X[(u + 1) % 4][0, lane()]", "yes", "no"),
        ("X[0][k % 64, lane()]", "X[0][0, lane()]", "maybe", "no"),
        ("X[0][lane() // 4, lane() % 4 * 2]", "X[0][lane() // 4, lane() % 4 * 2 + 1]", "no", "no"),
        ("X[0][lane() // 4, lane() % 4]", "X[0][lane() // 4, lane() % 4 + 1]", "yes", "yes"),
    ],
)
def test_overlap(a: str, b: str, units: str, threads: str) -> None:
    regions, first, second = _regions(a, b)
    assert regions.overlap(first, second, between_units=True) == units
    assert regions.between_threads(first, second) == threads


def _line(base: int, stride: int, extent: int) -> Region:
    return Region(
        "X", 1, None, (Offset(ZERO), Offset(Poly.number(base), ZERO, stride)), (64, extent)
    )


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (_line(0, 16, 16), _line(16, 0, 16), "no"),
        (_line(0, 16, 17), _line(16, 0, 16), "yes"),
        (_line(48, 16, 16), _line(0, 0, 16), "yes"),
        (_line(48, 32, 16), _line(0, 0, 16), "no"),
        (_line(0, -16, 16), _line(32, 0, 16), "yes"),
        (_line(0, -16, 16), _line(-16, 0, 16), "no"),
    ],
)
def test_any_earlier_round_may_meet(earlier: Region, later: Region, expected: str) -> None:
    regions, _, _ = _regions("X[0][0, 0]", "X[0][0, 0]")
    assert regions.overlap(earlier, later, between_units=False) == expected
