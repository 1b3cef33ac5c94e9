"""Searches for values that satisfy constraints, with limits that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import z3

from cake.ir.types import DIM_LIMIT
from cake.verify.smt.terms import Term, Terms

MAX_MILLISECONDS = 60_000
"""For a search whose units of work take unusually long; loaded machines must not come near it."""
SIZES = ((1, 64), (1, 1024), (1, 65_536), (1, DIM_LIMIT), (0, DIM_LIMIT))
"""Least size and what sizes are below, tried one after another: a counterexample shall be small."""
_WITHOUT = ("nra", "grobner", "horner")
"""Methods for products that a first search does without: it finds proofs about quotients by sizes,
as in maps from a linear number to coordinates, in half of the time, and gives up soon on others."""


class Open(Exception):
    """The search gave up: neither an answer nor a proof that there is none."""


def possible(constraints: Sequence[Term], effort: int) -> bool:
    """Whether some values satisfy all constraints. ``effort``: z3's units of work to spend.

    Raises:
        Open: the effort is spent.
    """
    try:
        return _solve(_solver(constraints, effort, _WITHOUT)) is not None
    except Open:
        return _solve(_solver(constraints, max(1, effort // 4))) is not None


def models(
    constraints: Sequence[Term], terms: Sequence[Terms], effort: int
) -> Iterator[dict[str, int]]:
    """Values of the atoms of ``terms`` that satisfy all constraints, small sizes first.

    Atoms of the second of two ``terms`` have the suffix ``|side``.
    """
    solver = _solver(constraints, effort)
    sizes = terms[0].sizes()
    variables = {str(v): v for t in terms for v in t.variables.values()}
    seen = []
    for least, below in SIZES:
        solver.push()
        solver.add(*(term >= least for term in sizes), *(term < below for term in sizes))
        try:
            model = _solve(solver)
        except Open:
            return
        if model is not None:
            found = {
                k: model.eval(v, model_completion=True).as_long() for k, v in variables.items()
            }
            if found not in seen:
                seen.append(found)
                yield found
        solver.pop()


def _solver(constraints: Sequence[Term], effort: int, without: Sequence[str] = ()) -> Term:
    """The plain core of z3, without preprocessing."""
    solver = z3.SimpleSolver()
    for method in without:
        solver.set(f"arith.nl.{method}", False)
    # Python's own handler of Ctrl-C takes effect after the search; z3's would keep it to itself.
    solver.set("ctrl_c", False)
    solver.set("rlimit", effort)
    solver.set("timeout", MAX_MILLISECONDS)
    solver.add(*constraints)
    return solver


def _solve(solver: Term) -> Term | None:
    """A model, or None if there is none."""
    try:
        found = solver.check()
    except z3.Z3Exception as error:  # such as out of memory
        raise Open from error
    if found == z3.unknown:
        raise Open
    return solver.model() if found == z3.sat else None
