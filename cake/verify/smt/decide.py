"""Answers to questions about one access or one expression."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

import z3

from cake.ir.nodes import Call, Expr, child_exprs
from cake.ops.base import Access
from cake.verify.context import Context
from cake.verify.integers import INT_LIMIT
from cake.verify.questions import Answer, Fits, Inside, Witness
from cake.verify.sites import Site
from cake.verify.smt.replay import Replay
from cake.verify.smt.search import models, possible
from cake.verify.smt.terms import Terms


def inside(ctx: Context, q: Inside, effort: int, strict: Collection[int] = ()) -> Answer:
    """Whether an index stays within its limits; see :class:`Terms` for ``strict``."""
    terms = Terms(ctx, strict=strict)
    index = ctx.integers.poly(q.index)
    assert index is not None
    place, room = terms.of(index), terms.of(q.room)
    holds = [*terms.admitted(), *terms.reached(q.site, q.mask)]
    constraints = [*holds, z3.Or(place < 0, place > room), *terms.rules]
    if not possible(constraints, effort):
        return True
    if terms.from_data:
        return False

    def outside(thread: Replay) -> Witness | None:
        if not _acts(ctx, thread):
            return None
        value, limit = thread.value(q.index), thread.poly(q.room)
        if not isinstance(value, int) or limit is None or 0 <= value <= limit:
            return None
        return Witness(shown=thread.shown, value=value, limit=limit)

    found = (Replay(ctx, q.site, p).find(outside) for p in models(constraints, [terms], effort))
    return next((w for w in found if w is not None), False)


def fits(ctx: Context, q: Fits, effort: int) -> Answer:
    """Whether the value of 32-bit arithmetic fits into 32 bits, where it matters."""
    terms = Terms(ctx)
    p = ctx.integers.poly(q.site.call)
    assert p is not None
    value = terms.of(p)
    holds = [*terms.admitted(), *terms.reached(q.site, None)]
    constraints = [*holds, z3.Or(value < -INT_LIMIT, value >= INT_LIMIT), *terms.rules]
    if not possible(constraints, effort):
        return True
    if terms.from_data:
        return False

    def wraps(thread: Replay) -> Witness | None:
        value = thread.value(q.site.call)
        if id(q.site.call) not in thread.wrapped or not isinstance(value, int):
            return None
        return Witness(shown=thread.shown, value=value, limit=INT_LIMIT - 1)

    for picked in models(constraints, [terms], effort):
        witness = Replay(ctx, q.site, picked).find(wraps)
        if witness is not None and any(
            Replay(ctx, site, picked).find(partial(_acts, ctx)) for site in _uses(ctx, q.site.call)
        ):
            return witness
    return False


def _uses(ctx: Context, call: Call) -> Iterator[Site]:
    """Accesses to memory whose place, mask or conditions are computed from the value of a call."""
    for site in ctx.sites:
        if any(isinstance(effect, Access) for effect in site.effects):
            seen: set[int] = set()
            for root in (site.call, *(c for c, _ in site.conditions)):
                _collect(ctx, root, seen)
            if id(call) in seen:
                yield site


def _collect(ctx: Context, e: Expr, seen: set[int]) -> None:
    """Identities of an expression and all that it is computed from, through names that are assigned
    once."""
    if id(e) in seen:
        return
    seen.add(id(e))
    meaning = ctx.integers.meanings.get(id(e))
    for part in (*child_exprs(e), *([] if meaning is None else [meaning])):
        _collect(ctx, part, seen)


def _acts(ctx: Context, thread: Replay) -> bool | None:
    """Whether a thread's access happens: its mask holds, if it has one."""
    mask = ctx.mask_of(thread.site)
    return True if mask is None or thread.value(mask) is True else None
