"""A buffer is placed at an offset that its instructions do not take.

**Rule.** A buffer that TMA, bulk copies or wgmma touch starts on a multiple of 128 bytes, any
other on a multiple of 16; a swizzled one on the period of its pattern: 256, 512 or 1024 bytes for
a swizzle of 32, 64 or 128.

**If broken.** A misaligned-address fault, or permuted values: swizzles XOR address bits.

**Instead.** Round the offset up.

**Source.** PTX ISA, cp.async.bulk.tensor; Tensors, Swizzling Modes; NVIDIA/Fuser#3023, #4096;
tile-ai/tilelang#2379, #2391.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Smem
from cake.ops.layout import BULK_ALIGNMENT, PLAIN_ALIGNMENT, swizzle_period
from cake.verify.context import Context
from cake.verify.memory_items import views
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, 64], y: Tensor[f32, 64, 64]):
    P = pool(9216)
    X = smem(bf16, (64, 64), swizzle=128, pool=P, offset=512)  # CK312
    math = role(warpgroups=1)
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        fence_async()
        unit_sync()
        wgmma(acc, X, X.T)
        wgmma_wait(0)
        store(y[0, 0], acc)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, 64], y: Tensor[f32, 64, 64]):
    P = pool(9216)
    X = smem(bf16, (64, 64), swizzle=128, pool=P, offset=1024)
    math = role(warpgroups=1)
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        fence_async()
        unit_sync()
        wgmma(acc, X, X.T)
        wgmma_wait(0)
        store(y[0, 0], acc)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    bulk = {v.base for s in ctx.sites for access, v in views(s) if access.proxy == "async"}
    for b in ctx.program.find(Smem):
        if b.pool is None or b.offset is None:
            continue
        least = BULK_ALIGNMENT if b.name in bulk else PLAIN_ALIGNMENT
        needed = max(least, swizzle_period(b.swizzle))
        if b.offset % needed:
            up = -(-b.offset // needed) * needed
            yield RULE.at(
                b.loc,
                f"{b.name} starts at byte {b.offset} of pool {b.pool}, not a multiple of {needed}",
                facts={"buffer": b.name, "offset": b.offset, "multiple_of": needed},
                helps=(f"place it at offset={up}",),
            )


RULE = rule(
    code="CK312",
    name="pool-alignment",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
