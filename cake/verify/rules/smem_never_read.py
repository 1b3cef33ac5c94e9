"""A shared-memory buffer is declared and never read.

**Rule.** Every buffer serves a read.

**If broken.** Nothing breaks; shared memory and copies are wasted, or the wrong buffer is read.

**Instead.** Remove the buffer, or read it.

**Source.** Shared memory limits the CTAs on an SM: CUDA C++ Programming Guide, occupancy.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.program import Smem
from cake.ops.tmem import words
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))  # CK317
    r = role(warps=1)
    with r:
        store(X[lane()], load(x[lane()]))
        store(y[lane()], load(x[lane()]))
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
    addresses = words(ctx.program)
    for buffer in ctx.program.find(Smem):
        used = ctx.smem_uses.get(buffer.name, {})
        ring = ctx.owner.get(buffer.name)
        if ring is not None and not ctx.ring_places(ring.name)[1]:
            continue  # the whole ring is never used, which is reported as such
        if "read" not in used and "atomic" not in used and buffer.name not in addresses:
            what = "written but never read" if used else "never used"
            yield RULE.at(
                buffer.loc,
                f"{buffer.name} is {what}",
                facts={"buffer": buffer.name, "bytes": ctx.layout.buffers[buffer.name].bytes},
                helps=("remove it",),
            )


RULE = rule(
    code="CK317",
    name="smem-never-read",
    gate="data consistency",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
