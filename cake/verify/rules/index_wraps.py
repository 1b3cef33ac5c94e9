"""Index arithmetic leaves 32 bits at an admitted size, and an access follows it.

**Rule.** Sums, differences, shifts and products by constants of i32 values fit into 32 bits where
an index, a mask or a condition of an access is computed from them. (Products of two run-time
values are for `index-overflow`.) The solver looks for sizes at which they do not; the wrapped
index is followed on numbers until some access is made by it.

**If broken.** The index wraps to a negative number, which passes `i < N`: an access far outside
its tensor, on large inputs only.

**Instead.** `cast(i, i64) * 4`, or `require(N <= 536870912)`.

**Source.** fla-org/flash-linear-attention#1080; triton-lang/triton#6748; CUDA C++ Programming
Guide: int is 32 bits wide.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.questions import Fits, Witness
from cake.verify.rule import rule
from cake.verify.smt import answer
from cake.verify.smt.report import listed

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "L"]):
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = (n * 32 + lane()) * 4  # CK473
        if i < L:
            store(y[i], load(x[n * 32]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "L"]):
    require(N <= 536870880)
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = (n * 32 + lane()) * 4
        if i < L:
            store(y[i], load(x[n * 32]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    seen = set()
    for q in ctx.questions:
        if not isinstance(q, Fits):
            continue
        found, loc = answer(ctx, q), q.site.call.loc
        if isinstance(found, Witness) and loc not in seen:
            seen.add(loc)
            yield RULE.at(
                loc,
                f"this i32 value wraps to {found.value}: {listed(found.shown)}",
                facts={"value": found.value, "limit": found.limit, **found.shown},
                helps=("compute in 64 bits: cast(x, i64)", "or bound the sizes with require(...)"),
            )


RULE = rule(
    code="CK473",
    name="index-wraps",
    gate="program safety",
    layer="L4",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
