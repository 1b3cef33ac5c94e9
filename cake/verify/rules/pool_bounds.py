"""A buffer does not lie inside its pool.

**Rule.** A buffer placed at an offset, with all its stages, ends inside the pool.

**If broken.** It overlaps whatever the compiler placed behind the pool, mbarriers for example.

**Instead.** Enlarge the pool, or move the buffer. Each stage takes a multiple of its alignment.

**Source.** PTX ISA, shared state space; facebookexperimental/triton#462.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Pool, Smem
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    P = pool(512)
    X = smem(f32, (128,), pool=P, offset=128)  # CK311
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[i], load(x[i]))
        role_sync()
        store(y[i], load(X[127 - i]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    P = pool(640)
    X = smem(f32, (128,), pool=P, offset=128)
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[i], load(x[i]))
        role_sync()
        store(y[i], load(X[127 - i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    sizes = {p.name: p.bytes for p in ctx.program.find(Pool)}
    for b in ctx.program.find(Smem):
        if b.pool is None or b.offset is None:
            continue
        end = b.offset + ctx.layout.buffers[b.name].bytes
        if b.offset < 0 or end > sizes[b.pool]:
            yield RULE.at(
                b.loc,
                f"{b.name} covers bytes {b.offset} to {end} of pool {b.pool}, which has"
                f" {sizes[b.pool]}",
                facts={"buffer": b.name, "end": end, "limit": sizes[b.pool]},
                helps=(f"declare {b.pool} = pool({end})", "or place the buffer lower"),
            )


RULE = rule(
    code="CK311",
    name="pool-bounds",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
