"""A TMA store's group is never closed.

**Rule.** Every `tma_store` and `tma_reduce_add` is followed by `tma_store_commit()` before the
role ends. Waits count committed groups only.

**If broken.** No wait covers the store: the CTA may exit, or its buffer be written again, before
the store has read it.

**Instead.** Store, commit, and a wait before the buffer is written again or the role ends.

**Source.** PTX ISA, cp.async.bulk.commit_group.
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
        tma_store(y[m, 0], E)  # CK349
        tma_store_wait(0)
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
        if h.site is not None and h.age == 0:
            yield RULE.at(
                h.site.call.loc,
                f"the group of this store from {h.subject} is never committed",
                facts={"buffer": h.subject},
                helps=("write tma_store_commit() behind it, and tma_store_wait(0) at the end",),
            )


RULE = rule(
    code="CK349",
    name="store-not-committed",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
