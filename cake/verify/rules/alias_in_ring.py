"""Two buffers of one ring overlap in their pool.

**Rule.** Buffers that one fill writes and one use reads are alive together, so their bytes are
different.

**If broken.** Each fill destroys half of what it brings.

**Instead.** Place them one behind the other.

**Source.** NVIDIA CUTLASS, Task Scheduling validation: alias windows.
"""

from collections.abc import Iterator
from itertools import combinations

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    P = pool(512)
    X = smem(f32, (32,), stages=2, pool=P, offset=0)
    Z = smem(f32, (32,), stages=2, pool=P, offset=128)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, Z, producer=copier, consumer=adder)  # CK315
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

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    P = pool(512)
    X = smem(f32, (32,), stages=2, pool=P, offset=0)
    Z = smem(f32, (32,), stages=2, pool=P, offset=256)
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
    for ring, _ in ctx.rings.values():
        for a, b in combinations(ring.buffers, 2):
            if b in ctx.aliases.get(a, ()):
                yield RULE.at(
                    ring.loc,
                    f"buffers {a} and {b} of ring {ring.name} overlap in their pool",
                    related=[(ctx.program.resource(n).loc, f"{n} lies here") for n in (a, b)],
                    facts={"ring": ring.name, "buffers": [a, b]},
                    helps=("place them at offsets that do not overlap",),
                )


RULE = rule(
    code="CK315",
    name="alias-in-ring",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
