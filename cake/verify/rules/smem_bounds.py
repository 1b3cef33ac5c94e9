"""A view reaches beyond its shared-memory buffer.

**Rule.** The stage of a view is one of the buffer's stages, and its offsets and extents stay
within the buffer, for all values of the variables in them.

**If broken.** The access touches the next stage or another buffer: silent corruption.

**Instead.** Count stages modulo `stages=`; keep offsets within the extents.

**Source.** PTX ISA, shared state space; compute-sanitizer, memcheck.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import Expr, View
from cake.ir.program import Smem
from cake.ir.types import Slot, SmemView
from cake.verify.context import Context
from cake.verify.memory_items import views
from cake.verify.poly import Poly
from cake.verify.questions import Inside
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import Site
from cake.verify.thread_reach import reach_of_threads, reach_of_units

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    r = role(warps=1)
    with r:
        for m in range(M):
            store(X[m % 3][lane()], load(x[m, lane()]))  # CK319
            unit_sync()
            store(y[m, lane()], load(X[m % 3][31 - lane()]))  # CK319
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=3)
    r = role(warps=1)
    with r:
        for m in range(M):
            store(X[m % 3][lane()], load(x[m, lane()]))
            unit_sync()
            store(y[m, lane()], load(X[m % 3][31 - lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for site in ctx.sites:
        for _, view in views(site):
            for what, index, room in _limits(ctx, view):
                yield from _one(ctx, site, view, what, index, room)


def _limits(ctx: Context, view: View) -> Iterator[tuple[str, Expr, int]]:
    """Each index of a view, and the largest value that it may have."""
    buffer = ctx.program.resource(view.base)
    assert isinstance(buffer, Smem)
    assert isinstance(view.type, SmemView)
    if view.stage is not None and not isinstance(view.stage.type, Slot):
        yield "stage", view.stage, (buffer.stages or 1) - 1
    extents = (1,) * (len(buffer.shape) - len(view.type.shape)) + view.type.shape
    for axis, (e, n, whole) in enumerate(zip(view.offsets, extents, buffer.shape, strict=True)):
        yield f"axis {axis}", e, whole - n


def _one(
    ctx: Context, site: Site, view: View, what: str, index: Expr, room: int
) -> Iterator[Diagnostic | Uncovered]:
    p = ctx.integers.poly(index)
    if p is None:
        return
    given = ctx.given(site, ctx.mask_of(site))
    if ctx.integers.proved(p, given) and ctx.integers.proved(room - p, given):
        return
    always = not site.conditions and ctx.mask_of(site) is None
    reach = ctx.reach(p) if always else reach_of_threads(ctx, site, p)
    if reach is not None and (reach[0] < 0 or reach[1] > room):
        yield RULE.at(
            view.loc,
            f"{what} of {view.base} runs from {reach[0]} to {reach[1]} here, it may be 0 to {room}",
            facts={"buffer": view.base, "last": reach[1], "limit": room},
            helps=("keep the index within the buffer",),
        )
        return
    by_unit = reach_of_units(ctx, site, index)
    if (reach is not None and not always) or (by_unit and 0 <= by_unit[0] <= by_unit[1] <= room):
        return
    where = f"{what} of {view.base}"
    question = Inside(
        site=site,
        space="smem",
        what=where,
        index=index,
        room=Poly.number(room),
        extent=1,
        mask=ctx.mask_of(site),
    )
    line = site.call.loc.line
    yield Uncovered(f"whether {where} in line {line} stays inside", decider="L4", question=question)


RULE = rule(
    code="CK319",
    name="smem-bounds",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
