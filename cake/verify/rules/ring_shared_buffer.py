"""A buffer belongs to two rings.

**Rule.** A buffer is a part of at most one ring.

**If broken.** Each ring hands out the same stages without knowing of the other: one overwrites what
the other's consumer reads.

**Instead.** One ring with both buffers, or a buffer for each ring. To reuse the bytes, place two
buffers in a pool and order their lifetimes.

**Source.** NVIDIA CUTLASS, Task Scheduling validation; deepseek-ai/DeepEP#657.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    zs = pipeline(X, producer=copier, consumer=adder)  # CK416
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
            with zs.fill() as z:
                store(X[z][lane()], load(x[m, lane()]))
    with adder:
        v = 0.0
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][lane()])
            with zs.use() as z:
                store(y[m, lane()], v + load(X[z][lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    Z = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, Z, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
                store(Z[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]) + load(Z[s][lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    owner: dict[str, str] = {}
    for ring, _ in ctx.rings.values():
        for buffer in ring.buffers:
            if buffer in owner:
                yield RULE.at(
                    ring.loc,
                    f"{buffer} belongs to ring {owner[buffer]} and to ring {ring.name}",
                    facts={"ring": ring.name, "other": owner[buffer], "buffer": buffer},
                    helps=("give each ring its own buffer",),
                )
            owner.setdefault(buffer, ring.name)


RULE = rule(
    code="CK416",
    name="ring-shared-buffer",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
