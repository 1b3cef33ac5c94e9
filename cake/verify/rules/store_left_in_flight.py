"""A role ends while its TMA stores still read shared memory.

**Rule.** Before a role ends, its committed stores are waited for: `tma_store_wait(0)`.

**If broken.** Shared memory of an exited CTA is given to the next one, and the store picks up its
bytes: the last tile is corrupt.

**Instead.** `tma_store_wait(0)` as the role's last statement.

**Source.** PTX ISA, cp.async.bulk.wait_group; NVIDIA/Fuser#5448.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    m = grid(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 1.0)
        fence_async()
        unit_sync()
        tma_store(y[m, 0], E)  # CK348
        tma_store_commit()
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    m = grid(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 1.0)
        fence_async()
        unit_sync()
        tma_store(y[m, 0], E)
        tma_store_commit()
        tma_store_wait(0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("store-left"):
        if h.site is not None and h.age > 0:
            yield RULE.at(
                h.site.call.loc,
                f"the role ends while this store may still be reading {h.subject}",
                facts={"buffer": h.subject},
                helps=("write tma_store_wait(0) at the end of the role",),
            )


RULE = rule(
    code="CK348",
    name="store-left-in-flight",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
