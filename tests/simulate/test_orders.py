"""A right program gives the same bits whatever the order, the seed, and however CTAs follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cake.kernels import ScheduleFile, poisoned, scalars, temporaries
from cake.lang.elaborate import parse
from cake.simulate import ORDERS, Options, simulate, simulate_chain
from tests.kernels.cases import Trial, files
from tests.simulate.generated import arguments, schedule
from tests.simulate.programs import arrays, run

SMALL: dict[str, dict[str, int]] = {
    "attention": {"B": 1, "H": 2, "Hkv": 1, "Lq": 65, "Lk": 70, "D": 24},
    "gemm": {"M": 65, "N": 136, "K": 136},
    "kmeans_assign": {"B": 1, "N": 65, "K": 130, "D": 24},
    "kmeans_update": {"B": 1, "N": 40, "K": 9, "D": 24},
    "rmsnorm": {"M": 2, "D": 200},
    "softmax": {"M": 2, "N": 200},
}
ORDER_FREE = "exact_integers"
"""Sums of these are exact, so that atomics may come in any order."""

FEW = [Options(order="late"), Options(order="early"), Options(order="random", seed=1)]
OPTIONS = [
    *FEW,
    *(Options(order=name) for name in ORDERS if name not in ("late", "early")),
    Options(order="early", concurrent=True),
    Options(order="random", concurrent=True, seed=9),
    Options(order="late", resident=1),
]
SLOW = {
    "gemm/sm_80_any": {"M": 17, "N": 24, "K": 40},
    "kmeans_assign/sm_80_simt": {"B": 1, "N": 9, "K": 10, "D": 8},
    "kmeans_update/sm_80": SMALL["kmeans_update"],
    "kmeans_update/sm_90a_deterministic": SMALL["kmeans_update"],
}
"""Files with many threads that do without asynchronous engines: a few options tell."""


def made(workload: str, file: ScheduleFile) -> Trial:
    shape = SLOW.get(f"{workload}/{file.name}", SMALL[workload])
    return Trial(workload=workload, file=file, shape=shape, family=ORDER_FREE)


TRIALS = [made(workload, file) for workload, file in files() if workload in SMALL]


@pytest.mark.parametrize("trial", TRIALS, ids=[t.label for t in TRIALS])
def test_shipped_schedules_do_not_depend_on_the_order(trial: Trial) -> None:
    programs, instance, inputs = trial.programs(), trial.problem(), trial.inputs()
    numbers = {n: v for p in programs for n, v in scalars(p, instance).items()}
    needed = temporaries(programs, instance)
    results = []
    for options in FEW if f"{trial.workload}/{trial.file.name}" in SLOW else OPTIONS:
        outputs = trial.garbage()
        scratch = {t.name: poisoned(t.shape, t.dtype) for t in needed}
        found = simulate_chain(
            programs,
            {**inputs, **outputs, **scratch},
            numbers,
            outputs=outputs,
            temporaries=scratch,
            options=options,
        )
        assert found.ok, (options, [d.message for d in found.findings])
        results.append({name: array.tobytes() for name, array in outputs.items()})
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_generated_programs_do_not_depend_on_the_order(first: int) -> None:
    ran = 0
    for seed in range(first, first + 20):
        made = parse(schedule(seed), f"seed{seed}").program()
        results: list[Any] = []
        for order in ("late", "early", "random"):
            tensors, numbers = arguments()
            found = simulate(made, tensors, numbers, order=order, max_steps=4000)
            if order == "late" and any(d.code == "CK510" for d in found.findings):
                break  # a random loop that does not end
            assert found.ok, (seed, order, [d.message for d in found.findings])
            results.append(tensors["seen"])
        else:
            ran += 1
            np.testing.assert_array_equal(results[0], results[1], err_msg=f"seed {seed}")
            np.testing.assert_array_equal(results[0], results[2], err_msg=f"seed {seed}")
    assert ran >= 12


def test_sums_of_floats_depend_on_the_order() -> None:
    """What the comparisons above would see."""
    body = """
math = role(warps=4)
with math as u:
    if lane() == 0:
        reduce_add(v[0], load(v[4 + u]))
"""
    values = np.zeros(128, np.float32)
    values[4:8] = [1e8, -1e8, 1, 0]
    sums = {order: run(body, {**arrays(), "v": values.copy()}, order=order) for order in ORDERS}
    assert {float(found["v"][0]) for found in sums.values()} == {0.0, 1.0}
