"""The launch will be refused for some admitted sizes, because rows are not aligned.

**Rule.** TMA, bulk copies, cp.async and vector accesses need rows of a tensor that start on
multiples of 16 bytes (of the access's size). The launch checks it. For a dense tensor that is a
condition on its last dimension.

**If broken.** Nothing breaks, but a launch with another size fails, and a dispatcher that does
not know picks this kernel all the same.

**Instead.** `require(N % 8 == 0)` for 16-bit elements; or accept that callers pad their rows.

**Source.** CUDA driver API, cuTensorMapEncodeTiled; FlagGems#2489, #4471; pytorch#184714.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.program import TensorParam
from cake.ops.base import static
from cake.verify.context import Context
from cake.verify.footprints import Footprint, footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", 32]):  # CK320
    m = grid(M)
    X = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        cp_async(X, x[m, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[m, lane()], load(X[0, lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", 32]):
    require(N % 4 == 0)
    m = grid(M)
    X = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        cp_async(X, x[m, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[m, lane()], load(X[0, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    needed: dict[str, tuple[int, Footprint]] = {}
    for f in footprints(ctx):
        size = _bytes(f)
        if size > needed.get(f.place.tensor, (1, f))[0]:
            needed[f.place.tensor] = (size, f)
    for t in ctx.program.tensors:
        if t.name not in needed or len(t.shape) < 2:
            continue
        size, f = needed[t.name]
        unit = max(1, size * 8 // t.dtype.bits)
        if not _divides(ctx, t, unit):
            last = t.shape[-1]
            yield RULE.at(
                t.loc,
                f"rows of {t.name} start on multiples of {size} bytes only if {last} is a multiple"
                f" of {unit}; other launches are refused",
                related=[(f.site.call.loc, f"{f.site.call.op} needs it")],
                facts={"tensor": t.name, "bytes": size, "multiple_of": unit},
                helps=(f"require({last} % {unit} == 0), if callers do not pad rows",),
            )


def _divides(ctx: Context, t: TensorParam, unit: int) -> bool:
    last = t.shape[-1]
    if isinstance(last, int):
        return last % unit == 0
    return not ctx.integers.values[last].divide(unit)[1].terms


def _bytes(f: Footprint) -> int:
    """Alignment in bytes that an access asks of the rows of its tensor."""
    op = f.site.call.op
    if op.startswith("tma_") or op == "bulk_load":
        return 16
    if op == "cp_async":
        return int(static(f.site.call, "bytes"))
    if op not in ("load", "store") or f.clipped:
        return 1
    wide = f.extents[-1] * f.dtype.bytes
    return min(16, wide & -wide)


RULE = rule(
    code="CK320",
    name="row-alignment",
    gate="program safety",
    severity=Severity.NOTE,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
