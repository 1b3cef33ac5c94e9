"""A shared-memory buffer is read and never written.

**Rule.** What a kernel reads from shared memory it has written before: the bytes of a new CTA are
what the last one left.

**If broken.** Results depend on the kernel that ran before; right on one machine, NaN on another.

**Instead.** Fill the buffer, or remove the reads.

**Source.** compute-sanitizer, initcheck; tile-ai/tilelang#2936.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))  # CK316
    r = role(warps=1)
    with r:
        store(y[lane()], load(x[lane()]) + load(X[lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))
    r = role(warps=1)
    with r:
        store(X[lane()], load(x[lane()]))
        unit_sync()
        store(y[lane()], load(X[31 - lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for buffer, used in ctx.smem_uses.items():
        if "read" in used and "write" not in used and "atomic" not in used:
            yield RULE.at(
                ctx.program.resource(buffer).loc,
                f"{buffer} is read, but nothing is ever written to it",
                related=[(used["read"].call.loc, "read here")],
                facts={"buffer": buffer},
                helps=("fill it before the read",),
            )


RULE = rule(
    code="CK316",
    name="smem-never-written",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
