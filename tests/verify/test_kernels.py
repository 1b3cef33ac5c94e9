"""The schedules that CAKE ships: none is rejected, and each slip put into one is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import cake.kernels
from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.verify import verify

from .examples import found

FOLDER = Path(cake.kernels.__file__).parent
FILES = sorted(FOLDER.glob("*/sm_*.py"))


def _programs(text: str) -> tuple[Program, ...]:
    parsed = parse(text, "kernel.py")
    assert parsed.ok, "\n".join(f"{d.span}: {d.message}" for d in parsed.diagnostics)
    return parsed.programs


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}-{f.stem}")
def test_a_shipped_schedule_is_not_rejected(file: Path) -> None:
    for program in _programs(file.read_text()):
        v = verify(program)
        assert v.ok, found(v)


HOPPER_GEMM = (FOLDER / "gemm" / "sm_90a.py").read_text()

SLIPS = {
    "slot released too early": (
        "release(ab, last)\n                last = s",
        "release(ab, s)",
        {"CK404", "CK403"},
    ),
    "product not waited for": ("            wgmma_wait(0)\n", "", {"CK345"}),
    "fence left out": ("                fence_async()\n", "", {"CK350"}),
    "store not waited for at the end": ("        tma_store_wait(0)\n", "", {"CK348"}),
    "store waited for too late": ("tma_store_wait(1)", "tma_store_wait(2)", {"CK344"}),
    "consumer skips a step": ("range(1, KT)", "range(2, KT)", {"CK401"}),
    "no step at K = 0": ("    require(K > 0)\n", "", {"CK401"}),
    "too few registers": ("regs=40", "regs=20", {"CK301"}),
    "too much shared memory": ("stages=2 * WG", "stages=16 * WG", {"CK310"}),
    "ring too short": ("STAGES: meta(3, 4, 5, 6) = 4", "STAGES: meta(1, 4) = 1", {"CK413"}),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_the_hopper_gemm_is_found(name: str) -> None:
    old, new, codes = SLIPS[name]
    text = HOPPER_GEMM.replace(old, new)
    if text == HOPPER_GEMM:
        pytest.skip("the schedule is written in another way now")
    v = verify(_programs(text)[-1])
    assert codes & {d.code for d in v.diagnostics}, found(v)
