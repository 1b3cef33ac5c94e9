"""The producer writes a buffer of its ring outside any fill.

**Rule.** The producer writes a ring's buffers only at the slot of a fill, between its start and
its end.

**If broken.** The consumer may be reading that stage. Bytes of a stray TMA copy are not
announced, so the barrier's count goes wrong as well.

**Instead.** Write inside `with ring.fill() as s:` at stage `s`.

**Source.** PTX ISA, mbarrier; NVIDIA/TIRx-kernels#19.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.ring_fills import accesses
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
            store(X[m % 2][lane()], load(x[m, lane()]))  # CK408
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]))
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


def check(ctx: Context) -> Iterator[Diagnostic]:
    late = {id(h.at) for h in ctx.hazards_of("use-after-release")}
    for ring, facts in ctx.rings.values():
        for call in facts.stray:
            written = {view.base for _, view in accesses(call, "write")}
            if id(call) not in late and written & ctx.owner.keys():
                yield RULE.at(
                    call.loc,
                    f"role {ring.producer} writes a buffer of ring {ring.name} outside a fill",
                    facts={"ring": ring.name, "role": ring.producer},
                    helps=(f"write it at the slot of `with {ring.name}.fill() as s:`",),
                )


RULE = rule(
    code="CK408",
    name="ring-stray-write",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
