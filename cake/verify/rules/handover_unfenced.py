"""A role writes a buffer that another role gives to TMA or wgmma, and never fences it.

**Rule.** The fence that makes ordinary writes visible to the async proxy is executed by the
threads that wrote, before they arrive at the barrier by which they hand the buffer over. (A ring
does this by itself.)

**If broken.** The reader's engine sees stale bytes; a fence in the reading role does not help.

**Instead.** In the writing role: write; `fence_async()`; arrive. Or use a ring.

**Source.** PTX ISA, Async proxy; NVIDIA/Fuser#1967; pytorch/ao#4278.
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
    writer = role(warps=1)
    sender = role(warps=1)
    ready = named_barrier(threads=64)
    with writer:
        store(E[0, lane()], 1.0)  # CK354
        named_arrive(ready)
    with sender:
        named_sync(ready)
        fence_async()
        tma_store(y[m, 0], E)
        tma_store_commit()
        tma_store_wait(0)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    m = grid(M)
    E = smem(f32, (1, 32), stages=1)
    writer = role(warps=1)
    sender = role(warps=1)
    es = pipeline(E, producer=writer, consumer=sender)
    with writer:
        with es.fill() as s:
            store(E[s][0, lane()], 1.0)
    with sender:
        with es.use() as s:
            tma_store(y[m, 0], E[s])
            tma_store_commit()
            tma_store_wait(0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("never-fenced"):
        if h.site is not None:
            yield RULE.at(
                h.site.call.loc,
                f"another role reads {h.subject} through the async proxy, but {h.site.role.role}"
                " never fences this write",
                facts={"buffer": h.subject, "role": h.site.role.role},
                helps=("write fence_async() after it, before the barrier that hands it over",),
            )


RULE = rule(
    code="CK354",
    name="handover-unfenced",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
