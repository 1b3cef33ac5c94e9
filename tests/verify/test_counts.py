"""Counting ring steps: equal loops written in different ways, and witnesses where they differ."""

from __future__ import annotations

import pytest

from cake.verify.context import Context
from cake.verify.ring_steps import Comparison, compare

from .examples import programs

FRAME = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], n: Tensor[i32, "M"], y: Tensor[f32, "M", 32]):
    {guard}
    tiles = persistent(cdiv(M, 4))
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
{fills}
    with adder:
{uses}
"""

FILL = "with xs.fill() as s:\n    store(X[s][lane()], 1.0)"
USE = "with xs.use() as s:\n    store(y[0, lane()], load(X[s][lane()]))"


def comparison(fills: str, uses: str, guard: str = "pass") -> Comparison:
    def block(text: str, step: str) -> str:
        lines: list[str] = []
        for line in text.split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            body = step.split("\n") if line.strip() == "STEP" else [line.strip()]
            lines += [f"        {indent}{part}" for part in body]
        return "\n".join(lines)

    text = FRAME.format(guard=guard, fills=block(fills, FILL), uses=block(uses, USE))
    ctx = Context(programs(text)[0])
    return compare(ctx, (ctx.body("copier"), "xs", "acquire"), (ctx.body("adder"), "xs", "wait"))


EQUAL = {
    "the same loop": ("for k in range(M):\n    STEP", "for k in range(M):\n    STEP", "pass"),
    "another start": (
        "for k in range(M):\n    STEP",
        "for k in range(5, M + 5):\n    STEP",
        "pass",
    ),
    "another step": (
        "for k in range(cdiv(M, 4)):\n    STEP",
        "for k in range(0, M, 4):\n    STEP",
        "pass",
    ),
    "a first round of its own": (
        "for k in range(M):\n    STEP",
        "STEP\nfor k in range(1, M):\n    STEP",
        "pass",
    ),
    "a first round under a condition": (
        "for k in range(M // 64):\n    STEP",
        "if M // 64 > 0:\n    STEP\n    for k in range(1, M // 64):\n        STEP",
        "pass",
    ),
    "two loops for one": (
        "for k in range(M):\n    STEP",
        "for k in range(M // 2):\n    STEP\nfor k in range(M - M // 2):\n    STEP",
        "pass",
    ),
    "a condition on the round": (
        "for k in range(M):\n    if k > 0:\n        STEP",
        "for k in range(1, M):\n    STEP",
        "pass",
    ),
    "tiles and a bound from memory": (
        "for t in tiles:\n    for k in range(load(n[t])):\n        STEP",
        "for t in tiles:\n    for i in range(load(n[t])):\n        STEP",
        "pass",
    ),
    "both branches": (
        "for k in range(M):\n    STEP",
        ("for k in range(M):\n    if k % 2 == 0:\n        STEP\n    else:\n        STEP"),
        "pass",
    ),
    "a guard": (
        "for k in range(M // 8):\n    STEP",
        "for k in range(cdiv(M, 8)):\n    STEP",
        "require(M % 8 == 0)",
    ),
}

DIFFERENT = {
    "rounded down": ("for k in range(cdiv(M, 8)):\n    STEP", "for k in range(M // 8):\n    STEP"),
    "one more at the end": ("for k in range(M):\n    STEP", "for k in range(M + 1):\n    STEP"),
    "a peeled round for empty loops": (
        "for k in range(M // 64):\n    STEP",
        "STEP\nfor k in range(1, M // 64):\n    STEP",
    ),
    "once a tile": ("for t in tiles:\n    STEP", "STEP"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_counts_are_proved(name: str) -> None:
    assert comparison(*EQUAL[name]).proved


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_counts_have_a_witness(name: str) -> None:
    result = comparison(*DIFFERENT[name])
    assert not result.proved
    assert result.sample is not None
    assert result.first != result.second


def test_counts_from_different_data_are_left_open() -> None:
    result = comparison(
        "for k in range(load(n[0])):\n    STEP", "for k in range(load(n[M - 1])):\n    STEP"
    )
    assert not result.proved
    assert result.sample is None
