"""CTAs of a cluster decide differently about what they do together.

**Rule.** All CTAs of a cluster make the same multicast copies, take the same steps of a multicast
or paired ring, and allocate tensor memory and start products as a pair: conditions and loop bounds
around them do not depend on the CTA's rank.

**If broken.** Barriers of one CTA wait for bytes or arrivals that the other does not send.

**Instead.** Decide for the cluster as a whole. Each CTA loads its slice, and one CTA of a pair
issues; the primitive chooses by rank.

**Source.** PTX ISA, cp.async.bulk.tensor, tcgen05.mma; deepseek-ai/DeepGEMM#415.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Span
from cake.ir.nodes import Call, ResourceRef
from cake.ops import pairs
from cake.ops.base import static
from cake.ops.rings import ring_step
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
            if ctx.rings[b.pipeline][0].clustered
        ]
        for site in ctx.sites_of(role):
            if (what := _together(ctx, site.call)) is not None:
                places.append((site.call.loc, what, site.around))
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


_PAIRED = frozenset({"tcgen05_mma", "tcgen05_commit", "tmem_alloc", "tmem_free"})


def _together(ctx: Context, call: Call) -> str | None:
    """What the CTAs of a cluster do together by a call; None if each acts alone."""
    if call.op == "tma_load" and static(call, "multicast"):
        return "a multicast copy"
    if call.op in _PAIRED and pairs.group(ctx.program) > 1:
        return f"{call.op} of the pair"
    ref = call.args[0] if ring_step(call) is not None else None
    if isinstance(ref, ResourceRef) and ctx.rings[ref.name][0].clustered:
        return f"a step of ring {ref.name}"
    return None


RULE = rule(
    code="CK372",
    name="multicast-rank",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
