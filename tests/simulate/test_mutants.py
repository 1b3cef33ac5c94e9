"""Mutants of the shipped schedules are noticed: by a finding, or by a wrong result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pytest

from cake.diag import CakeError
from cake.ir.program import Program
from cake.kernels import poisoned, scalars, temporaries
from cake.simulate import ORDERS, Options, Simulation, simulate_chain
from tests.kernels.cases import Trial, files
from tests.simulate.mutants import Mutant, mutants

SHAPES: dict[str, dict[str, int]] = {
    "attention/sm_90a": {"B": 1, "H": 1, "Hkv": 1, "Lq": 65, "Lk": 700, "D": 64},
    "gemm/sm_80": {"M": 20, "N": 72, "K": 328},
    "gemm/sm_90a": {"M": 130, "N": 264, "K": 520},
    "gemm/sm_90a_small_m": {"M": 20, "N": 72, "K": 1160},
    "kmeans_assign/sm_80": {"B": 1, "N": 40, "K": 200, "D": 64},
    "kmeans_assign/sm_90a": {"B": 1, "N": 300, "K": 520, "D": 64},
    "kmeans_update/sm_80": {"B": 1, "N": 100, "K": 9, "D": 24},
    "kmeans_update/sm_90a_deterministic": {"B": 1, "N": 1100, "K": 9, "D": 24},
    "rmsnorm/sm_80": {"M": 2, "D": 200},
    "softmax/sm_80": {"M": 2, "N": 200},
}
"""Small, but every ring is filled more often than it has stages."""
FAMILY = "exact_integers"

FIRST_SLOT = "the first slot of a ring is stage 0"
ONE_FILL = "the ring is filled once and has one stage"
LAST_USE = "nothing fills the slot again before the kernel ends"
TURNS = "the barrier only makes warpgroups take turns, for speed"
IDIOM = "a read before an asynchronous write: the hand-over of the slot is enough on known hardware"
EQUIVALENT: dict[tuple[str, str, str, int], str] = {
    (
        "attention/sm_90a",
        "wrong stage of Q",
        "wgmma(s, Q[sq][wg * 64 : wg * 64 + 64], K[sk].T, init=True)",
        0,
    ): ONE_FILL,
    (
        "attention/sm_90a",
        "wrong stage of K",
        "wgmma(s, Q[sq][wg * 64 : wg * 64 + 64], K[sk].T, init=True)",
        0,
    ): FIRST_SLOT,
    (
        "attention/sm_90a",
        "wrong stage of Q",
        "wgmma(t, Q[sq][wg * 64 : wg * 64 + 64], K[sk].T, init=True)",
        0,
    ): ONE_FILL,
    ("attention/sm_90a", "dropped", "named_sync(turn, wg)", 0): TURNS,
    ("attention/sm_90a", "dropped", "release(qs, sq)", 0): LAST_USE,
    ("attention/sm_90a", "dropped", "release(vs, sv)", 1): LAST_USE,
    ("gemm/sm_90a_small_m", "wrong stage of W", "wgmma(acc, W[last], X[last].T)", 0): FIRST_SLOT,
    ("gemm/sm_90a_small_m", "wrong stage of X", "wgmma(acc, W[last], X[last].T)", 0): FIRST_SLOT,
    ("gemm/sm_90a_small_m", "dropped", "release(ring, last)", 1): LAST_USE,
    (
        "kmeans_assign/sm_80",
        "wrong stage of C",
        "cp_async(C[s][part : part + PART], c[b, s * BN + part, 0], bytes=COPY)",
        0,
    ): FIRST_SLOT,
    (
        "kmeans_assign/sm_80",
        "wrong stage of Q",
        "cp_async(Q[s][part : part + PART], csq[b, s * BN + part], bytes=4)",
        0,
    ): FIRST_SLOT,
    ("kmeans_assign/sm_90a", "dropped", "named_sync(turn, wg)", 0): TURNS,
    ("kmeans_assign/sm_90a", "dropped", "fence_async()", 0): IDIOM,
}
"""Mutants that compute the same, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A mutant of a file."""

    name: str
    trial: Trial
    mutant: Mutant

    @property
    def label(self) -> str:
        return f"{self.name}:{self.mutant.line}-{self.mutant.kind}"

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.name, self.mutant.kind, self.mutant.was, self.mutant.nth

    @property
    def excuse(self) -> str | None:
        return EQUIVALENT.get(self.key)

    def programs(self) -> tuple[Program, ...]:
        file = replace(self.trial.file, text=self.mutant.text)
        return replace(self.trial, file=file).programs()


def cases() -> Iterator[Case]:
    """Every mutant of the files that have a shape here."""
    for workload, file in files():
        name = f"{workload}/{file.name}"
        if name in SHAPES:
            trial = Trial(workload=workload, file=file, shape=SHAPES[name], family=FAMILY)
            for mutant in mutants(file.text):
                yield Case(name=name, trial=trial, mutant=mutant)


CASES = list(cases())


def run(
    trial: Trial, programs: Sequence[Program], order: str
) -> tuple[dict[str, bytes], Simulation]:
    """Bits of the outputs, and what the simulator says. One CTA has all persistent tiles."""
    instance, outputs = trial.problem(), trial.garbage()
    scratch = {t.name: poisoned(t.shape, t.dtype) for t in temporaries(programs, instance)}
    found = simulate_chain(
        programs,
        {**trial.inputs(), **outputs, **scratch},
        {n: v for p in programs for n, v in scalars(p, instance).items()},
        outputs=outputs,
        temporaries=scratch,
        options=Options(order=order, resident=1),
    )
    return {name: array.tobytes() for name, array in outputs.items()}, found


@cache
def right(name: str) -> dict[str, bytes]:
    """The outputs of the schedule as shipped."""
    trial = next(c.trial for c in CASES if c.name == name)
    outputs, found = run(trial, trial.programs(), "late")
    assert found.ok
    return outputs


@pytest.mark.parametrize("case", CASES, ids=[c.label for c in CASES])
def test_the_mutant_is_noticed(case: Case) -> None:
    try:
        programs = case.programs()
    except CakeError:
        return  # the elaborator refuses it
    orders = ["late"] if case.excuse else list(ORDERS)
    noticed = False
    for order in orders:
        outputs, found = run(case.trial, programs, order)
        noticed = not found.ok or outputs != right(case.name)
        if noticed:
            break
    assert noticed == (case.excuse is None), f"{case.mutant.was}: {case.excuse}"


def test_mutants_of_every_kind_exist_and_every_excuse_is_used() -> None:
    kinds = {c.mutant.kind.split(" of ")[0] for c in CASES}
    assert kinds == {
        "added to nothing",
        "dropped",
        "one product too many in flight",
        "wrong offset",
        "wrong stage",
    }
    dropped = {c.mutant.was.strip().split("(")[0] for c in CASES if c.mutant.kind == "dropped"}
    assert {"release", "wgmma_wait", "cp_async_wait", "fence_async", "unit_sync"} <= dropped
    assert EQUIVALENT.keys() <= {c.key for c in CASES}
