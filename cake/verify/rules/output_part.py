"""A tensor is written, and its end is not.

**Rule.** For every size that the guards admit, the stores to a tensor that a kernel only writes
reach its last element along each axis.

**If broken.** The rest keeps what was there: a tail of rows, or the columns that no thread has.

**Instead.** Round the number of tiles up, `cdiv(M, 64)`, and mask; or `require(M % 64 == 0)`; loop
over all columns.

**Source.** tile-ai/tilelang#2274; NVIDIA/cutlass#3651: the loop over tiles skips the remainder.
"""

from collections import defaultdict
from collections.abc import Iterator
from math import isinf

from cake.diag import Diagnostic, Severity
from cake.ir.program import WorkspaceDecl
from cake.verify.concrete import Sample
from cake.verify.context import Context
from cake.verify.footprints import Footprint, extent_of, footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M // 8)
    r = role(warps=8)
    with r as u:
        store(y[m * 8 + u, lane()], load(x[m * 8 + u, lane()]))  # CK364
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(cdiv(M, 8))
    r = role(warps=8)
    with r as u:
        if m * 8 + u < M:
            store(y[m * 8 + u, lane()], load(x[m * 8 + u, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for tensor, stores in _only_written(ctx).items():
        for axis in range(len(stores[0].extents)):
            found = _left(ctx, tensor, axis, stores)
            if found is not None:
                sample, part = found
                yield RULE.at(
                    stores[0].site.call.loc,
                    f"for {sample} nothing is stored to {part} along axis {axis} of {tensor}",
                    related=[(f.site.call.loc, "stored here as well") for f in stores[1:]],
                    facts={"tensor": tensor, "axis": axis},
                    helps=("round the number of tiles up and mask", "or require a multiple"),
                )
                break


def _only_written(ctx: Context) -> dict[str, list[Footprint]]:
    """The stores to each tensor that the kernel does not read."""
    found: dict[str, list[Footprint]] = defaultdict(list)
    for f in footprints(ctx):
        found[f.place.tensor].append(f)
    scratch = {w.name for w in ctx.program.find(WorkspaceDecl)}
    return {
        name: every
        for name, every in found.items()
        if name not in scratch and all(f.access.action == "write" for f in every)
    }


def _left(
    ctx: Context, tensor: str, axis: int, stores: list[Footprint]
) -> tuple[Sample, str] | None:
    """Sizes at which no store can reach the last element of an axis, and what is left.

    Either other sizes reach it, or no size changes how far the stores reach: what is larger than
    needed at every size may be meant as a capacity.
    """
    size = extent_of(ctx, tensor, axis)
    ends: list[tuple[Sample, int, int]] = []
    for sample in ctx.samples:
        last, whole = (
            _end(ctx, sample, axis, stores),
            ctx.integers.interval(size, ctx.fixed(sample)),
        )
        if last is not None and whole[0] > 0:
            ends.append((sample, last, int(whole[0])))
    short = [(sample, f"elements {last} to {n - 1}") for sample, last, n in ends if last < n]
    fixed = size.constant is not None and len({last for _, last, _ in ends}) == 1
    return short[0] if short and (len(short) < len(ends) or fixed) else None


def _end(ctx: Context, sample: Sample, axis: int, stores: list[Footprint]) -> int | None:
    """The element behind the last that stores can reach; None if that is not known."""
    found = 0
    for f in stores:
        index = ctx.integers.poly(f.place.index[axis])
        low, high = (1, 0) if index is None else ctx.integers.interval(index, ctx.fixed(sample))
        if high < low or isinf(high):
            return None
        found = max(found, int(high) + f.extents[axis])
    return found


RULE = rule(
    code="CK364",
    name="output-part",
    gate="data consistency",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
