"""A slot is handed back to TMA after ordinary reads, without a proxy fence.

**Rule.** Ordinary loads of a slot and the TMA copy that overwrites it are accesses of different
proxies. By the letter of the memory model a proxy fence orders them: `fence_async()` after the
last read, before the release. Contested: CUTLASS and most kernels hand slots back by mbarrier
alone.

**If broken.** DeepEP saw stale reads on one system; elsewhere no harm is known.

**Instead.** `fence_async()` after the last `load`, `cols`, `rows` or `ldmatrix` of the slot. At
level `idiom` this is a note.

**Source.** PTX ISA, Memory Consistency Model: proxies; deepseek-ai/DeepEP#642;
NVIDIA/TransformerEngine#2695; triton-lang/triton#10668.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                tma_load(X[s], x[m, 0])
    with adder:
        for m in range(M):
            with xs.use() as s:  # CK353
                v = load(X[s][0, lane()])
                store(y[m, lane()], v + 1.0)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                tma_load(X[s], x[m, 0])
    with adder:
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][0, lane()])
                fence_async()
                store(y[m, lane()], v + 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("release-unfenced"):
        if h.site is not None:
            yield RULE.at(
                h.at.loc,
                f"a slot with {h.subject} goes back to TMA after ordinary accesses without a proxy"
                " fence",
                label="the slot is released at the end of this",
                related=[(h.site.call.loc, "accessed here")],
                facts={"buffer": h.subject},
                helps=("write fence_async() after the last access to the slot",),
            )


RULE = rule(
    code="CK353",
    name="release-unfenced",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    contested=True,
    bad=BAD,
    good=GOOD,
)
