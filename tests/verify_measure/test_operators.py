"""Mutation operators: what they change, on a schedule small enough to see it."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.verifier.data_operators import OPERATORS, operator
from benchmarks.verifier.mutants import Mutant, mutants, sample
from benchmarks.verifier.subjects import Subject, subject
from cake.lang.elaborate import parse
from cake.lang.printer import print_program

TEXT = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[bf16, 64, 64], z: Tensor[f32, "M"]):
    require(K > 0)
    KT = cdiv(K, 64)
    X = smem(bf16, (64, 64), stages=3, swizzle=128)
    E = smem(bf16, (64, 64), swizzle=128)
    P = smem(f32, (128,))
    math = role(warpgroups=1)
    load_ = role(warps=1)
    ring = pipeline(X, producer=load_, consumer=math)
    turn = named_barrier(threads=256, slots=2)
    with load_:
        for k in range(KT):
            with ring.fill() as s:
                tma_load(X[s], x[0, k * 64])
    with math:
        acc = fragment(f32, (64, 64))
        first = wait(ring)
        wgmma(acc, X[first], X[first].T, init=True)
        last = first
        for k in range(1, KT):
            s = wait(ring)
            wgmma(acc, X[s], X[s].T)
            wgmma_wait(1)
            release(ring, last)
            last = s
        wgmma_wait(0)
        release(ring, last)
        stmatrix(E, cast(acc, bf16))
        fence_async()
        unit_sync()
        tma_store(y[0, 0], E)
        tma_store_commit()
        tma_store_wait(0)
        if thread() < M:
            store(z[thread()], 1.0, mask=thread() < M)
        for i in range(4):
            store(P[thread()], 1.0)
"""

EXPECTED = {
    "drop fence": "-fence_async()",
    "duplicate fence": "+fence_async()",
    "swap fence and barrier": "+unit_sync() -unit_sync()",
    "drop commit": "-tma_store_commit()",
    "drop wait": "-wgmma_wait(1)",
    "wait distance + 1": "-wgmma_wait(1) +wgmma_wait(2)",
    "wait distance - 1": "-wgmma_wait(1) +wgmma_wait(0)",
    "stages - 1": "stages=2, swizzle=128)",
    "drop ring step": "-release(ring, last)",
    "drop fill or use": "-with ring.fill() as s:",
    "barrier count + 1 warp": "threads=288, slots=2)",
    "role + 1 unit": "+load_ = role(warps=2)",
    "drop barrier": "-unit_sync()",
    "shrink copy": "+tma_store(y[0, 0], E[0 : 32])",
    "move operand slice": "+wgmma(acc, X[s][:, 16 : 80], X[s].T)",
    "other stage": "X[(s + 1) % 3]",
    "move coordinate": "x[1, k * 64]",
    "drop mask": "+store(z[thread()], 1.0)",
    "drop init": "+wgmma(acc, X[first], X[first].T)",
    "add init": "+wgmma(acc, X[s], X[s].T, True)",
    "stepping loop begins later": "+for k in range(2, KT, 1):",
    "loop ends later": "+for i in range(0, 5, 1):",
    "shift comparison": "+if thread() <= M:",
    "swizzle of one side": "+stmatrix(E_other, cast(acc, bf16))",
    "other slot variable": "+release(ring, s)",
    "stepping loop ends later": "+for k in range(0, KT + 1, 1):",
    "not in the first round": "+if k != 1: +wgmma_wait(1)",
    "fill or use twice": "+with ring.fill() as s: +tma_load(X[s], x[0, k * 64])",
    "mask too far": "mask=thread() <= M)",
    "part of another unit or lane": "+store(P[0], 1.0)",
    "first stage always": "+wgmma(acc, X[0], X[s].T)",
    "smaller buffer": "+E = smem(bf16, (32, 64), swizzle=128)",
    "exchange producer and consumer": "producer=math, consumer=load_)",
    "drop guard": "-require(K > 0)",
    "drop condition": "-if thread() < M:",
}
"""A piece of the difference that one of an operator's mutants makes, spaces and hunks left out."""


@pytest.fixture(scope="module")
def made() -> list[Mutant]:
    text = print_program(parse(TEXT, "kernel.py").programs[0])
    return list(mutants(Subject(name="kernel", workload="", text=text, shapes=())))


def test_copies_of_one_slip_are_few() -> None:
    copied = TEXT.replace("        for i in range(4):\n", "        for i in static_range(4):\n")
    text = print_program(parse(copied, "kernel.py").programs[0])
    own = Subject(name="kernel", workload="", text=text, shapes=())
    stores = [m for m in mutants(own, copies=2) if "-        store(P[" in m.diff()]
    kinds = Counter(m.operator for m in stores)
    assert kinds
    assert max(kinds.values()) == 2


def test_statements_that_commute_are_told_from_those_that_do_not(made: list[Mutant]) -> None:
    def reasons(name: str) -> set[str | None]:
        return {m.equivalent for m in made if m.operator == name}

    # A wait and the release that relies on it; a commit and its copies.
    assert None in reasons("move wait down")
    assert reasons("move commit up") == {None}
    # The slot that is released is replaced next.
    assert None in reasons("move ring step down")
    softmax = [m for m in mutants(subject("softmax/sm_80")) if m.operator == "move barrier down"]
    assert any(m.equivalent and "+        whole = " in m.diff() for m in softmax), softmax


def difference(mutant: Mutant) -> str:
    lines = [line for line in mutant.diff().splitlines() if not line.startswith("@@")]
    return " ".join(line[0] + line[1:].strip() for line in lines)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_operator_makes_the_slip_it_is_named_for(name: str, made: list[Mutant]) -> None:
    own = [difference(m) for m in made if m.operator == name]
    assert any(EXPECTED[name] in d for d in own), own


def test_every_mutant_differs_from_all_others_and_knows_its_line(made: list[Mutant]) -> None:
    assert len({m.text for m in made}) == len(made)
    original = made[0].original.splitlines()
    for m in made:
        assert m.text != m.original
        removed = [line[1:] for line in m.diff().splitlines() if line.startswith("-")]
        inside = {original[line - 1] for line in m.lines}
        assert m.places
        assert inside & set(removed) or not removed or m.operator == "leave bracket early", m


def test_lines_of_a_mutant_lead_back_to_the_original(made: list[Mutant]) -> None:
    dropped = next(m for m in made if m.operator == "drop fence")
    (fence,) = dropped.lines
    last = len(dropped.text.splitlines())
    assert dropped.original_lines(fence - 1) == {fence - 1}
    assert dropped.original_lines(last) == {last + 1}


def test_a_sample_is_spread_over_operators_and_the_same_every_time(made: list[Mutant]) -> None:
    count = len({m.operator for m in made})
    chosen = sample(made, count)
    assert len({m.operator for m in chosen}) == count
    assert [m.key for m in sample(made, count)] == [m.key for m in chosen]
    assert len(sample(made, 10_000)) == len(made)


def test_operators_have_different_names() -> None:
    assert len({o.name for o in OPERATORS}) == len(OPERATORS)
    assert operator("wait distance - 1").equivalent
    assert not operator("wait distance + 1").equivalent
    assert operator("stages - 1").only_slack
    assert operator("move coordinate").values
