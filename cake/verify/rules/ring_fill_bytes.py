"""The bytes of a fill are not the same on all paths.

**Rule.** The full barrier is armed, before the copies start, with the bytes that all TMA and bulk
copies of the fill bring. So every path through a fill copies equally many, in loops whose trip
count is known at compile time.

**If broken.** Too many bytes expected: the consumer waits for ever. Too few: it reads a
half-filled stage, and the rest is counted to the next phase.

**Instead.** Copy the same boxes on every path: TMA fills what lies outside the tensor with zeros
and counts it. Or put the whole fill under the condition, in both roles.

**Source.** PTX ISA, mbarrier.expect_tx; tile-ai/tilelang#2182, #2644.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 64], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 64), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:  # CK402
                tma_load(X[s][0:1, 0:32], x[m, 0])
                if m > 0:
                    tma_load(X[s][0:1, 32:64], x[m, 32])
    with adder:
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][0, lane()])
                fence_async()
                store(y[m, lane()], v)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 64], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 64), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                for c in range(2):
                    tma_load(X[s][0:1, c * 32 : c * 32 + 32], x[m, c * 32])
    with adder:
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][0, lane()])
                fence_async()
                store(y[m, lane()], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, facts in ctx.rings.values():
        for fill in facts.fills:
            if fill.bytes is None and fill.commits == () and not _is_bracket(fill.site):
                continue
            if fill.bytes is None:
                yield RULE.at(
                    fill.site.loc,
                    f"the bytes of this fill of ring {ring.name} are not known when it starts:"
                    f" {fill.why}",
                    facts={"ring": ring.name, "reason": fill.why},
                    helps=("copy the same boxes on every path through the fill",),
                )


def _is_bracket(site: object) -> bool:
    return not hasattr(site, "op")


RULE = rule(
    code="CK402",
    name="ring-fill-bytes",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
