"""A ring is declared multicast, but nothing in it is multicast.

**Rule.** `pipeline(..., multicast=True)` belongs to a schedule with a cluster of several CTAs
whose fills multicast.

**If broken.** Each release arrives at the barriers of all CTAs of the cluster, and the producer
waits for consumers that never see its data; without a cluster the declaration means nothing.

**Instead.** Declare `cluster(n)` and load with `tma_load(..., multicast=True)`, or leave out
`multicast`.

**Source.** PTX ISA, cp.async.bulk.tensor, `.multicast::cluster`; inclusionAI/humming#54, #56.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.base import static
from cake.verify.context import Context
from cake.verify.memory_items import views
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder, multicast=True)  # CK371
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m, 0])
    with adder:
        with xs.use() as s:
            v = load(X[s][0, lane()])
            fence_async()
            store(y[m, lane()], v)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m, 0])
    with adder:
        with xs.use() as s:
            v = load(X[s][0, lane()])
            fence_async()
            store(y[m, lane()], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, _ in ctx.rings.values():
        if not ring.multicast:
            continue
        multicast = any(
            site.call.op == "tma_load" and static(site.call, "multicast")
            for site in ctx.sites_of(ctx.body(ring.producer))
            for _, view in views(site)
            if view.base in ring.buffers
        )
        if ctx.cluster == 1 or not multicast:
            why = "there is no cluster" if ctx.cluster == 1 else "no copy of its fills is multicast"
            yield RULE.at(
                ring.loc,
                f"ring {ring.name} is declared multicast, but {why}",
                facts={"ring": ring.name, "cluster": ctx.cluster},
                helps=("leave out multicast=True, or declare cluster(n) and multicast the copies",),
            )


RULE = rule(
    code="CK371",
    name="multicast-without-cluster",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
