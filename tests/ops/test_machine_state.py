"""Statements about the machine: clocks, sleeping, traps, registers, the place in the grid."""

from __future__ import annotations

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from tests.ops.schedules import accepted, cuda, finding, message, program, run

PARAMS = "y: Tensor[i32, 4, 8], t: Tensor[i64, 4, 8]"


def tensors() -> dict[str, np.ndarray]:
    return {"y": np.zeros((4, 8), np.int32), "t": np.zeros((4, 8), np.int64)}


PLACE = """
store(y[b, 0], block_index())
store(y[b, 1], grid_size())
store(y[b, 2], smid())
"""


def test_the_place_in_the_grid() -> None:
    made = accepted(PLACE, "b = grid(4)", params=PARAMS)
    found = tensors()
    run(made, found)
    np.testing.assert_array_equal(found["y"][:, :3], [[b, 4, b] for b in range(4)])
    text = cuda(made)
    assert "(int)gridDim.x" in text
    assert "%%smid" in text


TIME = """
before = clock()
nanosleep(100)
n = 3
while n > 0:
    nanosleep(n * 10)
    n -= 1
if lane() == 0:
    store(t[0, 0], clock() - before)
    store(t[0, 1], globaltimer())
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
def test_time_goes_on(target: str) -> None:
    made = accepted(TIME, params=PARAMS, target=target)
    found = tensors()
    run(made, found)
    assert 0 < found["t"][0, 0] < found["t"][0, 1]
    text = cuda(made)
    for word in ("%%clock64", "%%globaltimer", "nanosleep.u32"):
        assert word in text


def test_every_read_of_time_is_made_once() -> None:
    body = "a = clock() * 2 + clock()\nif lane() == 0:\n    store(t[0, 0], a)"
    assert cuda(accepted(body, params=PARAMS)).count("= read_clock()") == 2


@pytest.mark.parametrize(
    ("body", "threads"),
    [("trap(lane() > 29)", 2), ("trap()", 32), ("if lane() < 4:\n    trap(lane() != 1)", 3)],
)
def test_a_trap_that_is_reached_is_a_finding(body: str, threads: int) -> None:
    made = accepted(body, params=PARAMS)
    assert finding(made, tensors()).startswith(f"CK597: {threads} threads trap")
    assert 'asm volatile("trap;")' in cuda(made)


def test_a_trap_that_is_not_reached_changes_nothing() -> None:
    run(accepted("trap(lane() > 31)\ntrap(False)", params=PARAMS), tensors())


REGISTERS = """
with load:
    setmaxnreg("dec", 40)
    cta_sync()
with math:
    cta_sync()
    setmaxnreg("inc", 216)
    setmaxnreg("dec", 64)
"""
ROLES = "load = role(warpgroups=1)\nmath = role(warpgroups=1)\nlaunch(min_blocks=2)"


def test_registers_move_in_the_course_of_a_role() -> None:
    made = program(REGISTERS, ROLES, params=PARAMS)
    run(made, tensors())
    text = compile_program(made).source
    for line in ("dec.sync.aligned.u32 40", "inc.sync.aligned.u32 216", "dec.sync.aligned.u32 64"):
        assert f"setmaxnreg.{line}" in text


@pytest.mark.parametrize(
    ("body", "role", "said"),
    [
        ("nanosleep(-1)", "warps=1", "ns must be in [0, 1000000], got -1"),
        ("nanosleep(clock())", "warps=1", "ns must be i32 or u32"),
        ("trap(3)", "warps=1", "condition must be a bool"),
        ("setmaxnreg('inc', 100)", "warpgroups=1", "count must be a multiple of 8, got 100"),
        ("setmaxnreg('inc', 300)", "warpgroups=1", "count must be in [24, 256], got 300"),
        ("setmaxnreg('set', 96)", "warpgroups=1", "action must be one of inc, dec"),
        ("setmaxnreg('dec', 96)", "warps=1", "cannot run in a warp"),
    ],
)
def test_operands_are_checked(body: str, role: str, said: str) -> None:
    assert said in message(body, role=role, params=PARAMS)


def test_older_targets_have_no_setmaxnreg() -> None:
    said = message("setmaxnreg('dec', 96)", role="warpgroups=1", params=PARAMS, target="sm_80")
    assert "setmaxnreg does not exist on sm_80" in said
