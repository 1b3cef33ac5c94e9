"""Waiting for other CTAs."""

from __future__ import annotations

import pytest

from .examples import found, verdict

WAIT = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32], flags: Tensor[i32, "F"],
           count: Tensor[i32, 1]):
    require(F >= M)
    require(M > 0)
    m = grid({extent})
    S = smem(i32, (1,))
    r = role(warps=1)
    with r:
        if m < M:
            store(y[m, lane()], load(x[m, lane()]))
        fence()
        unit_sync()
        {body}
"""
POLL = "while load(flags[{place}], order='acquire') == 0:\n            nanosleep(20)"


def said(body: str, extent: str = "M") -> str:
    """``rejected`` by the rule, ``open`` or ``silent``."""
    v = verdict(WAIT.format(extent=extent, body="store(flags[m], 1)\n        " + body))
    if "CK377" in {d.code for d in v.diagnostics}:
        return "rejected"
    return "open" if any("have started" in u for u in v.uncovered) else "silent"


def guarded(poll: str, condition: str) -> str:
    return f"if {condition}:\n            " + poll.replace("\n", "\n    ")


LOCK = """old = 1
        while old != 0:
            old = atomic_cas(count[0], 0, 1, order="acquire")"""
OWN = """v = 8.0
        while v > 1.0:
            store(y[m, lane()], v * 0.5)
            v = load(y[m, 0])"""
COUNTED = """n = load(flags[M - 1])
        turn = 0
        total = 0
        while turn < n:
            turn = turn + 1
            total = total + load(flags[0])"""
SHARED = """store(S[0], 0)
        unit_sync()
        while load(S[0]) == 0:
            if lane() == 0:
                store(S[0], load(flags[M - 1], order="acquire"))
            unit_sync()"""
TICKET = """ticket = 0
        if lane() == 0:
            ticket = atomic_add(count[0], 1)
        ticket = shfl(ticket, 0)
        if ticket > 0:
            while load(flags[ticket - 1], order="acquire") == 0:
                nanosleep(20)"""


@pytest.mark.parametrize(
    ("body", "extent", "expected"),
    [
        pytest.param(POLL.format(place="M - 1"), "M", "rejected", id="for the last CTA"),
        pytest.param(guarded(POLL.format(place="m + 1"), "m + 1 < M"), "M", "rejected", id="next"),
        pytest.param(guarded(POLL.format(place="m - 1"), "m > 0"), "M", "open", id="previous"),
        pytest.param(TICKET, "M", "open", id="an earlier ticket"),
        pytest.param(POLL.format(place="0"), "16", "silent", id="a grid of 16"),
        pytest.param(POLL.format(place="0"), "4096", "rejected", id="a grid of 4096"),
        pytest.param(OWN, "M", "silent", id="what the loop itself stores"),
        pytest.param(COUNTED, "M", "silent", id="a count that was read before"),
        pytest.param(SHARED, "M", "rejected", id="through shared memory"),
        pytest.param(LOCK, "M", "silent", id="a lock that somebody holds"),
    ],
)
def test_a_loop_that_waits_for_another_cta(body: str, extent: str, expected: str) -> None:
    assert said(body, extent) == expected, found(verdict(WAIT.format(extent=extent, body=body)))


LAST = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 64], y: Tensor[f32, "M", 64], parts: Tensor[f32, "M", 64],
           count: Tensor[i32, 1]):
    m = grid(M)
    last = smem(i32, (1,))
    r = role(warps=2)
    with r as u:
        i = u * 32 + lane()
        store(parts[m, i], load(x[m, i]))
        role_sync()
        if u == 0 and lane() == 0:
            store(last[0], atomic_add(count[0], 1, order="acq_rel"))
        role_sync()
        if load(last[0]) == M - 1:
            total = 0.0
            for k in range(M):
                total = total + load(parts[k, i], cache="cg")
            store(y[m, i], total)
"""
ORDER = ', order="acq_rel"'
STORED = "load(x[m, i]))\n"
DRAWN = "        if u == 0 and lane() == 0:\n"
TAKEN = "== M - 1:\n"


