"""Rings whose steps are counted by data: slots that are never handed over, or twice."""

from __future__ import annotations

import pytest

from .examples import found, verdict

TEXT = """
@cake.schedule(target="sm_80")
def kernel(n: Tensor[i32, 1], x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for k in range(load(n[0])):
            s = acquire(xs)
            store(X[s][lane()], load(x[lane()]))
            commit(xs, s)
    with adder:
        total = 0.0
        for k in range(load(n[0])):
            s = wait(xs)
            total = total + load(X[s][lane()])
            release(xs, s)
        store(y[lane()], total)
"""


@pytest.mark.parametrize("step", ["commit", "release"])
@pytest.mark.parametrize("times", [0, 1, 2])
def test_each_slot_is_handed_over_once(step: str, times: int) -> None:
    line = f"            {step}(xs, s)\n"
    v = verdict(TEXT.replace(line, line * times))
    said = {d.code for d in v.diagnostics if d.severity == "error"}
    assert ("CK403" in said) is (times != 1), found(v)
    assert times != 1 or not said, found(v)


def test_a_slot_handed_over_in_both_branches_is_right() -> None:
    line = "            release(xs, s)\n"
    inner = f"            if k > 1:\n    {line}            else:\n    {line}"
    v = verdict(TEXT.replace(line, inner))
    assert v.ok, found(v)
