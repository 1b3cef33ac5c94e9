"""The cluster is larger than the target allows.

**Rule.** A cluster has at most as many CTAs as the target admits: 8 everywhere that clusters
exist, 16 where the non-portable size is allowed (the launch asks for it). Targets before sm_90
have none.

**If broken.** The launch fails; ptxas accepts `.reqnctapercluster 32`.

**Instead.** A smaller cluster.

**Source.** CUDA C++ Programming Guide, thread block clusters; cupy#8778.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Cluster
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, "N"]):
    cluster(2)  # CK370
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        store(y[n * 32 + lane()], 1.0, mask=n * 32 + lane() < N)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    cluster(2)
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        store(y[n * 32 + lane()], 1.0, mask=n * 32 + lane() < N)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    t = ctx.target
    limit = t.cluster_max_nonportable if t.cluster else 1
    for c in ctx.program.find(Cluster):
        if c.size > limit:
            what = f"has at most {limit} CTAs" if t.cluster else "does not exist"
            yield RULE.at(
                c.loc,
                f"a cluster of {c.size} CTAs: on {t.name} a cluster {what}",
                facts={"size": c.size, "limit": limit},
                helps=(f"write cluster({limit})" if t.cluster else "remove the cluster",),
            )


RULE = rule(
    code="CK370",
    name="cluster-size",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
