"""Different CTAs store to the same place.

**Rule.** What a CTA computes and stores lies at a place of its own: the index depends on every
coordinate of the grid or tile, or a condition picks one CTA. (Sums of several CTAs go through
atomic or reducing stores; a constant, such as a flag, may be stored by all.)

**If broken.** The CTA that happens to be last wins.

**Instead.** Use the missing coordinate in the index, reduce with `reduce_add`, or store under
`if piece == 0`.

**Source.** tile-ai/tilelang#2274; NVIDIA/cutlass#3651.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import Expr, TileLoop, walk_exprs
from cake.ir.program import Grid
from cake.ir.types import Scalar
from cake.verify.context import Context
from cake.verify.disjoint import plain_stores, unseparated
from cake.verify.footprints import Footprint
from cake.verify.integers import FRESH
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "B", "M", 32], y: Tensor[f32, "M", 32]):
    b, m = grid(B, M)
    r = role(warps=1)
    with r:
        store(y[m, lane()], load(x[b, m, lane()]))  # CK323
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[i32, "B", "M", 32], y: Tensor[i32, "M", 32]):
    b, m = grid(B, M)
    r = role(warps=1)
    with r:
        reduce_add(y[m, lane()], load(x[b, m, lane()]))
"""

MAX_QUESTIONS = 48
"""Pairs of stores about which the solver is asked; there are more where stores are unrolled."""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    found = False
    for f in plain_stores(ctx):
        coordinates = _coordinates(ctx, f)
        used = _atoms(ctx, (*f.place.index, *([] if f.mask is None else [f.mask])))
        for cond, _ in f.site.conditions:
            used |= _atoms(ctx, (cond,))
        for loop in f.site.loops:
            if id(loop) in ctx.integers.loops:
                used |= ctx.integers.loops[id(loop)][1].atoms
        if any(FRESH in a for a in used):
            continue
        mentioned = {
            c for c in coordinates if any(ctx.integers.mentions(a, frozenset({c})) for a in used)
        }
        missing = sorted(coordinates - mentioned)
        if missing:
            found = True
            yield RULE.at(
                f.site.call.loc,
                f"CTAs that differ only in {', '.join(missing)} store to the same place of"
                f" {f.place.tensor}",
                facts={"tensor": f.place.tensor, "coordinates": missing},
                helps=("use the coordinate in the index", "or reduce with reduce_add"),
            )
    if not found:
        yield from _left_open(ctx)


def _left_open(ctx: Context) -> Iterator[Uncovered]:
    """Stores whose places mention every coordinate and may meet all the same."""
    for i, q in enumerate(unseparated(ctx)):
        lines = sorted({q.first.site.call.loc.line, q.second.site.call.loc.line})
        where = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} and {lines[1]}"
        what = f"whether CTAs store to different places of {q.first.place.tensor} in {where}"
        if i < MAX_QUESTIONS:
            yield Uncovered(what, decider="L4", question=q)
        else:
            yield Uncovered(what)


def _coordinates(ctx: Context, f: Footprint) -> set[str]:
    """Atoms of the grid's or tile loop's coordinates that take several values."""
    values = [ctx.integers.values[v] for g in ctx.program.find(Grid) for v in g.vars]
    for a in f.site.around:
        if isinstance(a.stmt, TileLoop):
            values += ctx.integers.variables[id(a.stmt)]
    return {a for a in map(str, values) if ctx.integers.atoms.get(a).highs[0].value.constant != 0}


def _atoms(ctx: Context, exprs: tuple[Expr, ...]) -> set[str]:
    found: set[str] = set()
    for e in exprs:
        for x in (e, *walk_exprs(e)):
            if id(x) in ctx.integers.meanings and isinstance(x.type, Scalar):
                found |= _atoms(ctx, (ctx.integers.meanings[id(x)],))
            p = ctx.integers.poly(x)
            found |= set() if p is None else p.atoms
    return found


RULE = rule(
    code="CK323",
    name="store-overlap",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