def lacks(*changes: tuple[str, str]) -> set[str]:
    """The codes about flags for the schedule of the last CTA with replacements."""
    text = LAST
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return {d.code for d in verdict(text).diagnostics} & {"CK378", "CK379"}


FENCED = (STORED, STORED + "        fence()\n")
ACQUIRED = (TAKEN, TAKEN + "            fence()\n")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([], set(), id="acquire and release in the atomic"),
        pytest.param([(ORDER, ""), FENCED, ACQUIRED], set(), id="fences instead"),
        pytest.param([(ORDER, ""), FENCED], {"CK379"}, id="no acquire"),
        pytest.param([(ORDER, ', order="release"')], {"CK379"}, id="release only"),
        pytest.param([(ORDER, ', order="acquire"')], {"CK378"}, id="acquire only"),
        pytest.param(
            [(ORDER, ', order="acq_rel", scope="cta"')], {"CK378"}, id="too small a scope"
        ),
        pytest.param(
            [(ORDER, ""), (STORED, STORED + '        fence("cta")\n'), ACQUIRED],
            {"CK378"},
            id="a fence within the CTA",
        ),
        pytest.param(
            [(ORDER, ""), (DRAWN, DRAWN + "            fence()\n"), ACQUIRED],
            set(),
            id="the gathering thread fences for all",
        ),
        pytest.param([("        role_sync()\n", "")], {"CK378"}, id="not gathered"),
        pytest.param(
            [("        role_sync()\n", "        unit_sync()\n")], {"CK378"}, id="a warp is gathered"
        ),
        pytest.param(
            [("        role_sync()\n", "        unit_sync()\n"), ("u == 0 and lane()", "lane()")],
            set(),
            id="each warp counts for itself",
        ),
        pytest.param(
            [("parts[k, i]", "parts[m, i]"), (ORDER, "")], set(), id="only what the CTA stored"
        ),
    ],
)
def test_data_behind_a_counter(changes: list[tuple[str, str]], expected: set[str]) -> None:
    assert lacks(*changes) == expected


RELAY = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[i32, "M", 32], y: Tensor[i32, "M", 32], flags: Tensor[i32, "M"]):
    tiles = persistent(M)
    r = role(warps=1)
    with r:
        for m in tiles:
            v = load(x[m, lane()])
            if m > 0:
                while load(flags[m - 1], order="{take}") == 0:
                    nanosleep(20)
                v = v + load(y[m - 1, lane()])
            store(y[m, lane()], v)
            unit_sync()
            if lane() == 0:
                store(flags[m], 1, order="{give}")
"""


@pytest.mark.parametrize(
    ("give", "take", "expected"),
    [
        ("release", "acquire", set()),
        ("relaxed", "acquire", {"CK378"}),
        ("release", "relaxed", {"CK379"}),
    ],
)
def test_data_behind_a_polled_flag(give: str, take: str, expected: set[str]) -> None:
    v = verdict(RELAY.format(give=give, take=take))
    assert {d.code for d in v.diagnostics} == expected, found(v)


TICKETS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[i32, "M", 64], y: Tensor[i32, "M", 64], ticket: Tensor[i32, 1]):
    tiles = persistent(M)
    r = role(warps=1)
    with r:
        tile = 0
        if lane() == 0:
            tile = atomic_add(ticket[0], 1)
        tile = shfl(tile, 0)
        while tile < M:
            for d in range(lane(), 64, 32):
                store(y[tile, d], load(y[tile, d]) + load(x[tile, d]))
            if lane() == 0:
                tile = atomic_add(ticket[0], 1)
            tile = shfl(tile, 0)
"""


def test_a_ticket_keeps_ctas_apart() -> None:
    v = verdict(TICKETS)
    assert not {d.code for d in v.diagnostics} & {"CK377", "CK378", "CK379"}, found(v)
