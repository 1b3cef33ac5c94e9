"""The roles of a CTA have more threads than a CTA can have.

**Rule.** The warps of all roles, with the idle warps that fill up a register budget's warpgroup,
are at most 1024 threads.

**If broken.** The launch fails; ptxas accepts a `.maxntid` of 2048 without a word.

**Instead.** Give roles fewer units, or join roles that run one after the other.

**Source.** PTX ISA, `.maxntid`; CUDA C++ Programming Guide, technical specifications.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 1280))
    load = role(warps=8)
    math = role(warps=32)  # CK300
    with load as u:
        store(y[n * 1280 + u * 32 + lane()], 0.0, mask=n * 1280 + u * 32 + lane() < N)
    with math as u:
        i = n * 1280 + 256 + u * 32 + lane()
        store(y[i], 1.0, mask=i < N)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 1024))
    math = role(warps=32)
    with math as u:
        i = n * 1024 + u * 32 + lane()
        store(y[i], 1.0, mask=i < N)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    limit, threads = ctx.target.threads_per_cta, ctx.plan.threads
    if threads > limit:
        last = max(ctx.roles.values(), key=lambda r: ctx.plan.place(r.name).first)
        yield RULE.at(
            last.loc,
            f"the roles have {threads} threads together, a CTA has at most {limit}",
            facts={"threads": threads, "limit": limit},
            helps=("use fewer warps, or join roles",),
        )


RULE = rule(
    code="CK300",
    name="block-too-large",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
