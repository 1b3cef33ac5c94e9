"""Statements: masks, loops, registers, variables."""

import numpy as np
import pytest

from cake.simulate import ORDERS
from tests.simulate.programs import arrays, finding, run

LANES = np.arange(32)


def of_a_warp(body: str, **options: str) -> np.ndarray:
    """What a body leaves in ``out``, stored per lane."""
    text = "math = role(warps=1)\nwith math as u:\n"
    text += "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    text += "\n    store(c[lane()], cast(out, i32))\n"
    given = {"c": np.zeros(32, np.int32), "n": np.arange(32, dtype=np.int32)}
    params = "c: Tensor[i32, 32], n: Tensor[i32, 32]"
    for order in ORDERS:
        found = run(text, {k: v.copy() for k, v in given.items()}, params=params, order=order)["c"]
    return found


def test_both_branches_run_under_their_masks() -> None:
    body = """
out = 0
if lane() < 20:
    out = 1
    if lane() % 2 == 0:
        out = out + 10
    else:
        out = out + 20
else:
    out = 2
"""
    expected = np.where(LANES < 20, 1 + np.where(LANES % 2 == 0, 10, 20), 2)
    np.testing.assert_array_equal(of_a_warp(body), expected)


def test_the_condition_is_the_one_before_the_branch() -> None:
    body = """
out = lane()
if out < 16:
    out = out + 100
else:
    out = 0
"""
    np.testing.assert_array_equal(of_a_warp(body), np.where(LANES < 16, LANES + 100, 0))


def test_threads_leave_a_while_loop_one_by_one() -> None:
    body = """
out = 0
i = lane()
while i > 0:
    out = out + i
    i = i - 3
"""
    expected = [sum(range(n, 0, -3)) for n in LANES]
    np.testing.assert_array_equal(of_a_warp(body), expected)


def test_a_thread_that_left_a_while_loop_stays_out() -> None:
    body = """
math = role(warps=1)
with math:
    store(v[lane()], select(lane() == 0, 3.0, 0.0))
    rounds = 0
    while load(v[lane()]) > 0.0:
        rounds = rounds + 1
        store(v[0], load(v[0]) - 1.0)
        store(v[1], 1.0)
    store(v[lane()], cast(rounds, f32))
"""
    np.testing.assert_array_equal(run(body)["v"][:32], np.where(LANES == 0, 3, 0))


def test_ranges_that_differ_between_threads() -> None:
    body = """
out = 0
for i in range(lane(), 40, 7):
    out = out + i
"""
    expected = [sum(range(n, 40, 7)) for n in LANES]
    np.testing.assert_array_equal(of_a_warp(body), expected)


def test_loop_bounds_are_those_of_the_start() -> None:
    body = """
out = 0
stop = 4
for i in range(stop):
    stop = 2
    out = out + 1
"""
    np.testing.assert_array_equal(of_a_warp(body), np.full(32, 4))


def test_an_empty_range_runs_no_iteration() -> None:
    body = """
out = 5
for i in range(load(n[3]), 1):
    out = 0
"""
    np.testing.assert_array_equal(of_a_warp(body), np.full(32, 5))


def test_a_step_that_is_not_positive_is_a_finding() -> None:
    body = """
math = role(warps=1)
with math:
    total = 0
    for i in range(0, 4, load(c[0])):
        total = total + i
    store(c[1], total)
"""
    found = finding(body)
    assert (found.code, found.message) == ("CK518", "the step of a range is positive, got 0")


def test_array_assignment_keeps_what_inactive_threads_hold() -> None:
    body = """
r = registers(i32, 4, fill=1)
s = registers(i32, 4, fill=7)
if lane() >= 8:
    r = s
if lane() < 4:
    r[lane()] = 3
out = r[0] + r[3] * 10
"""
    r = np.where(LANES[:, None] >= 8, 7, 1) * np.ones((32, 4), int)
    r[range(4), range(4)] = 3
    np.testing.assert_array_equal(of_a_warp(body), r[:, 0] + 10 * r[:, 3])


def test_a_copy_of_an_array_is_no_alias_and_lanes_is_one() -> None:
    body = """
f = fragment(f32, (16, 8), fill=1.0)
g = f
r = lanes(f)
r[0] = 5.0
out = lanes(f)[0] * 10.0 + lanes(g)[0]
"""
    np.testing.assert_array_equal(of_a_warp(body), np.full(32, 51))


def test_a_register_index_is_checked_in_active_threads_only() -> None:
    body = """
r = registers(i32, 4, fill=2)
out = 0
if lane() < 4:
    out = r[lane()]
"""
    np.testing.assert_array_equal(of_a_warp(body), np.where(LANES < 4, 2, 0))


def test_registers_written_element_by_element_may_be_read_when_all_are() -> None:
    body = """
r = registers(i32, 4)
for i in range(4, unroll=True):
    r[i] = i * lane()
q = r
out = q[1] + q[3]
"""
    np.testing.assert_array_equal(of_a_warp(body), 4 * LANES)


@pytest.mark.parametrize("order", ORDERS)
def test_registers_that_some_threads_have_not_written(order: str) -> None:
    body = """
math = role(warps=1)
with math:
    r = registers(f32, 2)
    r[1] = 0.0
    if lane() < 31:
        r[0] = 1.0
    store(v[lane() * 2], r)
"""
    found = finding(body, order=order)
    assert found.code == "CK513"
    assert "r is read where no register has been written" in found.message


def test_units_of_a_role_have_numbers() -> None:
    body = """
math = role(warps=4)
with math as u:
    if lane() == 0:
        store(c[u], u * 10)
"""
    np.testing.assert_array_equal(run(body)["c"][:4], [0, 10, 20, 30])


def test_a_declaration_in_a_loop_is_a_new_variable_every_time() -> None:
    body = """
out = 0
for i in range(3):
    r = registers(i32, 2, fill=0)
    r[0] = r[0] + 1
    out = out + r[0]
"""
    np.testing.assert_array_equal(of_a_warp(body), np.full(32, 3))


def test_masked_atomics_count_active_threads() -> None:
    body = """
math = role(warpgroups=1)
with math:
    if thread() % 3 == 0:
        old = atomic_add(c[0], 2)
        store(v[thread()], cast(old, f32))
"""
    after = run(body, arrays())
    assert after["c"][0] == 2 * 43
    np.testing.assert_array_equal(after["v"][::3], 2.0 * np.arange(43))
