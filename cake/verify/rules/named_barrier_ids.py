"""The kernel needs more hardware barriers than there are.

**Rule.** Named barriers, one barrier for each role that uses `role_sync` and one for each
warpgroup of roles that use `unit_sync` are at most 15, beside barrier 0 of the CTA.

**If broken.** ptxas rejects the number, or two sets of threads share a barrier and mix their
arrivals.

**Instead.** Reuse a named barrier for another pair once both sides are past it; use rings.

**Source.** PTX ISA, barrier: 16 barriers a CTA; flashinfer-ai/flashinfer#4533.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.barrier_ids import barrier_ids
from cake.verify.context import Context
from cake.verify.rule import rule

_DECLARED = "".join(f"    b{i} = named_barrier(threads=64)\n" for i in range(15))
_ARRIVE = "".join(f"        named_arrive(b{i})\n" for i in range(16))
_SYNC = "".join(f"        named_sync(b{i})\n" for i in range(16))

BAD = f"""
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, 32]):
    first = role(warps=1)
    second = role(warps=1)
{_DECLARED}    b15 = named_barrier(threads=64)  # CK334
    with first:
{_ARRIVE}    with second:
{_SYNC}        store(y[lane()], 1.0)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, 32]):
    first = role(warps=1)
    second = role(warps=1)
    b = named_barrier(threads=64)
    with first:
        named_arrive(b)
    with second:
        named_sync(b)
        store(y[lane()], 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    limit, ids = ctx.target.named_barriers, barrier_ids(ctx.program)
    if ids.count > limit:
        last = max(ctx.named_barriers.values(), key=lambda b: ids.named[b.name], default=None)
        roles = sum(ctx.roles[r].units for r in ids.unit) + len(ids.role)
        yield RULE.at(
            ctx.program.loc if last is None else last.loc,
            f"the kernel needs {ids.count} hardware barriers, a CTA has {limit}",
            facts={
                "barriers": ids.count,
                "limit": limit,
                "named": len(ids.named),
                "of_roles_and_units": roles,
            },
            helps=("share named barriers, or use rings",),
        )


RULE = rule(
    code="CK334",
    name="named-barrier-ids",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
