"""How often something happens in a role, as a polynomial over sizes and conditions.

Two roles take equally many steps of a ring for all sizes if the polynomials of their steps are
equal. A condition is an atom that is 0 or 1; a sum over a loop whose terms depend on the loop's
variable is an atom named by the loop and the term. Loop variables are named by depth and range (see
:mod:`cake.verify.integers`), so equal loops of different roles have equal names.
"""

from __future__ import annotations

from collections.abc import Callable

from cake.ir.nodes import Block, Call, Expr, For, If, Stmt, TileLoop, While, child_blocks
from cake.verify.atoms import tightened
from cake.verify.integers import FRESH, Integers
from cake.verify.poly import ZERO, Poly

Weight = Callable[[Stmt], int]
"""How often the event happens in a statement itself, nested blocks aside."""

MAX_CASES = 4
"""Conditions that one proof of equality tells apart, one after another."""

_ONE = Poly.number(1)


def count(block: Block, weight: Weight, integers: Integers) -> Poly:
    """Occurrences of an event in one execution of a block."""
    result = ZERO
    for s in block:
        if own := weight(s):
            result = result + own
        if child_blocks(s):
            result = result + _inside(s, weight, integers)
    return result


def _inside(s: Stmt, weight: Weight, integers: Integers) -> Poly:
    parts = [count(b, weight, integers) for b in child_blocks(s)]
    if not any(p.terms for p in parts):
        return ZERO
    if isinstance(s, If):
        then, orelse = parts
        if then == orelse:
            return then
        return _once(orelse + condition(s.cond, integers) * (then - orelse))
    if isinstance(s, For):
        return _over_range(s, parts[0], integers)
    if isinstance(s, TileLoop):
        keys = [str(v) for v in integers.variables[id(s)]]
        return _summed(parts[0], keys, integers.atoms.add(f"tiles of {s.tiles}", [0]), integers)
    if isinstance(s, While):
        return integers.atoms.add(f"while{FRESH}{s.loc.line}:{s.loc.col}", [0]) * parts[0]
    return parts[0]


def _over_range(s: For, each: Poly, integers: Integers) -> Poly:
    found = integers.loops.get(id(s))
    if found is None:
        return integers.atoms.add(f"trips{FRESH}{s.loc.line}:{s.loc.col}", [0]) * each
    turn, rounds = found
    trips = integers.extreme("max", ZERO, rounds)
    key = str(turn)
    result = ZERO
    for m, c in each.terms:
        conditions = [a for a in m if a.startswith("[") and key in a]
        rest = tuple(a for a in m if a not in conditions)
        limited = None
        if len(conditions) == 1 and not any(key in a for a in rest):
            limited = _limited(conditions[0], key, rounds, integers)
        if limited is not None:
            result = result + Poly(((rest, c),)) * limited
        else:
            result = result + _summed(Poly(((m, c),)), [key], trips, integers)
    return _once(result)


def _limited(condition: str, turn: str, rounds: Poly, integers: Integers) -> Poly | None:
    """Rounds of a loop in which a condition ``a * turn + b >= 0`` holds."""
    known = integers.conditions.get(condition)
    parts = None if known is None else known.split(turn)
    a = None if parts is None else parts[0].constant
    if parts is None or not a:
        return None
    if a > 0:
        first = integers.extreme("max", ZERO, -integers.floordiv(parts[1], a))
        return integers.extreme("max", ZERO, rounds - first)
    last = integers.extreme("min", rounds, integers.floordiv(parts[1], -a) + 1)
    return integers.extreme("max", ZERO, last)


def _summed(each: Poly, keys: list[str], trips: Poly, integers: Integers) -> Poly:
    """Sum of a term over a loop: a product unless the term depends on the loop's variables."""
    result = ZERO
    for m, c in each.terms:
        free = tuple(a for a in m if not any(k in a for k in keys))
        bound = tuple(a for a in m if any(k in a for k in keys))
        factor = trips
        if bound:
            factor = integers.atoms.add(f"sum over {','.join(keys)} of {'*'.join(bound)}", [0])
        result = result + Poly(((free, c),)) * factor
    return _once(result)


