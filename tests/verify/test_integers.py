"""Normal forms of integer expressions, and proofs about them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.ir.nodes import Assign, Call, Expr, walk_stmts
from cake.ir.program import Program
from cake.verify.atoms import Atoms
from cake.verify.concrete import evaluate
from cake.verify.integers import Integers
from cake.verify.poly import Poly

from .examples import programs

FRAME = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M"]):
    {guard}
    m = grid(cdiv(M, 64))
    r = role(warps=4)
    with r as u:
{body}
        store(y[0], 0.0)
"""


def program(body: str, guard: str = "pass") -> Program:
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    return programs(FRAME.format(guard=guard, body=lines))[0]


def values(body: str, guard: str = "pass") -> dict[str, Poly | None]:
    """What each assigned name stands for where it is assigned last."""
    p = program(body, guard)
    integers = Integers(p)
    return {
        s.targets[0]: integers.poly(s.value)
        for s in walk_stmts(p.roles[0].body)
        if isinstance(s, Assign)
    }


def test_a_divisible_dimension_makes_tile_counts_exact() -> None:
    found = values("t = cdiv(M, 64)\ns = M // 64", guard="require(M % 64 == 0)")
    assert found["t"] == found["s"] == Poly.atom("M/64")


def test_rounding_up_stays_a_quotient_without_the_guard() -> None:
    assert str(values("t = cdiv(M, 64)")["t"]) == "(M + 63)//64"


def test_exact_parts_leave_divisions() -> None:
    found = values("i = (u * 64 + lane()) // 32\nj = (u * 64 + lane()) % 32")
    assert found["i"] == Poly.atom("%unit.r") * 2
    assert found["j"] == Poly.atom("%lane32")


def test_bounds_of_shared_factors_are_whole_numbers() -> None:
    p = program(
        "for d in range(lane() * 8, N, 256):\n    v = load(x[0, d], width=8)",
        guard="require(N % 8 == 0)",
    )
    integers = Integers(p)
    loop = next(s for s in walk_stmts(p.roles[0].body) if hasattr(s, "step"))
    (d,) = integers.variables[id(loop)]
    assert integers.proved(integers.values["N"] - d - 8)


@pytest.mark.parametrize(
    "step",
    ["s = (s + 1) % 3", "s = select(s == 2, 0, s + 1)", "s = select(s + 1 == 3, 0, s + 1)"],
)
def test_a_cyclic_counter_is_a_remainder_of_the_round(step: str) -> None:
    p = program(f"s = 0\nfor k in range(N):\n    t = s\n    {step}\nz = s")
    integers = Integers(p)
    found: dict[str, Any] = {}
    for s in walk_stmts(p.roles[0].body):
        if isinstance(s, Assign) and s.targets[0] in ("t", "z"):
            found[s.targets[0]] = integers.poly(s.value)
    assert str(found["t"]) == "(i0[N]) mod 3"
    assert str(found["z"]) == "(N) mod 3"


def test_what_a_branch_changes_is_unknown_behind_it() -> None:
    found = values("s = 0\nif N > 5:\n    s = 1\nz = s + 0")
    assert "@" in str(found["z"])


def test_conditions_bound_what_stands_under_them() -> None:
    p = program("i = m * 64 + lane()\nif i < N:\n    j = i")
    integers = Integers(p)
    branch = next(s for s in p.roles[0].body if hasattr(s, "then"))
    first = p.roles[0].body[0]
    assert isinstance(first, Assign)
    i = integers.poly(first.value)
    assert i is not None
    facts = integers.facts(branch.cond)  # type: ignore[attr-defined]
    assert not integers.proved(integers.values["N"] - i - 1)
    assert integers.proved(integers.values["N"] - i - 1, facts)


EXPRESSIONS = st.recursive(
    st.sampled_from(["M", "N", "m", "3", "7", "64"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.sampled_from("258")).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(text=EXPRESSIONS, big=st.integers(1, 400), wide=st.integers(1, 400), block=st.integers(0, 6))
def test_a_normal_form_has_the_value_of_its_expression(
    text: str, big: int, wide: int, block: int
) -> None:
    p = program(f"e = {text} + m * 0")
    integers = Integers(p)
    e = _last_value(p)
    form = integers.poly(e)
    assert form is not None
    known = {"M": big, "N": wide, "m": min(block, (big + 63) // 64 - 1)}
    expected = evaluate(e, known)
    got = _value(integers.atoms, form, known)
    assert got == expected
    low, high = integers.interval(form)
    assert low <= got <= high
    if integers.proved(form):
        assert got >= 0


def _last_value(p: Program) -> Expr:
    found = [s.value for s in walk_stmts(p.roles[0].body) if isinstance(s, Assign)]
    assert isinstance(found[-1], Call)
    return found[-1]


def _value(atoms: Atoms, p: Poly, known: dict[str, int]) -> int:
    """Evaluate a normal form, extremes by their two operands."""
    full: dict[str, int] = dict(known)
    for key in _all_atoms(atoms, p):
        atom = atoms.get(key)
        if atom.cases_low or atom.cases_high:
            operands = [_value(atoms, b.value, known) for b in atom.lows]
            full[key] = min(operands) if atom.cases_low else max(operands)
    result = atoms.evaluate(p, full)
    assert result is not None
    return int(result)


def _all_atoms(atoms: Atoms, p: Poly) -> set[str]:
    found = set(p.atoms)
    for key in p.atoms:
        division = atoms.get(key).division
        if division is not None:
            found |= _all_atoms(atoms, division[0])
    return found
