"""The buffers and barriers do not fit into the shared memory of a CTA.

**Rule.** All buffers with their alignment, pools and mbarriers fit into what one CTA may use:
163 KiB on sm_80, 99 KiB on sm_86, sm_89 and sm_120a, 227 KiB on sm_90a, sm_100a and sm_103a.

**If broken.** The launch fails.

**Instead.** Fewer stages, smaller tiles, or a pool in which buffers with separate lifetimes share
bytes.

**Source.** CUDA C++ Programming Guide, technical specifications; sgl-project/sglang#17908.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Pool, Smem
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_120a")
def kernel(x: Tensor[bf16, "M", 128], y: Tensor[bf16, "M", 128]):
    require(M % 128 == 0)
    m = grid(M // 128)
    X = smem(bf16, (128, 128), stages=4, swizzle=128)  # CK310
    copier = role(warps=1)
    math = role(warps=4)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m * 128, 0])
    with math as u:
        with xs.use() as s:
            store(y[m * 128 + u * 32, 0], ldmatrix(X[s][u * 32 : u * 32 + 32]))
            fence_async()
"""

GOOD = """
@cake.schedule(target="sm_120a")
def kernel(x: Tensor[bf16, "M", 128], y: Tensor[bf16, "M", 128]):
    require(M % 128 == 0)
    m = grid(M // 128)
    X = smem(bf16, (128, 128), stages=3, swizzle=128)
    copier = role(warps=1)
    math = role(warps=4)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m * 128, 0])
    with math as u:
        with xs.use() as s:
            store(y[m * 128 + u * 32, 0], ldmatrix(X[s][u * 32 : u * 32 + 32]))
            fence_async()
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    limit, used = ctx.target.smem_per_cta, ctx.layout.bytes
    if used <= limit:
        return
    sizes = {p.name: p.bytes for p in ctx.program.find(Pool)}
    buffers = {b.name: b for b in ctx.program.find(Smem) if b.pool is None}
    sizes |= {name: ctx.layout.buffers[name].bytes for name in buffers}
    largest = max(sizes, key=lambda name: sizes[name])
    yield RULE.at(
        ctx.program.resource(largest).loc,
        f"the CTA needs {used} bytes of shared memory, {ctx.target.name} has {limit}"
        f" (largest: {largest} with {sizes[largest]})",
        facts={"bytes": used, "limit": limit, "largest": largest},
        helps=("use fewer stages or smaller tiles", "let buffers share a pool"),
    )


RULE = rule(
    code="CK310",
    name="smem-capacity",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
