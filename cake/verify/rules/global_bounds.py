"""An access leaves its tensor for some admitted size.

**Rule.** For every size that the guards admit, every element that a load, store, atomic or bulk
copy touches lies inside its tensor: because the tile divides the dimension (`require`), because a
mask or condition says so, or because the primitive clips (TMA, fragments, cp.async with zero
fill).

**If broken.** A fault; or, inside the allocation, silent corruption of a neighbour tile.

**Instead.** `mask=`, a condition, `require(N % 64 == 0)`, or a primitive that clips.

**Source.** CUDA C++ Programming Guide, device memory accesses; NVIDIA/cutlass#3651;
ROCm/FlyDSL#979.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.concrete import Sample
from cake.verify.context import Context
from cake.verify.footprints import Footprint, extent_of, footprints
from cake.verify.poly import Poly
from cake.verify.questions import Inside
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    r = role(warps=4)
    with r as u:
        i = n * 128 + u * 32 + lane()
        v = load(x[i], mask=i < N)
        store(y[i], v * 2.0)  # CK321
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    r = role(warps=4)
    with r as u:
        i = n * 128 + u * 32 + lane()
        if i < N:
            store(y[i], load(x[i]) * 2.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for f in footprints(ctx):
        for axis in range(len(f.extents)):
            if axis not in f.clipped:
                yield from _axis(ctx, f, axis)


def _axis(ctx: Context, f: Footprint, axis: int) -> Iterator[Diagnostic | Uncovered]:
    index = ctx.integers.poly(f.place.index[axis])
    size = extent_of(ctx, f.place.tensor, axis)
    where = f"index {axis} of {f.place.tensor} in line {f.site.call.loc.line}"
    if index is None:
        return
    given = ctx.given(f.site, f.mask)
    beyond = size - index - f.extents[axis]
    if ctx.integers.proved(index, given) and ctx.integers.proved(beyond, given):
        return
    if not f.site.conditions and f.mask is None:
        for p in (beyond, index):
            sample = _witness(ctx, p)
            if sample is not None:
                yield _report(ctx, f, axis, sample)
                return
    question = Inside(
        site=f.site,
        space="global",
        what=f"axis {axis} of {f.place.tensor}",
        index=f.place.index[axis],
        room=size - f.extents[axis],
        extent=f.extents[axis],
        mask=f.mask,
    )
    yield Uncovered(f"whether {where} stays inside the tensor", decider="L4", question=question)


def _witness(ctx: Context, p: Poly) -> Sample | None:
    """A size at which ``p`` is negative for a value of its variables that surely occurs."""
    for sample in ctx.samples:
        fixed = ctx.fixed(sample)
        if ctx.integers.atoms.attained(p, fixed) and ctx.integers.interval(p, fixed)[0] < 0:
            return sample
    return None


def _report(ctx: Context, f: Footprint, axis: int, sample: Sample) -> Diagnostic:
    fixed = ctx.fixed(sample)
    index = ctx.integers.poly(f.place.index[axis])
    assert index is not None
    low, high = ctx.integers.interval(index, fixed)
    size = ctx.integers.interval(extent_of(ctx, f.place.tensor, axis), fixed)[0]
    last = int(high) + f.extents[axis] - 1
    touched = f"{int(low)} to {last}"
    return RULE.at(
        f.site.call.loc,
        f"for {sample} axis {axis} of {f.place.tensor} is accessed at {touched}, its size is"
        f" {int(size)}",
        facts={"tensor": f.place.tensor, "axis": axis, "last": last, "size": int(size)},
        helps=("mask the access", "require that the tile divides the dimension"),
    )


RULE = rule(
    code="CK321",
    name="global-bounds",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
