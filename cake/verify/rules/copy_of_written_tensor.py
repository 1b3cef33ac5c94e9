"""A tensor is written by ordinary stores and copied by TMA in one kernel.

**Rule.** What a kernel stores to global memory with ordinary instructions is not loaded by TMA or
bulk copies in the same kernel: the engine reads through another proxy, and no statement orders the
two in global memory.

**If broken.** The copy brings a stale tile.

**Instead.** Read it back with `load` after an acquiring access; or let another kernel read it.

**Source.** PTX ISA, Async proxy; deepseek-ai/DeepEP#621, #642.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.footprints import Footprint, footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    X = smem(f32, (1, 32), stages=1)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        store(x[m, lane()], 1.0)
        with xs.fill() as s:
            tma_load(X[s], x[m, 0])  # CK325
    with adder:
        with xs.use() as s:
            v = load(X[s][0, lane()])
            fence_async()
            store(y[m, lane()], v)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    X = smem(f32, (1, 32), stages=1)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m, 0])
    with adder:
        with xs.use() as s:
            v = load(X[s][0, lane()])
            fence_async()
            store(y[m, lane()], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    stored: dict[str, Footprint] = {}
    for f in footprints(ctx):
        if f.access.action != "read" and f.access.proxy == "generic":
            stored.setdefault(f.place.tensor, f)
    for f in footprints(ctx):
        copied = f.access.action == "read" and f.access.proxy == "async"
        if copied and f.place.tensor in stored:
            yield RULE.at(
                f.site.call.loc,
                f"{f.place.tensor} is copied through the async proxy, but this kernel also stores"
                " to it",
                related=[(stored[f.place.tensor].site.call.loc, "stored here")],
                facts={"tensor": f.place.tensor},
                helps=("read it with load(...), or in another kernel",),
            )


RULE = rule(
    code="CK325",
    name="copy-of-written-tensor",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
