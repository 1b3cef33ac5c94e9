"""An access leaves its buffer for some size, thread or round of a loop.

**Rule.** Stage, offsets and extents of a view stay within the buffer, also where conditions,
masks or guards are to keep them there. The solver looks for sizes and a thread outside; what it
finds is executed on numbers before it is reported.

**If broken.** The access touches the next stage or another buffer: silent corruption.

**Instead.** Guard the sizes that the offsets rely on (`require(D <= DP)`), compare by `<`, or
count stages modulo `stages=`.

**Source.** PTX ISA, shared state space; compute-sanitizer, memcheck.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.smt.report import out_of_range

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "D"], y: Tensor[f32, "M", "D"]):
    require(D <= 256)
    m = grid(M)
    X = smem(f32, (128,))
    r = role(warps=1)
    with r:
        for d in range(lane(), D, 32):
            store(X[d], load(x[m, d]))  # CK472
            store(y[m, d], load(X[d]))  # CK472
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "D"], y: Tensor[f32, "M", "D"]):
    require(D <= 128)
    m = grid(M)
    X = smem(f32, (128,))
    r = role(warps=1)
    with r:
        for d in range(lane(), D, 32):
            store(X[d], load(x[m, d]))
            store(y[m, d], load(X[d]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    helps = ("guard the size that the offset relies on: require(...)",)
    return out_of_range(ctx, RULE, lambda q: q.space == "smem", helps)


RULE = rule(
    code="CK472",
    name="smem-range",
    gate="program safety",
    layer="L4",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
