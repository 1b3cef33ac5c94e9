"""A role takes another slot of a ring while it holds all of them.

**Rule.** A ring has more stages than slots that one side holds when it takes the next: the depth is
at least the look-ahead plus the slots kept for work in flight, plus one.

**If broken.** The other side has no slot to hand over: both wait for ever.

**Instead.** More stages, or hand a slot over before taking the next.

**Source.** triton-lang/triton#8554, #3106; PTX ISA, mbarrier.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.ring_flow import RingFlow
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K > 0, K % 64 == 0)
    X = smem(bf16, (64, 64), stages=1, swizzle=128)
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
            s = wait(xs)  # CK413
            wgmma(acc, X[s], X[s].T)
            wgmma_wait(1)
            release(xs, last)
            last = s
        wgmma_wait(0)
        release(xs, last)
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K > 0, K % 64 == 0)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
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
    if not ctx.rings:
        return
    for role in ctx.program.roles:
        for (name, place), held in RingFlow(ctx.integers, role).follow().items():
            ring, _ = ctx.rings[name]
            if held >= ring.stages and name not in ctx.blamed:
                yield RULE.at(
                    place.loc,
                    f"role {role.role} holds {held} slots of ring {name} here and waits for"
                    f" another, but the ring has {ring.stages}",
                    facts={"ring": name, "role": role.role, "held": held, "stages": ring.stages},
                    helps=(f"give the buffers {held + 1} stages", "hand a slot over before this"),
                )


RULE = rule(
    code="CK413",
    name="ring-lookahead",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
