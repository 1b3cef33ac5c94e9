"""Tensor memory is used that the CTA does not hold.

**Rule.** Tiles are used and freed between their `tmem_alloc` and their `tmem_free`, on every path.

**If broken.** The address is what lies in shared memory by chance: the product goes to the columns
of another CTA of the SM, or the kernel faults.

**Instead.** Allocate before the first use; free after the last.

**Source.** PTX ISA, tcgen05.alloc, tcgen05.dealloc; NVIDIA/cutlass#2230.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import Uncovered, rule
from cake.verify.tensor_memory import Deed, HeldFlow, Holding, all_deeds, owners

_HEAD = """
@cake.schedule(target="sm_100a")
def kernel(x: Tensor[bf16, 128, 64], y: Tensor[f32, 32]):
    X = smem(bf16, (128, 64), swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    full = barrier(arrivals=1)
    done = barrier(arrivals=1)
    math = role(warps=1)
    with math:
        store(y[lane()], 1.0)
        expect_tx(full, 0, 16384)
        arrive(full, 0)
        tma_load(X, x[0, 0], barrier=full, slot=0)
        barrier_wait(full, 0, 0)
"""
BAD = (
    _HEAD
    + """\
        tcgen05_mma(T[0], X, X.T, init=True)  # CK390
        tmem_alloc(T, word[0])
        tcgen05_commit(done, 0)
        barrier_wait(done, 0, 0)
        tmem_free(T)
"""
)
GOOD = (
    _HEAD
    + """\
        tmem_alloc(T, word[0])
        tcgen05_mma(T[0], X, X.T, init=True)
        tcgen05_commit(done, 0)
        barrier_wait(done, 0, 0)
        tmem_free(T)
"""
)
_WHY: dict[Holding, str] = {
    "never": "they are not allocated yet",
    "freed": "they are freed already",
}


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    found = all_deeds(ctx)
    owned = owners(found)
    reported: set[str] = set()
    for deed in found:
        if deed.tiles not in owned and deed.tiles not in reported:
            reported.add(deed.tiles)
            yield _report(deed, "nothing allocates them")
    for role in ctx.program.roles:
        for deed, states in HeldFlow(ctx, role).before.items():
            if deed.action == "allocate" or role.role not in owned.get(deed.tiles, ()):
                continue
            if "held" not in states:
                yield _report(deed, " or ".join(_WHY[s] for s in sorted(states)))
            elif len(states) > 1:
                line = deed.site.call.loc.line
                yield Uncovered(f"whether {deed.tiles} are allocated whenever line {line} runs")


def _report(deed: Deed, why: str) -> Diagnostic:
    what = "freed" if deed.action == "free" else "used"
    return RULE.at(
        deed.site.call.loc,
        f"the tiles {deed.tiles} are {what}, but {why}",
        facts={"tiles": deed.tiles},
        helps=(f"write tmem_alloc({deed.tiles}, word) before, tmem_free({deed.tiles}) after",),
    )


RULE = rule(
    code="CK390",
    name="tmem-unallocated",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
