"""Roles reach a barrier of the whole CTA or cluster unequally often.

**Rule.** Every role executes `cta_sync` as often as the others, and `cluster_sync` too, for all
sizes.

**If broken.** The roles that came wait for ever; or barriers of different places match each
other.

**Instead.** Add the barrier to the other roles, or use `role_sync` or a named barrier for those
that need to meet.

**Source.** PTX ISA, barrier, barrier.cluster; facebookexperimental/triton#61.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import Call, RoleBody, walk_calls
from cake.verify.context import Context
from cake.verify.ring_steps import compare
from cake.verify.rule import Uncovered, rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    X = smem(f32, (32,))
    first = role(warps=1)
    second = role(warps=1)
    with first:
        store(X[lane()], load(x[lane()]))
        cta_sync()
        store(y[lane()], load(X[31 - lane()]))
        cta_sync()  # CK332
    with second:
        cta_sync()
        store(y[32 + lane()], load(x[32 + lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    X = smem(f32, (32,))
    first = role(warps=1)
    second = role(warps=1)
    with first:
        store(X[lane()], load(x[lane()]))
        role_sync()
        store(y[lane()], load(X[31 - lane()]))
        cta_sync()
    with second:
        cta_sync()
        store(y[32 + lane()], load(x[32 + lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for reach in ("cta", "cluster"):
        calls = {r.role: _calls(r, f"{reach}_sync") for r in ctx.program.roles}
        if not any(calls.values()):
            continue
        most = max(ctx.program.roles, key=lambda r: len(calls[r.role]))
        for other in ctx.program.roles:
            if other is most:
                continue
            result = compare(ctx, (most, reach, "sync"), (other, reach, "sync"))
            if result.proved:
                continue
            if result.sample is None:
                yield Uncovered(f"whether all roles execute {reach}_sync equally often")
                continue
            yield RULE.at(
                calls[most.role][-1].loc,
                f"for {result.sample} role {most.role} executes {reach}_sync {result.first} times,"
                f" role {other.role} {result.second} times",
                related=[(c.loc, f"{other.role} comes by here") for c in calls[other.role][-1:]],
                facts={"roles": [most.role, other.role], "counts": [result.first, result.second]},
                helps=(f"execute {reach}_sync equally often in all roles",),
            )


def _calls(role: RoleBody, op: str) -> list[Call]:
    return [c for c in walk_calls(role.body) if c.op == op]


RULE = rule(
    code="CK332",
    name="barrier-roles-differ",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
