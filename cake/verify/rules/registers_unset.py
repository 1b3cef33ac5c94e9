"""A register array is read before anything was written to it.

**Rule.** A fragment, vector or register array declared without `fill=` is written, on every path,
before it is read. `wgmma(..., init=True)` writes its accumulator without reading it.

**If broken.** The result starts from whatever the registers held: right on one machine, NaN on
another.

**Instead.** `fill=0.0`, or `init=True` on the first product.

**Source.** tile-ai/tilelang#2936, #2939; Dao-AILab/flash-attention#2906.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.init_flow import MAYBE, ZERO_ROUNDS
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, 16, 16], y: Tensor[f32, 16, 8]):
    X = smem(bf16, (16, 16), swizzle=32)
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        acc = fragment(f32, (16, 8))
        mma(acc, ldmatrix(X), ldmatrix(X[0:8].T, operand="b"))  # CK360
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, 16, 16], y: Tensor[f32, 16, 8]):
    X = smem(bf16, (16, 16), swizzle=32)
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        acc = fragment(f32, (16, 8), fill=0.0)
        mma(acc, ldmatrix(X), ldmatrix(X[0:8].T, operand="b"))
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for unset in ctx.unset:
        if unset.buffer:
            continue
        if unset.grade == MAYBE:
            yield Uncovered(f"whether {unset.name} is written before line {unset.at.loc.line}")
            continue
        when = " if a loop before runs zero times" if unset.grade == ZERO_ROUNDS else ""
        yield RULE.at(
            unset.at.loc,
            f"{unset.name} is read here, but nothing has been written to it{when}",
            facts={"variable": unset.name},
            helps=("declare it with fill=", "or start the first product with init=True"),
        )


RULE = rule(
    code="CK360",
    name="registers-unset",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
