"""A slot is used after it was handed over.

**Rule.** A slot is the consumer's between `wait` and `release`, the producer's between `acquire`
and `commit`. A copy of the slot's name does not lengthen its life.

**If broken.** The other side already reads or overwrites the stage.

**Instead.** Release after the last use; keep values in registers instead of the slot.

**Source.** PTX ISA, mbarrier; deepseek-ai/DeepEP#657; NVIDIA/TIRx-kernels#19.
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
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            s = wait(xs)
            release(xs, s)
            store(y[m, lane()], load(X[s][lane()]))  # CK405
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            s = wait(xs)
            v = load(X[s][lane()])
            release(xs, s)
            store(y[m, lane()], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("use-after-release"):
        yield RULE.at(
            h.at.loc,
            f"{h.subject} is accessed in a slot that has been handed over already",
            facts={"buffer": h.subject},
            helps=("access it before the release, or take the next slot",),
        )


RULE = rule(
    code="CK405",
    name="ring-slot-after-release",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