def condition(cond: Expr, integers: Integers) -> Poly:
    """A condition as a polynomial that is 0 or 1."""
    if id(cond) not in integers.truths:
        integers.truths[id(cond)] = _condition(integers.meanings.get(id(cond), cond), integers)
    return integers.truths[id(cond)]


def _condition(cond: Expr, integers: Integers) -> Poly:
    if isinstance(cond, Call):
        operands = [a for a in cond.args if a is not None]
        if cond.op == "not_":
            return _ONE - condition(operands[0], integers)
        if cond.op in ("and_", "or_"):
            a, b = (condition(x, integers) for x in operands)
            return _once(a * b if cond.op == "and_" else a + b - a * b)
        if cond.op == "ne":
            return _ONE - _equal(operands, integers)
        if cond.op == "eq":
            return _equal(operands, integers)
        facts = integers.facts(cond)
        if facts:
            return _at_least_zero(facts[0], integers)
    return integers.atoms.add(f"[{integers.text(cond)}]", [0], [1])


def _equal(operands: list[Expr], integers: Integers) -> Poly:
    a, b = (integers.poly(x) for x in operands)
    if a is None or b is None:
        names = sorted(integers.text(x) for x in operands)
        return integers.atoms.add(f"[{names[0]} == {names[1]}]", [0], [1])
    difference = min(a - b, b - a, key=lambda p: p.terms)
    if difference.constant is not None:
        return Poly.number(int(difference.constant == 0))
    return integers.atoms.add(f"[{difference} == 0]", [0], [1])


def _at_least_zero(p: Poly, integers: Integers) -> Poly:
    p = tightened(p)
    if integers.proved(p):
        return _ONE
    if integers.proved(-p - 1):
        return ZERO
    key = f"[{p} >= 0]"
    opposite = f"[{-p - 1} >= 0]"
    if opposite in integers.conditions:
        return _ONE - integers.atoms.add(opposite, [0], [1])
    integers.conditions[key] = p
    return integers.atoms.add(key, [0], [1])


def equal(a: Poly, b: Poly, integers: Integers) -> bool:
    """Whether two counts are proved equal, by cases of the conditions and extremes in them."""
    return _vanishes(_once(a - b), integers, (), MAX_CASES)


def _vanishes(p: Poly, integers: Integers, given: tuple[Poly, ...], depth: int) -> bool:
    while p.terms:
        decided = _decided(p, integers, given)
        if decided is None:
            break
        p = _once(p.replace(decided))
    if not p.terms or (integers.proved(p, given) and integers.proved(-p, given)):
        return True
    question = next((q for q in map(integers.question, sorted(p.atoms)) if q is not None), None)
    if question is None or depth == 0:
        return False
    return all(
        _vanishes(p, integers, (*given, fact), depth - 1) for fact in (question, -question - 1)
    )


def _decided(p: Poly, integers: Integers, given: tuple[Poly, ...]) -> dict[str, Poly] | None:
    """An atom of ``p`` whose value follows from what is given, with that value."""
    for key in sorted(p.atoms):
        question = integers.question(key)
        if question is None:
            continue
        yes, no = integers.answers(key)
        if integers.proved(question, given):
            return {key: yes}
        if integers.proved(-question - 1, given):
            return {key: no}
    return None


def _once(p: Poly) -> Poly:
    """Conditions are 0 or 1: a repeated factor counts once."""
    terms: dict[tuple[str, ...], int] = {}
    for m, c in p.terms:
        seen: list[str] = []
        for a in m:
            if not (a.startswith("[") and a in seen):
                seen.append(a)
        key = tuple(seen)
        terms[key] = terms.get(key, 0) + c
    return Poly.of(terms)
