"""Damaged schedules get diagnostics, never an exception."""

import io
import tokenize
from pathlib import Path
from random import Random

import pytest

from cake.diag import render_all
from cake.lang.elaborate import parse

KERNELS = sorted(Path(__file__).parents[2].glob("cake/kernels/*/sm_*.py"))
MUTANTS = 60
WORDS = (
    *("0", "-1", "1", "65", "2**40", "3.5", "'s'", "None", "True", "()", "(1, 2)", "[1]", "inf"),
    *("K", "B", "x", "acc", "load", "store", "wgmma", "range", "lane()", "f32", "bf16", "int"),
    *("+", "*", "//", ":", ",", ".", ".T", "=", "==", "not", "lambda: 0", "for", "if", "with"),
)


def tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def mutate(text: str, random: Random) -> str:
    """Replace, delete, repeat or swap one or two tokens."""
    lines = text.splitlines(keepends=True)
    places = [t for t in tokens(text) if t.string.strip() and t.start[0] == t.end[0]]
    for _ in range(random.randint(1, 2)):
        t = random.choice(places)
        row, start, end = t.start[0] - 1, t.start[1], t.end[1]
        line = lines[row]
        new = {
            0: random.choice(WORDS),
            1: "",
            2: t.string + " " + t.string,
            3: random.choice(places).string,
        }[random.randrange(4)]
        lines[row] = line[:start] + new + line[end:]
    return "".join(lines)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_damaged_schedules_are_diagnosed(path: Path) -> None:
    text = path.read_text()
    random = Random(path.parent.name + path.stem)
    rejected = 0
    for _ in range(MUTANTS):
        damaged = mutate(text, random)
        result = parse(damaged, path.name)
        render_all(result.diagnostics, {path.name: damaged}, color=False)
        rejected += not result.ok
        assert result.ok or result.diagnostics
    assert rejected > MUTANTS // 3
