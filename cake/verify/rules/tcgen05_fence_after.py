"""tcgen05 work follows a wait for another role's, and no fence stands between.

**Rule.** Between a wait or barrier that tells of another role's tcgen05 work on some tiles and the
role's own product or load on them stands `tcgen05_fence_after`. A wait for copies needs none.
(Contested: with waits that acquire, as these do, some hold the fence to be redundant.)

**If broken.** The compiler, or the tensor core, begins before the wait is over.

**Instead.** `barrier_wait(full, half, phase); tcgen05_fence_after(); tcgen05_ld(...)`.

**Source.** PTX ISA, tcgen05.fence, Canonical Patterns; NVIDIA/cutlass#2974.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.fence_flow import handovers
from cake.verify.rule import rule

_HEAD = """
@cake.schedule(target="sm_100a")
def kernel(x: Tensor[bf16, 128, 64], y: Tensor[f32, 128, 32]):
    X = smem(bf16, (128, 64), swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    full = barrier(arrivals=1)
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    math = role(warps=1)
    with math:
        expect_tx(full, 0, 16384)
        arrive(full, 0)
        tma_load(X, x[0, 0], barrier=full, slot=0)
        tmem_alloc(T, word[0])
        cta_sync()
        barrier_wait(full, 0, 0)
        tcgen05_mma(T[0], X, X.T, init=True)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)
    with out:
        cta_sync()
        barrier_wait(done, 0, 0)
"""
_TAIL = """\
        tcgen05_wait_ld(r)
        store(y[thread(), 0], r)
        tcgen05_fence_before()
        cta_sync()
"""
BAD = _HEAD + "        r = tcgen05_ld(T[0], 0, 32)  # CK395\n" + _TAIL
GOOD = _HEAD + "        tcgen05_fence_after()\n        r = tcgen05_ld(T[0], 0, 32)\n" + _TAIL


def check(ctx: Context) -> Iterator[Diagnostic]:
    reported: set[int] = set()
    for h in handovers(ctx, fenced=True):
        call = h.deed.site.call
        if not h.deed.uses or id(call) in reported:
            continue
        reported.add(id(call))
        yield RULE.at(
            call.loc,
            f"this follows work of role {h.signal.role} on {h.deed.tiles}, and no fence stands"
            " behind the wait",
            related=[
                (h.wait.place.loc, "the wait"),
                (h.work.deed.site.call.loc, f"the work of role {h.signal.role}"),
            ],
            facts={"tiles": h.deed.tiles, "role": h.wait.role},
            helps=("write tcgen05_fence_after() behind the wait",),
        )


RULE = rule(
    code="CK395",
    name="tcgen05-fence-after",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
    contested=True,
)
