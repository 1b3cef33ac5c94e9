"""A flag for other CTAs is changed before the data behind it are visible.

**Rule.** Between stores of data that another CTA loads and the change of the flag it waits for
stand a barrier that gathers the storing threads, unless they change the flag themselves, and a
release: `order="release"` or "acq_rel" of the change, or a `fence()`.

**If broken.** The other CTA sees the flag and loads old memory.

**Instead.** Store; `role_sync()`; one thread: `atomic_add(count[0], 1, order="acq_rel")`.

**Source.** PTX ISA, Memory Consistency Model, release pattern; triton-lang/triton#10677.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.flags import broken
from cake.verify.rule import rule

_HEAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[i32, "M", 64], y: Tensor[i32, "M", 64], sums: Tensor[i32, 64],
           count: Tensor[i32, 1]):
    m = grid(M)
    last = smem(i32, (1,))
    r = role(warps=2)
    with r as u:
        i = u * 32 + lane()
        reduce_add(sums[i], load(x[m, i]))
"""
_TAIL = """\
        role_sync()
        if load(last[0]) == M - 1:
            fence()
            store(y[m, i], load(sums[i], cache="cg"))
"""
_DRAW = """\
        if u == 0 and lane() == 0:
            store(last[0], atomic_add(count[0], 1, order="acq_rel"))"""
BAD = _HEAD + _DRAW + "  # CK378\n" + _TAIL
GOOD = _HEAD + "        role_sync()\n" + _DRAW + "\n" + _TAIL
_WHY = {
    "gather": "no barrier has gathered the threads that store {0}",
    "release": "nothing releases the stores to {0}",
}
_HELP = {
    "gather": "write role_sync() or cta_sync() between the stores and this",
    "release": 'write order="release" here, or fence() before',
}


def check(ctx: Context) -> Iterator[Diagnostic]:
    for b in broken(ctx):
        if b.lack != "acquire":
            yield RULE.at(
                b.second.call.loc,
                f"this tells other CTAs of {b.data} through {b.flag}, but"
                f" {_WHY[b.lack].format(b.data)}",
                related=[(b.first.call.loc, f"{b.data} is stored here")],
                facts={"data": b.data, "flag": b.flag},
                helps=(_HELP[b.lack],),
            )


RULE = rule(
    code="CK378",
    name="flag-before-data",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
