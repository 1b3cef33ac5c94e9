"""A role fills or uses a ring that was declared for others.

**Rule.** Only the declared producer fills a ring, only the declared consumer uses it: barriers
count their arrivals by these roles' warps.

**If broken.** Barriers open too early or never.

**Instead.** Name the right role in `pipeline(...)`; for another pair of roles declare another
ring.

**Source.** PTX ISA, mbarrier.init; NVIDIA CUTLASS, Task Scheduling validation.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.ring_steps import StepKind
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    other = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]))
    with other:
        s = wait(xs)  # CK407
        release(xs, s)
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
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]))
"""

_OWNER: dict[StepKind, str] = {"acquire": "producer", "wait": "consumer"}


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, _ in ctx.rings.values():
        for kind, side in _OWNER.items():
            owner = ring.producer if side == "producer" else ring.consumer
            for body in ctx.program.roles:
                if body.role == owner:
                    continue
                for step in ctx.steps(body.role, ring.name, kind):
                    yield RULE.at(
                        step.stmt.loc,
                        f"role {body.role} takes a slot of ring {ring.name}, whose {side} is"
                        f" {owner}",
                        facts={"ring": ring.name, "role": body.role, "side": side},
                        helps=(f"declare {side}={body.role}, or use another ring",),
                    )


RULE = rule(
    code="CK407",
    name="ring-wrong-role",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
