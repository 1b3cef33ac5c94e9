"""Whether different CTAs store to different elements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import z3

from cake.ir.program import Tiles
from cake.verify.context import Context
from cake.verify.disjoint import CTA, ctas_and_tiles
from cake.verify.footprints import Footprint, extent_of
from cake.verify.poly import Poly
from cake.verify.questions import Answer, Apart, Meeting
from cake.verify.smt.origins import dependencies
from cake.verify.smt.replay import Replay
from cake.verify.smt.search import models, possible
from cake.verify.smt.terms import Term, Terms

SIDES = ("", "other")


def apart(ctx: Context, q: Apart, effort: int) -> Answer:
    """A meeting: refuted. True: proved. False: neither."""
    coordinates = ctas_and_tiles(ctx, q.first)
    sides = [Terms(ctx, side) for side in SIDES]
    boxes = [_box(ctx, t, f) for t, f in zip(sides, (q.first, q.second), strict=True)]
    constraints = [*sides[0].admitted(), *(c for _, holds in boxes for c in holds)]
    for axis, ((a, n), (b, m)) in enumerate(zip(boxes[0][0], boxes[1][0], strict=True)):
        size = sides[0].of(extent_of(ctx, q.first.place.tensor, axis))
        constraints += [a == b] if n == m == 1 else [a < b + m, b < a + n]
        constraints += [a < size, b < size, a + n > 0, b + m > 0]
    pairs = [(sides[0].atom(c), sides[1].atom(c)) for c in coordinates]
    constraints.append(z3.Or(*(a != b for a, b in pairs)))
    constraints += [*sides[0].rules, *sides[1].rules]
    if not possible(constraints, effort):
        return True
    alike = coordinates == ctas_and_tiles(ctx, q.second)
    if not alike or any(t.from_data for t in sides) or _same_values(ctx, q, coordinates):
        return False
    if coordinates == (CTA,):
        # How many CTAs run is for the launch to say: two do if there are two tiles.
        constraints += [z3.And(a <= 1, b <= 1) for a, b in pairs]
        constraints.append(_several_tiles(ctx, sides[0]))
    for picked in models(constraints, sides, effort):
        meeting = _meeting(ctx, q, picked)
        if meeting is not None:
            return meeting
    return False


def _several_tiles(ctx: Context, t: Terms) -> Term:
    """There is work for two CTAs."""
    extents = [ctx.integers.poly(e) for d in ctx.program.find(Tiles) for e in d.extents]
    return z3.Or(*(t.of(p) > 1 for p in extents if p is not None))


def _box(ctx: Context, t: Terms, f: Footprint) -> tuple[list[tuple[Term, int]], list[Term]]:
    """First element and extent along each axis, and what holds where the store executes."""
    ends = []
    for index, extent in zip(f.place.index, f.extents, strict=True):
        p = ctx.integers.poly(index)
        assert p is not None
        ends.append((t.of(p), extent))
    return ends, t.reached(f.site, f.mask)


def _same_values(ctx: Context, q: Apart, coordinates: tuple[str, ...]) -> bool:
    """Whether what is stored depends on the CTA through its place only. Then CTAs whose places
    overlap may well store the same values: tiles that are moved back at the edge do."""
    tiles = (f"{t.name}.{i}" for t in ctx.program.find(Tiles) for i in range(len(t.extents)))
    coordinates = (*coordinates, *tiles)
    places = [ctx.integers.poly(e) for e in (*q.first.place.index, *q.second.place.index)]
    for site in (q.first.site, q.second.site):
        for p in dependencies(ctx, site):
            if _mentions(ctx, p, coordinates) and not any(
                place is not None and not _mentions(ctx, p - place, coordinates) for place in places
            ):
                return False
    return True


def _mentions(ctx: Context, p: Poly, coordinates: tuple[str, ...]) -> bool:
    return any(ctx.integers.mentions(a, frozenset(coordinates)) for a in p.atoms)


def _meeting(ctx: Context, q: Apart, picked: Mapping[str, int]) -> Meeting | None:
    """Both threads executed on numbers, if they store to one element."""
    boxes, threads = [], []
    for f, side in zip((q.first, q.second), SIDES, strict=True):
        end = f"|{side}" if side else ""
        own = {k.removesuffix(end): v for k, v in picked.items() if ("|" in k) == bool(side)}
        thread = Replay(ctx, f.site, {**picked, **own})
        box = thread.find(partial(_stored, f))
        if box is None:
            return None
        boxes.append(box)
        threads.append(thread)
    element = tuple(max(a, b, 0) for a, b in zip(*boxes, strict=True))
    for axis, at in enumerate(element):
        size = threads[0].poly(extent_of(ctx, q.first.place.tensor, axis))
        ends = [b[axis] + f.extents[axis] for b, f in zip(boxes, (q.first, q.second), strict=True)]
        if size is None or at >= min(*ends, size):
            return None
    first, second = (t.shown for t in threads)
    return Meeting(first=first, second=second, element=element)


def _stored(f: Footprint, thread: Replay) -> tuple[int, ...] | None:
    """The first element that a thread's store writes; None if it writes none."""
    if f.mask is not None and thread.value(f.mask) is not True:
        return None
    found = [thread.value(e) for e in f.place.index]
    return tuple(v for v in found if isinstance(v, int)) if None not in found else None
