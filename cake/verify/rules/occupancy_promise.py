"""`launch(min_blocks=n)` promises more CTAs on an SM than fit.

**Rule.** `min_blocks` CTAs fit on one SM together: their shared memory (with what the system
reserves), their warps, and at least the registers that the kernel needs at all.

**If broken.** The promise is void: fewer CTAs run at a time, and a persistent grid sized for n of
them works through its tiles in waves.

**Instead.** Lower `min_blocks`, or shrink the shared memory and the block.

**Source.** CUDA C++ Programming Guide, technical specifications; PTX ISA, `.minnctapersm`.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import LaunchOptions
from cake.verify.context import Context
from cake.verify.occupancy import needs
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128]):
    launch(min_blocks=2)  # CK305
    m = grid(M)
    X = smem(f32, (256, 128))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[0, i], load(x[m, i]))
        role_sync()
        store(y[m, i], load(X[0, 127 - i]))
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128]):
    launch(min_blocks=2)
    m = grid(M)
    X = smem(f32, (128, 128))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[0, i], load(x[m, i]))
        role_sync()
        store(y[m, i], load(X[0, 127 - i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    options = next(iter(ctx.program.find(LaunchOptions)), None)
    n = ctx.plan.min_blocks
    if options is None or n == 1:
        return
    for what, each, limit in needs(ctx):
        wanted = each * n
        if wanted > limit:
            yield RULE.at(
                options.loc,
                f"{n} CTAs need {wanted} {what}, an SM of {ctx.target.name} has {limit}",
                facts={"min_blocks": n, "wanted": wanted, "limit": limit},
                helps=(f"at most {limit * n // wanted} fit",),
            )


RULE = rule(
    code="CK305",
    name="occupancy-promise",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
