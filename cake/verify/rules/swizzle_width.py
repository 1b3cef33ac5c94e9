"""The rows of a buffer do not fill the blocks of its swizzle.

**Rule.** A swizzle of w bytes works on column blocks of w bytes, so a row is a multiple of w
bytes.

**If broken.** Rows of another length leave gaps: elements land behind their tile, in the next
stage.

**Instead.** Use the swizzle that divides the row: 64 bf16 columns are 128 bytes.

**Source.** PTX ISA, Tensors: Swizzling Modes; CUDA driver API, cuTensorMapEncodeTiled;
tile-ai/tilelang#2630.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Smem
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, 16, 32], y: Tensor[bf16, 16, 32]):
    X = smem(bf16, (16, 32), swizzle=128)  # CK313
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[0, 0], ldmatrix(X))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, 16, 32], y: Tensor[bf16, 16, 32]):
    X = smem(bf16, (16, 32), swizzle=64)
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[0, 0], ldmatrix(X))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for b in ctx.program.find(Smem):
        row = b.shape[-1] * b.dtype.bits // 8
        if b.swizzle and row % b.swizzle:
            fits = next((w for w in (128, 64, 32) if row % w == 0), 0)
            yield RULE.at(
                b.loc,
                f"rows of {b.name} have {row} bytes, its swizzle works on blocks of {b.swizzle}",
                facts={"buffer": b.name, "row_bytes": row, "swizzle": b.swizzle},
                helps=(f"use swizzle={fits}",),
            )


RULE = rule(
    code="CK313",
    name="swizzle-width",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
