"""Loops that wait for other CTAs: they read a tensor until somebody has written it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake.ir.nodes import TensorRef, While
from cake.verify.conditions import written_tensors
from cake.verify.context import Context
from cake.verify.influence import Influence
from cake.verify.sites import Site


@dataclass(frozen=True, slots=True)
class Poll:
    """``site`` reads ``place`` in each round of ``loop``, and the loop's end depends on it."""

    loop: While
    site: Site
    place: TensorRef


def polls(ctx: Context, influence: Influence) -> Iterator[Poll]:
    """The places that loops poll. An update in a loop is no poll: it succeeds at some time."""
    written = set(written_tensors(ctx.program))
    for site in ctx.sites:
        for s in (*site.loops, site.stmt):
            if not isinstance(s, While):
                continue
            decides = influence.tensors(s.cond, site.role.role) & written
            for access, place in site.accesses("global"):
                if access.action != "read" or not isinstance(place, TensorRef):
                    continue
                if place.tensor in decides:
                    yield Poll(s, site, place)
