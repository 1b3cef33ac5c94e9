"""A slot is released while wgmma or a TMA store may still be reading it.

**Rule.** A slot goes back to the producer only when every asynchronous read of it is complete:
`wgmma_wait`, or `tma_store_wait`, covers it.

**If broken.** The producer overwrites operands in the middle of a product: a wrong result that
neither ptxas nor a sanitizer sees.

**Instead.** Wait for all products before the release; or release the slot of the step before, with
one product pending and one more stage.

**Source.** PTX ISA, wgmma.wait_group; facebookexperimental/triton#1278; NVIDIA/Fuser#3561.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K % 64 == 0)
    X = smem(bf16, (64, 64), stages=3, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(K // 64):
            with xs.fill() as s:
                tma_load(X[s], x[0, k * 64])
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        for k in range(K // 64):
            s = wait(xs)
            wgmma(acc, X[s], X[s].T)
            wgmma_wait(1)
            release(xs, s)  # CK404
        wgmma_wait(0)
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K > 0, K % 64 == 0)
    X = smem(bf16, (64, 64), stages=3, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(K // 64):
            with xs.fill() as s:
                tma_load(X[s], x[0, k * 64])
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        last = wait(xs)
        wgmma(acc, X[last], X[last].T)
        for k in range(1, K // 64):
            s = wait(xs)
            wgmma(acc, X[s], X[s].T)
            wgmma_wait(1)
            release(xs, last)
            last = s
        wgmma_wait(0)
        release(xs, last)
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("release-in-flight"):
        if h.site is None:
            continue
        newer = max(0, h.age - 1)
        yield RULE.at(
            h.at.loc,
            f"a slot with {h.subject} is released while {h.site.call.op} may still be reading it",
            label="the slot is released at the end of this",
            related=[(h.site.call.loc, f"in flight since here, {newer} groups ago")],
            facts={"buffer": h.subject, "operation": h.site.call.op, "newer_groups": newer},
            helps=("wait for it before the release", "or release the slot of the step before"),
        )


RULE = rule(
    code="CK404",
    name="ring-early-release",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
