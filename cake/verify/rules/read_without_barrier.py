"""Shared memory is read without a barrier after other threads wrote it.

**Rule.** Between a write by some threads and a read of the same bytes by others stands a barrier
that both take part in: `unit_sync` among the threads of a unit, `role_sync` or `cta_sync` among
units. Shuffles and votes order nothing in memory.

**If broken.** Readers see old values whenever the writers are late.

**Instead.** Write, barrier, read. Data that a thread wrote for itself needs none.

**Source.** PTX ISA, Memory Consistency Model; JustVugg/colibri#1099; NVIDIA/cuCollections#337.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    X = smem(f32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[i], load(x[i]))
        unit_sync()
        store(y[i], load(X[127 - i]))  # CK342
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    X = smem(f32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[i], load(x[i]))
        role_sync()
        store(y[i], load(X[127 - i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("read-unsynced"):
        if h.site is None:
            continue
        who = "other units write" if h.units else "other threads of the unit write"
        barrier = "role_sync() or cta_sync()" if h.units else "unit_sync()"
        yield RULE.at(
            h.at.loc,
            f"{h.subject} is read without a barrier after {who} it",
            related=[(h.site.call.loc, "written here")],
            facts={"buffer": h.subject, "between": "units" if h.units else "threads"},
            helps=(f"put {barrier} between the write and this read",),
        )


RULE = rule(
    code="CK342",
    name="read-without-barrier",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
