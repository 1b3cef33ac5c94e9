"""Traces of roles at concrete sizes, and the token run that finds circles among them."""

from __future__ import annotations

from itertools import permutations

import pytest

from cake.ir.program import Program
from cake.verify.concrete import Sample, samples
from cake.verify.context import Context
from cake.verify.tokens import Actor, TokenRun, actors
from cake.verify.trace import Event, Undecided, events

from .examples import programs

TURNS = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    math = role(warpgroups=2)
    xs = pipeline(X, producer=copier, consumer=math)
    turn = named_barrier(threads=256, slots=2)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                tma_load(X[s], x[m, 0])
    with math as wg:
        v = 0.0
        {first}
        for m in range(M):
            named_sync(turn, wg)
            with xs.use() as s:
                v = load(X[s][0, lane()])
                fence_async()
            named_arrive(turn, 1 - wg)
            if wg == 0 and warp() == 0:
                store(y[m, lane()], v)
"""


def _declared(first: str) -> Program:
    return programs(TURNS.format(first=first))[0]


def _steps(program: Program, sample: Sample) -> dict[Actor, list[Event]]:
    return {a: events(program, a.role, sample, a.unit) for a in actors(program)}


def _first_sample(program: Program) -> Sample:
    found = list(samples(program, Context(program).integers))
    return max(found, key=lambda s: s.sizes.get("M", 0))


def test_taking_turns_ends_if_somebody_begins() -> None:
    program = _declared("if wg == 1:\n            named_arrive(turn, 0)")
    assert TokenRun(program, _steps(program, _first_sample(program))).run() == ()


def test_taking_turns_hangs_if_nobody_begins() -> None:
    program = _declared("pass")
    blocked = TokenRun(program, _steps(program, _first_sample(program))).run()
    assert {(b.actor.role, b.actor.unit) for b in blocked} >= {("math", 0), ("math", 1)}
    assert {b.event.what for b in blocked if b.actor.role == "math"} == {"turn[0]", "turn[1]"}


@pytest.mark.parametrize("first", ["pass", "if wg == 1:\n            named_arrive(turn, 0)"])
def test_the_order_of_actors_does_not_matter(first: str) -> None:
    program = _declared(first)
    steps = _steps(program, _first_sample(program))
    results = {
        frozenset((b.actor, b.event) for b in TokenRun(program, dict(order)).run())
        for order in permutations(steps.items())
    }
    assert len(results) == 1


def test_events_count_the_acquisitions_of_a_role() -> None:
    program = _declared("pass")
    sample = _first_sample(program)
    found = events(program, "copier", sample)
    n = sample.sizes["M"]
    assert [e.step for e in found if e.kind == "acquire"] == list(range(n))
    assert [e.kind for e in found[:2]] == ["acquire", "commit"]


def test_steps_that_depend_on_data_are_undecided() -> None:
    text = TURNS.format(first="pass")
    text = text.replace("range(M)", "range(cast(load(x[0, 0]), i32))")
    program = programs(text)[0]
    with pytest.raises(Undecided):
        events(program, "copier", _first_sample(program))
