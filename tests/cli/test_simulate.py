"""`cake simulate`: adversaries, ring arithmetic, and findings with all their places."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]

SUM = """\
@cake.schedule(target="sm_90a")
def total(x: Tensor[f32, "N"], y: Tensor[f32, 1]):
    math = role(warps=4)
    with math as u:
        if lane() == 0:
            reduce_add(y[0], load(x[u]) * 1.0e-7 + load(x[u + 4]) * 1.0e7)
"""
RING = """\
@cake.schedule(target="sm_90a")
def rows(x: Tensor[f32, "N", 32], y: Tensor[f32, "N", 32]):
    S = smem(f32, (32,), stages=1)
    fill = role(warps=1)
    use = role(warps=1)
    ring = pipeline(S, producer=fill, consumer=use)
    with fill:
        for i in range(N):
            with ring.fill() as s:
                bulk_load(S[s], x[i, 0])
    with use:
        for i in range(N):
            s = wait(ring)
            release(ring, s)
            store(y[i, lane()], load(S[s][lane()]))
"""
WAITS = RING.replace("            release(ring, s)\n", "")


@pytest.fixture
def schedule(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "schedule.py"
        path.write_text(text)
        return path

    return write


def line(text: str, part: str) -> int:
    return next(i for i, row in enumerate(text.splitlines(), 1) if part in row)


def test_orders_that_differ_by_rounding_agree_in_the_ring(
    document: Document, schedule: Callable[[str], Path]
) -> None:
    arguments = ("simulate", schedule(SUM), "--dim", "N=8", "--order", "all")
    rounded = document(*arguments)
    assert [d["code"] for d in rounded["diagnostics"]] == ["CK955"]
    assert rounded["diagnostics"][0]["severity"] == "warning"
    assert "--arithmetic ring" in rounded["diagnostics"][0]["helps"][0]
    exact = document(*arguments, "--arithmetic", "ring")
    assert exact["diagnostics"] == []
    assert exact["modulus"] == 251


def test_what_still_differs_in_the_ring_is_an_error(
    document: Document, schedule: Callable[[str], Path]
) -> None:
    last = SUM.replace("reduce_add(y[0], ", "store(y[0], ")
    found = document(
        "simulate", schedule(last), "--dim", "N=8", "--order", "all", "--arithmetic", "ring"
    )
    (finding,) = found["diagnostics"]
    assert (finding["code"], finding["severity"]) == ("CK955", "error")
    assert "although sums are exact" in finding["message"]
    assert [r["span"]["line"] for r in finding["related"]] == [line(last, "store(y[0]")]


def test_schedules_of_one_workload_leave_the_same_residues(document: Document) -> None:
    """Tiles and orders of sums differ, and float results would."""
    root = Path(__file__).parents[2] / "cake" / "kernels" / "gemm"
    options = ("--workload", "gemm", "--shape", "M=65,N=136,K=136", "--arithmetic", "ring")
    found = [
        document("simulate", root / name, *options)
        for name in ("sm_80.py", "sm_90a.py", "sm_100a_2cta.py")
    ]
    assert len({f["results"][0]["sha256"] for f in found}) == 1
    assert all(f["comparison"] is None for f in found)


def test_poison_names_who_left_it(cake: Cake, schedule: Callable[[str], Path]) -> None:
    path = schedule(RING)
    result = cake("simulate", path, "--dim", "N=3", "--order", "late-newest")
    assert result.exit_code == 1
    assert "error[CK501]" in result.stdout
    assert f"{path}:{line(RING, 'store(y')}:" in result.stdout
    assert f"{path}:{line(RING, 'release(ring')}:13   S[0] is released here" in result.stdout


def test_orders_that_draw_run_with_several_seeds(
    document: Document, schedule: Callable[[str], Path]
) -> None:
    """Whoever is slow, the others read what it has not stored."""
    text = """\
@cake.schedule(target="sm_90a")
def meet(y: Tensor[f32, "N"]):
    S = smem(f32, (4,))
    math = role(warps=4)
    with math as u:
        if lane() == 0:
            store(S[u], 1.0)
        store(y[u * 32 + lane()], load(S[3 - u]))
"""
    arguments = ("simulate", schedule(text), "--dim", "N=128", "--seed", "4", "--seeds", "6")
    found = document(*arguments, "--order", "slow-unit")
    assert [run["seed"] for run in found["runs"]] == [4, 5, 6, 7, 8, 9]
    assert all(run["findings"] for run in found["runs"])
    assert len(found["diagnostics"]) == 1, "findings that are alike are shown once"
    assert len(document(*arguments, "--order", "late")["runs"]) == 1


def test_a_deadlock_names_barriers_and_what_they_wait_for(
    document: Document, schedule: Callable[[str], Path]
) -> None:
    found = document("simulate", schedule(WAITS), "--dim", "N=3")
    (finding,) = found["diagnostics"]
    assert finding["code"] == "CK505"
    facts = finding["facts"]
    assert facts["barriers"] == ["ring.empty[0]", "ring.full[0]"]
    assert (facts["phases"], facts["arrivals_due"], facts["bytes_due"]) == ([0, 1], [1, 1], [0, 0])
    lines = [r["span"]["line"] for r in finding["related"]]
    assert lines == [line(WAITS, "with ring.fill"), line(WAITS, "s = wait(ring)")]


@pytest.mark.parametrize("options", [(), ("--concurrent",), ("--order", "reversed")])
def test_ctas_run_in_turn_together_and_backwards(
    document: Document, good: Path, options: tuple[str, ...]
) -> None:
    found = document("simulate", good, "--dim", "N=70", "--scalar", "a=2", *options)
    assert found["runs"][0]["ctas"] == 3
    assert found["diagnostics"] == []
