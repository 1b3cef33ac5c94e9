"""The rows of a matrix access fall into the same banks of shared memory.

**Rule.** ldmatrix and stmatrix move 8 rows of 16 bytes at a time, one from each of 8 rows of the
tile. They run at full speed if the rows lie in different groups of banks.

**If broken.** The access takes 2, 4 or 8 times as long.

**Instead.** Declare the buffer with the swizzle that its rows fill (64 bf16 columns:
`swizzle=128`).

**Source.** CUDA C++ Programming Guide, shared memory banks; NVIDIA/cutlass#3172, #2116.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.program import Smem
from cake.ops.layout import tile_offsets
from cake.verify.context import Context
from cake.verify.memory_items import views
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, 16, 64], y: Tensor[bf16, 16, 64]):
    X = smem(bf16, (16, 64))
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[0, 0], ldmatrix(X))  # CK318
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, 16, 64], y: Tensor[bf16, 16, 64]):
    X = smem(bf16, (16, 64), swizzle=128)
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        store(y[0, 0], ldmatrix(X))
"""

_CHUNK, _GROUPS = 16, 8
"""Bytes that one lane addresses, and groups of banks of that width."""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for site in ctx.sites:
        if site.call.op not in ("ldmatrix", "stmatrix"):
            continue
        for _, view in views(site):
            buffer = ctx.program.resource(view.base)
            assert isinstance(buffer, Smem)
            degree = _degree(buffer)
            if degree > 1:
                yield RULE.at(
                    site.call.loc,
                    f"8 rows of {buffer.name} meet {degree} to a bank group in {site.call.op}",
                    facts={"buffer": buffer.name, "degree": degree},
                    helps=("declare the buffer with a swizzle that its rows fill",),
                )


def _degree(buffer: Smem) -> int:
    """How many of 8 neighbouring rows share a bank group, at worst."""
    row = buffer.shape[-1] * buffer.dtype.bytes
    if len(buffer.shape) < 2 or (buffer.swizzle and row % buffer.swizzle):
        return 1
    first = tile_offsets(buffer.shape, buffer.swizzle, buffer.dtype).reshape(-1, buffer.shape[-1])
    groups = [int(o) // _CHUNK % _GROUPS for o in first[:8, 0]]
    return max(groups.count(g) for g in groups)


RULE = rule(
    code="CK318",
    name="bank-conflict",
    gate="hardware conformance",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
