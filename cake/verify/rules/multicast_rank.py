"""CTAs of a cluster decide differently about a multicast.

**Rule.** All CTAs of a cluster make the same multicast copies and take the same steps of a
multicast ring: conditions and loop bounds around them do not depend on the CTA's rank.

**If broken.** Barriers of one CTA wait for bytes or arrivals that the other does not send.

**Instead.** Decide for the cluster as a whole. Each CTA loads its slice; the primitive chooses it
by rank.

**Source.** PTX ISA, cp.async.bulk.tensor; deepseek-ai/DeepGEMM#415.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Span
from cake.ops.base import static
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.sites import Around, brackets_of, controls

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, 32, 32], y: Tensor[f32, "M", 32]):
    cluster(2)
    m = grid(M)
    X = smem(f32, (32, 32), stages=1)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder, multicast=True)
    with copier:
        if cta_rank() == 0:
            with xs.fill() as s:  # CK372
                tma_load(X[s], x[0, 0], multicast=True)  # CK372
    with adder:
        if cta_rank() == 0:
            with xs.use() as s:  # CK372
                v = load(X[s][0, lane()])
                fence_async()
                store(y[m, lane()], v)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, 32, 32], y: Tensor[f32, "M", 32]):
    cluster(2)
    m = grid(M)
    X = smem(f32, (32, 32), stages=1)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder, multicast=True)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[0, 0], multicast=True)
    with adder:
        with xs.use() as s:
            v = load(X[s][0, lane()])
            fence_async()
            store(y[m, lane()], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for role in ctx.program.roles if ctx.cluster > 1 else ():
        places: list[tuple[Span, str, tuple[Around, ...]]] = [
            (b.loc, f"a step of ring {b.pipeline}", around)
            for b, around in brackets_of(role)
            if ctx.rings[b.pipeline][0].multicast
        ]
        for site in ctx.sites_of(role):
            if site.call.op == "tma_load" and static(site.call, "multicast"):
                places.append((site.call.loc, "a multicast copy", site.around))
        differing = ctx.across_cluster(role.role)
        for span, what, around in places:
            for a in around:
                if any(differing.differs(e) for e in controls(a.stmt)):
                    yield RULE.at(
                        span,
                        f"{what} depends on the CTA's rank in the cluster, through line"
                        f" {a.stmt.loc.line}",
                        related=[(a.stmt.loc, "CTAs part here")],
                        facts={"role": role.role},
                        helps=("decide equally in all CTAs of the cluster",),
                    )
                    break


RULE = rule(
    code="CK372",
    name="multicast-rank",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
