"""The GEMM for sm_100a and sm_103a, by one CTA a tile and by a pair: verified, simulated in every
order, built; and what goes wrong between the CTAs of a pair is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cake.codegen.compile import compile_program
from cake.kernels import ScheduleFile, bind, schedules
from cake.lang.elaborate import parse
from cake.lang.printer import print_program
from cake.simulate import ORDERS
from cake.verify import verify
from tests.kernels.cases import Trial

FILES = {f.name: f for f in schedules("gemm", "sm_100a") if f.written_for == "sm_100a"}
PAIR = FILES["sm_100a_2cta"]
SHAPES: dict[str, dict[str, int]] = {
    "tails, several tiles a CTA": {"M": 390, "N": 264, "K": 72},
    "many tiles of one slice": {"M": 270, "N": 776, "K": 8},
    "one row, one CTA of a pair idle": {"M": 1, "N": 264, "K": 200},
    "slices wrap": {"M": 129, "N": 136, "K": 520},
}
EXACT = "exact_integers"


def trial(file: ScheduleFile, shape: dict[str, int], **fields: Any) -> Trial:
    return Trial(workload="gemm", file=file, shape=shape, family=EXACT, **fields)


def edited(old: str, new: str, *more: tuple[str, str]) -> ScheduleFile:
    """The schedule for a pair with replacements in its text."""
    text = PAIR.text
    for a, b in ((old, new), *more):
        assert a in text
        text = text.replace(a, b)
    return replace(PAIR, text=text)


EVERY_ORDER = "tails, several tiles a CTA"
RUNS = [
    *((shape, "late") for shape in SHAPES if shape != EVERY_ORDER),
    *((EVERY_ORDER, order) for order in ORDERS),
]


@pytest.mark.parametrize(("shape", "order"), RUNS)
@pytest.mark.parametrize("name", FILES)
def test_products_in_every_order(name: str, shape: str, order: str) -> None:
    case = trial(FILES[name], SHAPES[shape])
    inputs = case.inputs()
    outputs, findings = case.simulate(inputs, order=order)
    assert not findings, [d.message for d in findings]
    assert case.judged(inputs, outputs).ok


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", FILES)
def test_accepted_and_built(name: str, target: str) -> None:
    found = {f.name: f for f in schedules("gemm", target)}
    (made,) = bind(found[name], trial(found[name], SHAPES["slices wrap"]).problem()).programs
    verdict = verify(made)
    assert verdict.status == "accepted", [d.message for d in verdict.diagnostics]
    compiled = compile_program(made)
    group = 2 if name == PAIR.name else 1
    for what in ("alloc", "dealloc", "relinquish_alloc_permit", "mma", "commit"):
        assert f"tcgen05.{what}.cta_group::{group}" in compiled.source
    assert f"cta_group::{3 - group}" not in compiled.source
    assert compiled.build.cubin


def test_the_printed_program_is_the_same_again() -> None:
    (made,) = trial(PAIR, SHAPES["slices wrap"]).programs()
    text = print_program(made)
    assert "pair=True" in text
    (again,) = parse(text).programs
    assert print_program(again) == text


VERIFIED = [
    pytest.param(
        edited(
            "            if cta_rank() == 0:\n                barrier_wait",
            "            barrier_wait",
        ),
        "CK450",
        id="the follower waits for what is told to the leader",
    ),
    pytest.param(edited("arrivals=8", "arrivals=4"), "CK456", id="only one epilogue is waited for"),
    pytest.param(
        edited("tmem_alloc(acc", "if cta_rank() == 0:\n            tmem_alloc(acc"),
        "CK372",
        id="one CTA allocates",
    ),
    pytest.param(
        edited(
            "                tcgen05_mma(acc",
            "                if cta_rank() == 0:\n                    tcgen05_mma(acc",
        ),
        "CK372",
        id="the leader is chosen by hand",
    ),
    pytest.param(
        edited("consumer=math, pair=True", "consumer=math"), "CK465", id="a ring for each CTA"
    ),
]
SIMULATED = [
    pytest.param(
        edited("tmem_alloc(acc", "if cta_rank() == 0:\n            tmem_alloc(acc"),
        "CK520",
        id="one CTA allocates",
    ),
    pytest.param(
        edited("tmem_free(acc", "if cta_rank() == 0:\n            tmem_free(acc"),
        "CK521",
        id="one CTA frees",
    ),
    pytest.param(
        edited("consumer=math, pair=True", "consumer=math"), "CK501", id="a ring for each CTA"
    ),
    pytest.param(
        edited("range(KT):\n                with", "range(KT - cta_rank()):\n                with"),
        "CK505",
        id="the follower loads less",
    ),
]


@pytest.mark.parametrize(("file", "code"), VERIFIED)
def test_the_verifier_rejects(file: ScheduleFile, code: str) -> None:
    (made,) = trial(file, SHAPES["slices wrap"]).programs()
    assert code in {d.code for d in verify(made).diagnostics}


@pytest.mark.parametrize(("file", "code"), SIMULATED)
def test_the_simulator_finds(file: ScheduleFile, code: str) -> None:
    case = trial(file, SHAPES["slices wrap"])
    inputs = case.inputs()
    _, findings = case.simulate(inputs, order="late-newest")
    assert [d.code for d in findings] == [code]


SLOW_DRAIN = 0
"""A seed that makes the epilogue of a follower the slow unit."""


def test_the_accumulator_is_taken_while_the_follower_still_drains_it() -> None:
    """Only the leader's epilogue is waited for. The other one reads what is being overwritten, or
    misses a phase and waits for ever."""
    broken = edited(
        "                    arrive(empty, half, peer=0)\n",
        "                    if cta_rank() == 0:\n                        arrive(empty, half)\n",
        ("arrivals=8", "arrivals=4"),
    )
    case = trial(broken, {"M": 512, "N": 520, "K": 72})
    inputs, programs = case.inputs(), case.programs()
    (made,) = programs
    assert verify(made).status == "rejected"
    _, (race,) = case.simulate(inputs, programs)
    _, (deadlock,) = case.simulate(inputs, programs, "slow-unit", SLOW_DRAIN)
    assert (race.code, deadlock.code) == ("CK598", "CK505")
    assert [r.message for r in race.related] == [
        "a product into them is started here by CTA 0 role math[0]"
    ]
    assert "CTA 1 role drain[0] waits for full" in deadlock.message


REFUSED = [
    pytest.param(edited("cluster(2)", "cluster(4)"), "cluster of 2", id="a cluster of four"),
    pytest.param(edited("    cluster(2)\n", ""), "cluster of 2", id="no cluster"),
    pytest.param(edited("HALF = BN // 2", "HALF = BN"), "each of 2 CTAs", id="all of B in each"),
    pytest.param(
        edited("word = smem", "more = tmem(f32, (BM, 32))\n    word = smem"),
        "all tensor memory",
        id="some of it paired",
    ),
    pytest.param(
        edited("consumer=math, pair=True", "consumer=math, pair=True, multicast=True"),
        "multicast or paired",
        id="both",
    ),
]


@pytest.mark.parametrize(("file", "said"), REFUSED)
def test_the_front_end_refuses(file: ScheduleFile, said: str) -> None:
    with pytest.raises(Exception, match=said):
        trial(file, SHAPES["slices wrap"]).programs()
