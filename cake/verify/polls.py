"""Loops that wait for other CTAs: they read a tensor until somebody has written it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake.ir.nodes import (
    Assign,
    Do,
    Expr,
    Stmt,
    TensorRef,
    VarRef,
    View,
    While,
    walk_exprs,
    walk_stmts,
)
from cake.verify.conditions import written_tensors
from cake.verify.context import Context
from cake.verify.sites import Site


@dataclass(frozen=True, slots=True)
class Poll:
    """``site`` reads ``place`` in each round of ``loop``, and the loop's end depends on it."""

    loop: While
    site: Site
    place: TensorRef


def polls(ctx: Context) -> Iterator[Poll]:
    """The places that loops poll.

    An update in a loop is no poll: it succeeds at some time. Nor is the loading of what the loop
    itself stores.
    """
    written = set(written_tensors(ctx.program))
    loops: dict[int, tuple[set[int], set[str]]] = {}
    for site in ctx.sites:
        for s in (*site.loops, site.stmt):
            if not isinstance(s, While):
                continue
            if id(s) not in loops:
                loops[id(s)] = _deciding(s), _stored(ctx, s)
            deciding, stored = loops[id(s)]
            for access, place in site.accesses("global"):
                if access.action == "read" and isinstance(place, TensorRef):
                    foreign = place.tensor in written - stored
                    if foreign and id(site.call) in deciding:
                        yield Poll(s, site, place)


def _stored(ctx: Context, loop: While) -> set[str]:
    """Tensors that a loop writes."""
    inside = (site for site in ctx.sites if loop in site.loops)
    return {
        place.tensor
        for site in inside
        for access, place in site.accesses("global")
        if access.action != "read" and isinstance(place, TensorRef)
    }


def _deciding(loop: While) -> set[int]:
    """Identities of the expressions in a loop from which its condition is computed, by way of names
    and of buffers."""
    found, wanted = {id(e) for e in (loop.cond, *walk_exprs(loop.cond))}, _names(loop.cond)
    known = -1
    while known != len(wanted):
        known = len(wanted)
        for s in walk_stmts(loop.body):
            given = s.targets if isinstance(s, Assign) else _targets(s)
            if wanted.intersection(given):
                found |= {id(e) for e in walk_exprs(s)}
                wanted |= {name for e in walk_exprs(s) for name in _names(e)}
    return found


def _targets(s: Stmt) -> tuple[str, ...]:
    """Buffers that a statement names: it may store to them."""
    if not isinstance(s, Do):
        return ()
    return tuple(e.base for e in s.call.args[:1] if isinstance(e, View))


def _names(e: Expr) -> set[str]:
    """Names and buffers in an expression."""
    parts = (e, *walk_exprs(e))
    return {x.name for x in parts if isinstance(x, VarRef)} | {
        x.base for x in parts if isinstance(x, View)
    }
