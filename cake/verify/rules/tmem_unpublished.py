"""Tensor memory is used by a role that may not know its address yet.

**Rule.** Between the `tmem_alloc` of tiles and their use by another role stands a barrier of the
CTA, or of the cluster if a pair of CTAs has the tiles together, on every path. That a product is
complete does not publish the address: `tcgen05_commit` orders tensor memory, not the word in shared
memory.

**If broken.** The word is read before it is written, and the load or product goes to any column.

**Instead.** `cta_sync()` in every role, right behind the allocation.

**Source.** PTX ISA, tcgen05.alloc; NVIDIA/cutlass#2835, #3316.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.channels import signals
from cake.verify.context import Context
from cake.verify.meetings import REACHES, meetings
from cake.verify.rule import Uncovered, rule
from cake.verify.tensor_memory import Deed, all_deeds, declared, owners

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
"""
_MATH = """\
        barrier_wait(full, 0, 0)
        tcgen05_mma(T[0], X, X.T, init=True)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)
    with out:
"""
_OUT = """\
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32){mark}
        tcgen05_wait_ld(r)
        store(y[thread(), 0], r)
        tcgen05_fence_before()
        cta_sync()
"""
_MEET = "        cta_sync()\n"
BAD = _HEAD + _MATH + _OUT.format(mark="  # CK392")
GOOD = _HEAD + _MEET + _MATH + _MEET + _OUT.format(mark="")


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    found = all_deeds(ctx)
    owned, before = owners(found), meetings(ctx)
    for deed in found:
        for made in found:
            foreign = deed.site.role is not made.site.role and deed.tiles == made.tiles
            if made.action != "allocate" or not foreign or not deed.uses:
                continue
            if owned[deed.tiles] != (made.site.role.role,):
                continue  # who allocates them is what another rule asks first
            reaches = ("cluster",) if declared(ctx, deed.tiles).pair else REACHES
            if before[id(made.site.call)].precedes(before[id(deed.site.call)], reaches):
                continue
            if len(reaches) > 1 and _other_signal(ctx, made, deed):
                lines = f"{made.site.call.loc.line} before line {deed.site.call.loc.line}"
                yield Uncovered(f"whether {deed.tiles} are allocated in line {lines}", decider="L2")
                continue
            yield RULE.at(
                deed.site.call.loc,
                f"role {deed.site.role.role} uses {deed.tiles}, but no barrier of the"
                f" {reaches[0]} lies behind their allocation in role {made.site.role.role}",
                related=[(made.site.call.loc, "allocated here")],
                facts={"tiles": deed.tiles},
                helps=(f"write {reaches[0]}_sync() behind the allocation, and in all roles",),
            )


def _other_signal(ctx: Context, made: Deed, deed: Deed) -> bool:
    """Whether the one role signals the other by a named barrier or an mbarrier of its own."""
    told = [(site.role, s) for site in ctx.sites for s in signals(site) if not s.engine]
    names = [(role, s) for role, s in told if s.channel.kind in ("named", "mbarrier")]
    gives = {s.channel.name for role, s in names if role is made.site.role and s.gives}
    takes = {s.channel.name for role, s in names if role is deed.site.role and s.takes}
    return bool(gives & takes)


RULE = rule(
    code="CK392",
    name="tmem-unpublished",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
