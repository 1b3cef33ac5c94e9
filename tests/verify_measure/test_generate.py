"""Generated schedules: valid ones run without findings, each fault is shown by some run."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from benchmarks.verifier.generate import FAULTS, different, unsafe, valid
from benchmarks.verifier.layers import errors
from benchmarks.verifier.verdicts import counted, verdict
from cake.ir.dtypes import numpy_dtype
from cake.ir.program import Barrier, Cluster, Program, Smem
from cake.lang.elaborate import parse
from cake.simulate import simulate

SIZES = {"M": (5, 8, 1), "K": (232, 96, 4)}
"""Sizes of trials: more rounds than stages, tails, one round."""


def program(text: str) -> Program:
    parsed = parse(text, "generated.py")
    assert parsed.ok, (text, [d.message for d in parsed.diagnostics])
    return parsed.programs[0]


def findings(made: Program, sizes: dict[str, int], order: str) -> tuple[str, ...]:
    """Codes that the simulator reports; it knows nothing of rules or families."""
    rows = {
        s.name: tuple(d if isinstance(d, int) else sizes[d] for d in s.shape) for s in made.tensors
    }
    arrays = {s.name: np.zeros(rows[s.name], numpy_dtype(s.dtype)) for s in made.tensors}
    result = simulate(made, arrays, order=order, seed=1)
    return tuple(d.code for d in result.findings)


def sizes_of(made: Program, number: int) -> dict[str, int]:
    """Sizes of a trial; ``B`` of the family that has it counts tiles of rows."""
    m, k = (SIZES[name][number] for name in ("M", "K"))
    for cluster in made.find(Cluster):
        m, k = cluster.size * (1 + number % 2), min(k, 9)
    if made.find(Barrier):
        k = -(-k // 64) * 64  # whole pairs of columns: the guard of rings that are made by hand
    buffers = made.find(Smem)
    return {"M": m, "K": k, "B": -(-m // buffers[0].shape[0]) if buffers else 1}


@pytest.mark.parametrize("family", FAULTS, ids=lambda f: f.__name__)
def test_valid_schedules_run_without_findings(family) -> None:  # type: ignore[no-untyped-def]
    for seed in range(3):
        made = program(family(Random(seed), None))
        for number, order in enumerate(("late", "random", "early")):
            assert findings(made, sizes_of(made, number), order) == ()


@pytest.mark.parametrize("seed", range(40))
def test_valid_schedules_are_not_rejected(seed: int) -> None:
    assert errors(program(valid(seed).text)) == ()


@pytest.mark.parametrize("family", FAULTS, ids=lambda f: f.__name__)
def test_a_fault_changes_the_text(family) -> None:  # type: ignore[no-untyped-def]
    right = {family(Random(seed), None) for seed in range(400)}
    for fault in FAULTS[family]:
        wrong = [family(Random(seed), fault) for seed in range(6)]
        assert not right & set(wrong), fault
        program(wrong[0])


def test_company_changes_no_run() -> None:
    """Bystanders are right themselves: their families run with them as without."""
    dressed_ = (valid(seed) for seed in range(60))
    chosen = [g.text for g in dressed_ if "aside = pipeline" in g.text and "wgmma" not in g.text]
    for text in chosen[:4]:
        made = program(text)
        assert findings(made, sizes_of(made, 0), "random") == ()


def test_texts_are_as_many_as_are_asked_for() -> None:
    for make in (valid, unsafe):
        found = different(make, 300)
        assert len({g.text for g in found}) == 300


def test_generators_are_deterministic() -> None:
    assert [valid(s) for s in range(5)] == [valid(s) for s in range(5)]
    assert [unsafe(s).fault for s in range(50)] != [None] * 50
    assert valid(3).fault is None


def test_verdicts_are_counted_by_family_and_fault() -> None:
    hang = next(g for g in map(unsafe, range(200)) if g.fault == "nobody begins")
    row = verdict(hang)
    assert (row["status"], row["family"]) == ("rejected", "turns")
    assert counted([row, row]) == {"turns: nobody begins": {"rejected": 2}}
