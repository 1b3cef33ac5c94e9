"""Two CTAs store different values to one element.

**Rule.** CTAs with different coordinates, or one CTA in different tiles, store to different
elements, unless what they store is a function of the place alone. The solver looks for two CTAs
that meet in an element; both are executed on numbers up to their stores before it is reported.
(Tiles that are moved back at the edge, so that they overlap, store the same values where what
they load is moved with them.)

**If broken.** The CTA that happens to be last wins.

**Instead.** Make the stride of the coordinate at least the extent of the tile, clip the tile, or
reduce with `reduce_add`.

**Source.** tile-ai/tilelang#2274; Betts et al., GPUVerify: a verifier for GPU kernels, 2012
(reduction to two threads).
"""

from collections.abc import Iterator, Mapping

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.questions import Apart, Meeting
from cake.verify.rule import rule
from cake.verify.smt import answer
from cake.verify.smt.report import listed

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "B", "N"], y: Tensor[f32, "N"]):
    b, n = grid(B, cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = n * 32 + lane()
        if i < N:
            store(y[(i + b) % N], load(x[b, i]))  # CK474
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "B", "N"], y: Tensor[f32, "L"]):
    require(L >= B * N, B * N <= 2147483647)
    b, n = grid(B, cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = n * 32 + lane()
        if i < N:
            store(y[b * N + i], load(x[b, i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    seen = set()
    for q in ctx.questions:
        if not isinstance(q, Apart):
            continue
        found, loc, other = answer(ctx, q), q.first.site.call.loc, q.second.site.call.loc
        if isinstance(found, Meeting) and (loc, other) not in seen:
            seen.add((loc, other))
            tensor, at = q.first.place.tensor, ", ".join(map(str, found.element))
            both = {k: v for k, v in found.first.items() if found.second.get(k) == v}
            yield RULE.at(
                loc,
                f"two CTAs store to {tensor}[{at}]: {listed(both)}; one at"
                f" {listed(_own(found.first, both))}, the other at"
                f" {listed(_own(found.second, both))}",
                related=[] if loc == other else [(other, "the other store")],
                facts={"tensor": tensor, "element": list(found.element), **both},
                helps=("make the stride at least the extent", "or reduce with reduce_add"),
            )


def _own(shown: Mapping[str, int], both: Mapping[str, int]) -> dict[str, int]:
    return {k: v for k, v in shown.items() if k not in both}


RULE = rule(
    code="CK474",
    name="stores-meet",
    gate="data consistency",
    layer="L4",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
