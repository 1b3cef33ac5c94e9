"""A tensor is loaded through the read-only cache and written in one kernel.

**Rule.** `load(..., cache="nc")` is for memory that nobody writes while the kernel runs.

**If broken.** The load may return what was there before the write, for ever.

**Instead.** Leave out `cache="nc"`; across CTAs load with `order="acquire"`.

**Source.** PTX ISA, ld.global.nc; deepseek-ai/DeepEP#136.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.base import static
from cake.verify.context import Context
from cake.verify.footprints import footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()], cache="nc")  # CK326
        store(x[m, lane()], v + 1.0)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])
        store(x[m, lane()], v + 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for f in footprints(ctx):
        call = f.site.call
        if call.op != "load" or static(call, "cache") != "nc":
            continue
        if f.place.tensor in ctx.integers.written:
            yield RULE.at(
                call.loc,
                f"{f.place.tensor} is loaded through the read-only cache, but this kernel writes"
                " it",
                facts={"tensor": f.place.tensor},
                helps=('leave out cache="nc"',),
            )


RULE = rule(
    code="CK326",
    name="readonly-cache-written",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
