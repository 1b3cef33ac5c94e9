"""Kernel-level expressions for the host."""

from __future__ import annotations

import pytest

from cake.codegen.host import HostText
from cake.codegen.hostexpr import HostExpr
from cake.diag import CakeError
from cake.ir.program import Grid
from tests.codegen.schedules import program

SOURCE = """
@cake.schedule(target="sm_80")
def k(x: Tensor[f32, "M", "N"], rows: i32, eps: f32, *, BM: meta(64) = 64):
    tall = cdiv(M, BM)
    require({cond})
    m = grid(tall * 2)
    work = role(warps=1)
    with work:
        v = lane()
"""


@pytest.mark.parametrize(
    ("cond", "python"),
    [
        ("M % 8 == 0 and N >= 16", "M % 8 == 0 and N >= 16"),
        ("M < 3 or not N == 2", "M < 3 or not N == 2"),
        ("max(M, N) - min(M, 5) * 3 > -2", "max(M, N) - min(M, 5) * 3 > -2"),
        ("cdiv(M, BM) // 2 != rows", "-(-M // 64) // 2 != rows"),
        ("tall == 3", "-(-M // 64) == 3"),
        ("0 < M < 200", "0 < M < 200"),
    ],
)
def test_guards_mean_what_the_schedule_says(cond: str, python: str) -> None:
    p = program(SOURCE.replace("{cond}", cond))
    texts = [HostExpr(HostText(p).of(g.cond)) for g in p.guards]
    for m, n, rows in ((0, 2, 1), (136, 40, 1), (8, 16, 0)):
        env = {"M": m, "N": n, "rows": rows}
        assert all(t.evaluate(env) for t in texts) == bool(eval(python, {}, dict(env))), env


def test_extents_substitute_kernel_level_values() -> None:
    p = program(SOURCE.replace("{cond}", "M > 0"))
    (grid,) = p.find(Grid)
    assert HostText(p).of(grid.extents[0]) == "(((M + 63) // 64) * 2)"


def test_what_the_host_cannot_do_is_named() -> None:
    p = program(SOURCE.replace("{cond}", "M & 7 == 0"))
    with pytest.raises(CakeError, match="the host cannot evaluate bitand") as error:
        HostText(p).of(p.guards[0].cond)
    assert error.value.diagnostics[0].code == "CK623"
    p = program(SOURCE.replace("{cond}", "eps > 0.5"))
    with pytest.raises(CakeError, match="the host cannot evaluate a float"):
        HostText(p).of(p.guards[0].cond)
