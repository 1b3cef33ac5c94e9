"""A loop waits for CTAs that may not be running.

**Rule.** A loop that polls global memory until other CTAs have written it stands in a kernel whose
CTAs all fit on the device at once: of a `persistent` grid, or of a constant number of CTAs, at most
as many as the smallest device has SMs. Where each CTA waits only for CTAs before it, or for those
that drew an earlier ticket, the verdict stays open.

**If broken.** The CTAs that run wait for ever, and those waited for never start.

**Instead.** `persistent(...)`; or let the last CTA to arrive (an atomic count) do the rest.

**Source.** CUDA C++ Programming Guide, grid synchronisation; NVIDIA/cub#369.
"""

from collections.abc import Iterator
from math import prod

from cake.diag import Diagnostic
from cake.ir.nodes import TensorRef, While, walk_stmts
from cake.ir.program import Grid
from cake.verify.context import Context
from cake.verify.influence import Influence
from cake.verify.polls import Poll, polls
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32], seen: Tensor[i32, 1]):
    m = grid(M)
    r = role(warps=1)
    with r:
        if lane() == 0:
            reduce_add(seen[0], 1, order="release")
        unit_sync()
        arrived = 0
        while arrived < M:  # CK377
            arrived = load(seen[0], order="acquire")
        store(y[m, lane()], load(x[m, lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32], seen: Tensor[i32, 1]):
    tiles = persistent(M)
    r = role(warps=1)
    with r:
        mine = 0
        for m in tiles:
            mine = mine + 1
        if lane() == 0:
            reduce_add(seen[0], mine, order="release")
        unit_sync()
        arrived = 0
        while arrived < M:
            arrived = load(seen[0], order="acquire")
        for m in tiles:
            store(y[m, lane()], load(x[m, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    grids: tuple[Grid, ...] = ctx.program.find(Grid)
    if not grids or all(_resident(ctx, g) for g in grids) or not _loops(ctx):
        return
    influence = Influence(ctx)
    for poll in {id(p.loop): p for p in polls(ctx)}.values():
        if _ordered(ctx, grids, poll) or _ticket(ctx, influence, poll):
            line = poll.loop.loc.line
            yield Uncovered(f"whether the CTAs that line {line} waits for have started")
            continue
        yield RULE.at(
            poll.loop.loc,
            f"this waits for what other CTAs do to {poll.place.tensor}; those of a grid need not"
            " run at the same time",
            related=[(poll.site.call.loc, "polled here"), (grids[0].loc, "the grid")],
            facts={"tensor": poll.place.tensor},
            helps=("make the grid persistent(...), or let the last CTA finish the work",),
        )


def _loops(ctx: Context) -> bool:
    return any(isinstance(s, While) for r in ctx.program.roles for s in walk_stmts(r.body))


def _resident(ctx: Context, grid: Grid) -> bool:
    """Whether every device of the target runs all CTAs of a grid at once, one on an SM."""
    sizes = [None if p is None else p.constant for p in map(ctx.integers.poly, grid.extents)]
    known = [n for n in sizes if n is not None]
    return len(known) == len(sizes) and prod(known) <= min(p.sms for p in ctx.target.parts)


def _ordered(ctx: Context, grids: tuple[Grid, ...], poll: Poll) -> bool:
    """Whether the place belongs to an earlier CTA."""
    own = [ctx.integers.values[name] for grid in grids for name in grid.vars]
    found = [p for p in map(ctx.integers.poly, poll.place.index) if p is not None]
    return any(ctx.integers.proved(mine - 1 - p) for mine in own for p in found)


def _ticket(ctx: Context, influence: Influence, poll: Poll) -> bool:
    """Whether what is waited for follows from an atomic update that this CTA has made."""
    updated = {
        place.tensor
        for site in ctx.sites
        for access, place in site.accesses("global")
        if access.action == "atomic" and isinstance(place, TensorRef)
    }
    values, role = (*poll.place.index, poll.loop.cond), poll.site.role.role
    return any(influence.tensors(e, role) & updated - {poll.place.tensor} for e in values)


RULE = rule(
    code="CK377",
    name="spin-not-resident",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
