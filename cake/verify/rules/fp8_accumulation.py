"""A long chain of 8-bit floating-point products accumulates in the tensor core.

**Rule.** On sm_89 and sm_90 the tensor core adds products of 8-bit floats with about 14 bits. The
sum is moved to a second f32 accumulator at an interval, usually every 128 elements of K.

**If broken.** The error grows with K.

**Instead.** Start the inner accumulator anew (`init=True`) every few steps, and add it to the
outer one in between.

**Source.** deepseek-ai/DeepGEMM#37, #50, #176; HazyResearch/ThunderKittens#138.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.nodes import Assign, Const, For, Static, VarRef, While, walk_stmts
from cake.ir.types import element_dtype
from cake.ops.base import operand
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[e4m3, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K % 128 == 0)
    X = smem(e4m3, (64, 128), stages=2, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(K // 128):
            with xs.fill() as s:
                tma_load(X[s], x[0, k * 128])
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        for k in range(K // 128):
            with xs.use() as s:
                wgmma(acc, X[s], X[s].T)  # CK381
                wgmma_wait(0)
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[e4m3, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K % 128 == 0)
    X = smem(e4m3, (64, 128), stages=2, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(K // 128):
            with xs.fill() as s:
                tma_load(X[s], x[0, k * 128])
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        part = fragment(f32, (64, 64))
        for k in range(K // 128):
            with xs.use() as s:
                wgmma(part, X[s], X[s].T, init=True)
                wgmma_wait(0)
            acc = acc + part
        store(y[0, 0], acc)
"""

_NARROW = frozenset({"e4m3", "e5m2"})


def check(ctx: Context) -> Iterator[Diagnostic]:
    if ctx.target.capability not in ((8, 9), (9, 0)):
        return
    for site in ctx.sites:
        call = site.call
        if call.op not in ("wgmma", "mma") or call.args[2] is None:
            continue
        dtype = element_dtype(call.args[2].type)
        if dtype is not None and dtype.name in _NARROW and _endless(site):
            yield RULE.at(
                call.loc,
                f"{dtype} products accumulate in the tensor core over a whole loop",
                facts={"dtype": dtype.name, "primitive": call.op},
                helps=("start anew every 128 elements of K and add up in a second accumulator",),
            )


def _endless(site: Site) -> bool:
    """Whether the innermost run-time loop round a product never starts its accumulator anew."""
    acc, init = site.call.args[0], None
    if site.call.op == "wgmma":
        init = operand(site.call, "init")
    loops = [s for s in site.loops if isinstance(s, For | While)]
    if not loops or not isinstance(acc, VarRef):
        return False
    if init is not None and not (isinstance(init, Const | Static) and init.value is False):
        return False
    return not any(
        isinstance(s, Assign) and acc.name in s.targets for s in walk_stmts(loops[-1].body)
    )


RULE = rule(
    code="CK381",
    name="fp8-accumulation",
    gate="data consistency",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
