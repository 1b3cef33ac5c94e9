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
        pytest.param(LOCK, "M", "silent", id="a lock that somebody holds"),
    ],
)
def test_a_loop_that_waits_for_another_cta(body: str, extent: str, expected: str) -> None:
    assert said(body, extent) == expected, found(verdict(WAIT.format(extent=extent, body=body)))
