"""A buffer is read after a write to another buffer on the same bytes.

**Rule.** Of buffers that overlap in a pool, one is read only if it was written after the other. An
overlap is a promise that their contents are never needed together.

**If broken.** The read finds the other buffer's bytes.

**Instead.** Read before the other is written; or place them at offsets that do not overlap.

**Source.** NVIDIA CUTLASS, Task Scheduling validation: alias windows; hao-ai-lab/FastVideo#1819.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.alias_flow import AliasFlow
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    P = pool(128)
    X = smem(f32, (32,), pool=P, offset=0)
    Z = smem(f32, (32,), pool=P, offset=0)
    r = role(warps=1)
    with r:
        store(X[lane()], load(x[lane()]))
        unit_sync()
        store(Z[lane()], load(x[32 + lane()]))
        unit_sync()
        store(y[lane()], load(X[31 - lane()]))  # CK314
        store(y[32 + lane()], load(Z[31 - lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 64], y: Tensor[f32, 64]):
    P = pool(128)
    X = smem(f32, (32,), pool=P, offset=0)
    Z = smem(f32, (32,), pool=P, offset=0)
    r = role(warps=1)
    with r:
        store(X[lane()], load(x[lane()]))
        unit_sync()
        store(y[lane()], load(X[31 - lane()]))
        unit_sync()
        store(Z[lane()], load(x[32 + lane()]))
        unit_sync()
        store(y[32 + lane()], load(Z[31 - lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    rings = {name: ring for name, (ring, _) in ctx.rings.items()}
    for role in ctx.program.roles:
        flow = AliasFlow(ctx.integers, role, ctx.sites_of(role), ctx.aliases, rings)
        for read, write, buffer in flow.follow():
            yield RULE.at(
                read.call.loc,
                f"{buffer} is read, but its bytes were overwritten in line {write.call.loc.line}",
                related=[(write.call.loc, "this writes a buffer on the same bytes")],
                facts={"buffer": buffer},
                helps=("read it before, or place the buffers apart",),
            )


RULE = rule(
    code="CK314",
    name="alias-overwritten",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
