"""parse(print(program)) equals the program, and printing is a fixed point."""

import pytest

from cake.diag import render_all
from cake.ir.same import same
from cake.lang.elaborate import parse
from cake.lang.printer import digest, print_program
from tests.lang.generate import schedule

PROGRAMS = 2000
BATCH = 250


def parsed(text: str, name: str):
    result = parse(text, name)
    assert result.ok, render_all(result.diagnostics, {name: text}, color=False)
    return result.program()


@pytest.mark.parametrize("first", range(0, PROGRAMS, BATCH))
def test_generated_programs_survive_printing(first: int) -> None:
    for seed in range(first, first + BATCH):
        program = parsed(schedule(seed), f"seed{seed}")
        text = print_program(program)
        again = parsed(text, f"printed{seed}")
        assert same(program, again) is None, f"seed {seed}"
        assert print_program(again) == text
        assert digest(program) == digest(again)


def test_same_reports_the_first_difference() -> None:
    a = parsed(schedule(3), "a")
    b = parsed(schedule(4), "b")
    difference = same(a, b)
    assert difference is not None
    assert difference.startswith("program")
