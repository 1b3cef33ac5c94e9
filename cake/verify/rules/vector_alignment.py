"""A vector access or chunked copy starts at an element that its width does not divide.

**Rule.** An access of n bytes has an address that is a multiple of n: its last coordinate is a
multiple of the elements it moves at once. (The launch guards the tensor's base and rows.)

**If broken.** A misaligned-address fault, which kills the context.

**Instead.** Multiply the thread's index by the width: `x[m, lane() * 4]` with `width=4`.

**Source.** CUDA C++ Programming Guide, device memory accesses; vllm#45466; tile-ai/tilelang#2526.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.base import static
from cake.ops.memory_access import vector_bytes
from cake.verify.context import Context
from cake.verify.footprints import Footprint, footprints
from cake.verify.poly import Poly
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 256], y: Tensor[f32, "M", 256]):
    m = grid(M)
    r = role(warps=1)
    with r:
        for i in range(63):
            v = load(x[m, lane() * 4 + i * 2], width=4)  # CK327
            store(y[m, lane() * 4 + i % 2 * 128], v)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 256], y: Tensor[f32, "M", 256]):
    m = grid(M)
    r = role(warps=1)
    with r:
        for i in range(2):
            v = load(x[m, lane() * 4 + i * 128], width=4)
            store(y[m, lane() * 4 + i * 128], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for f in footprints(ctx):
        per = _elements(f)
        index = ctx.integers.poly(f.place.index[-1])
        if per == 1 or index is None:
            continue
        rest = index.divide(per)[1]
        if not rest.terms:
            continue
        if _odd(ctx, rest, per):
            yield RULE.at(
                f.site.call.loc,
                f"{f.site.call.op} moves {per} elements at once, but its last coordinate is not"
                f" always a multiple of {per}",
                facts={"multiple_of": per, "tensor": f.place.tensor},
                helps=(f"make the coordinate a multiple of {per}", "or use a smaller width"),
            )
        else:
            line = f.site.call.loc.line
            yield Uncovered(f"whether the access to {f.place.tensor} in line {line} is aligned")


def _odd(ctx: Context, rest: Poly, per: int) -> bool:
    """Whether a remainder surely is no multiple for some value of one of its variables."""
    if rest.constant is not None:
        return rest.constant % per != 0
    variables = [ctx.integers.atoms.get(a) for a in rest.atoms]
    return rest.degree == 1 and all(v.exact for v in variables)


def _elements(f: Footprint) -> int:
    """Elements of the widest single access."""
    op, size = f.site.call.op, f.dtype.bytes
    if op == "cp_async":
        return int(static(f.site.call, "bytes")) // size
    if op == "bulk_load":
        return 16 // size
    if op in ("load", "store") and not f.clipped:
        return max(1, vector_bytes(f.dtype, f.extents[-1]) // size)
    return 1


RULE = rule(
    code="CK327",
    name="vector-alignment",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
