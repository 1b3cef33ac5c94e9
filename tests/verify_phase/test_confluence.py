"""One run decides: its verdict against all interleavings, on small systems and real schedules."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from cake.lang.elaborate import parse
from cake.verify.phase import events as ev
from cake.verify.phase.events import System
from cake.verify.phase.expand import Expander
from cake.verify.phase.outcome import Outcome
from cake.verify.phase.run import run
from cake.verify.phase.scenarios import Chooser, Scenarios
from tests.verify_phase.explorer import Explored, Explorer, TooMany
from tests.verify_phase.schedules import EXCHANGE, PINGPONG, RAW, edited
from tests.verify_phase.systems import Maker

SYSTEMS = 300
SCENARIOS = 6


def agree(system: System, outcome: Outcome, explored: Explored) -> None:
    """What one run says holds for every order of events."""
    done = tuple(len(a.events) for a in system.actors)
    if outcome.doubt is not None:
        # Some event is in different phases, or the end depends on the order.
        assert not explored.certain or len(explored.ends) > 1
        return
    assert explored.certain
    if outcome.blocked:
        stuck = {b.state.index: b.state.position for b in outcome.blocked}
        assert explored.ends == {tuple(stuck.get(i, end) for i, end in enumerate(done))}
    else:
        assert explored.ends == {done}
    for entry in outcome.log:
        phased = isinstance(entry.event, ev.Wait | ev.Arrive | ev.Expect | ev.Meet)
        if phased:
            events = enumerate(entry.state.actor.events)
            at = next(i for i, e in events if e is entry.event)
            assert explored.phases[entry.state.index, at] == {entry.phase}
    if not any(isinstance(e, ev.ArriveWhenDone) for a in system.actors for e in a.events):
        # Completions that hardware signals publish less than they prove to have happened.
        races = [race for race, _ in outcome.races if race.kind == "unordered"]
        assert bool(races) == bool(explored.races)


@pytest.mark.parametrize("kind", ["ring", "mbarriers", "mixed"])
def test_random_systems(kind: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SYSTEMS):
        system: System = getattr(Maker(Random(seed)), kind)()
        outcome = run(system)
        try:
            agree(system, outcome, Explorer(system).explore())
        except TooMany:
            continue
        except AssertionError as error:
            raise AssertionError(f"{kind} {seed}") from error
        seen[verdict(outcome)] += 1
    # The comparison says something only if all verdicts occur.
    assert all(seen[v] for v in ("clean", "doubt", "blocked", "race")), seen


def verdict(outcome: Outcome) -> str:
    if outcome.doubt is not None:
        return "doubt"
    if outcome.blocked:
        return "blocked"
    return "race" if outcome.races else "clean"


SCHEDULES = {
    "raw": RAW,
    "raw, two stages": edited(RAW, ("slots=3", "slots=2"), ("% 3", "% 2"), ("// 3", "// 2")),
    "initial parity": edited(RAW, ("(n // 3 + 1) % 2", "n // 3 % 2")),
    "parity of the counter": edited(RAW, ("n // 3 % 2)", "n % 2)")),
    "one arrival": edited(RAW, ("arrivals=2", "arrivals=1")),
    "three arrivals": edited(RAW, ("arrivals=2", "arrivals=3")),
    "few bytes": edited(RAW, ("s, 128)", "s, 64)")),
    "ping-pong": PINGPONG,
    "ping-pong without return": edited(
        PINGPONG, ("            if m > 1:\n                named_sync(done, s)\n", "")
    ),
    "exchange": EXCHANGE,
    "exchange without return": edited(
        EXCHANGE, ("rank())\n            cluster_sync()\n", "rank())\n")
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    (program,) = parse(SCHEDULES[name], "example.py").programs
    expander = Expander(program)
    scenarios = Scenarios(expander)
    compared = 0
    for scenario in islice(scenarios.all(), SCENARIOS):
        system = expander.expand(scenario.ctas, Chooser([1]))
        try:
            explored = Explorer(system).explore()
        except TooMany:
            continue
        agree(system, run(system), explored)
        compared += 1
    assert compared > 1
