"""A signal follows loads from tensor memory, and no fence stands between.

**Rule.** Between a role's `tcgen05_ld` and the arrival or barrier that lets another role write or
free the tiles stands `tcgen05_fence_before`, behind `tcgen05_wait_ld`. (`tcgen05_commit` contains
it. Contested: established kernels leave it out where the wait for the loads is close.)

**If broken.** The next product overwrites columns that are still being loaded.

**Instead.** `tcgen05_wait_ld(r); tcgen05_fence_before(); arrive(empty, half)`.

**Source.** PTX ISA, tcgen05.fence, Canonical Patterns; NVIDIA/cutlass#2974.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.fence_flow import handovers
from cake.verify.rule import rule
from cake.verify.rules.tcgen05_fence_after import GOOD

BAD = GOOD.replace(
    "        tcgen05_fence_before()\n        cta_sync()", "        cta_sync()  # CK396"
)


def check(ctx: Context) -> Iterator[Diagnostic]:
    reported: set[int] = set()
    for h in handovers(ctx, fenced=False):
        if id(h.signal.place) in reported:
            continue
        reported.add(id(h.signal.place))
        yield RULE.at(
            h.signal.place.loc,
            f"role {h.wait.role} goes on with {h.deed.tiles} after this, and no fence stands"
            " between the end of the loads and the signal",
            related=[
                (h.work.deed.site.call.loc, "the load"),
                (h.deed.site.call.loc, f"the next work, of role {h.wait.role}"),
            ],
            facts={"tiles": h.deed.tiles, "role": h.signal.role},
            helps=("write tcgen05_fence_before() between tcgen05_wait_ld and the signal",),
        )


RULE = rule(
    code="CK396",
    name="tcgen05-fence-before",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
    contested=True,
)
