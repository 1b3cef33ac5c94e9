"""Findings from counterexamples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.questions import Inside, Witness
from cake.verify.smt import LESS_EFFORT, ONE_AT_A_TIME, answer

if TYPE_CHECKING:
    from cake.verify.rule import Rule


def out_of_range(
    ctx: Context, rule: Rule, concerns: Callable[[Inside], bool], helps: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """A finding for each open question about a range that concerns a rule and is refuted. Calls
    that come from one line and name one thing are reported once."""
    seen = set()
    for q in ctx.questions:
        if not isinstance(q, Inside) or not concerns(q):
            continue
        found = answer(ctx, q)
        where = (q.site.call.loc, q.what)
        if isinstance(found, Witness) and where not in seen:
            seen.add(where)
            yield _finding(ctx, rule, q, found, helps)


def _finding(ctx: Context, rule: Rule, q: Inside, w: Witness, helps: tuple[str, ...]) -> Diagnostic:
    from cake.verify.smt.remedy import strict_comparison  # imports z3

    fix = None
    if q.conditional:
        with ONE_AT_A_TIME:
            fix = strict_comparison(ctx, q, LESS_EFFORT)
    last, size = w.value + q.extent - 1, w.limit + q.extent
    at = str(w.value) if q.extent == 1 else f"{w.value} to {last}"
    return rule.at(
        q.site.call.loc,
        f"{q.what} is accessed at {at}, its size is {size}: {listed(w.shown)}",
        facts={"first": w.value, "last": last, "size": size, **w.shown},
        helps=helps,
        fix=fix,
    )


def listed(shown: Mapping[str, int]) -> str:
    """``N = 130, n = 1, thread of the unit = 3``."""
    return ", ".join(f"{name} = {value}" for name, value in shown.items())
