"""All units of a producer make the same copy.

**Rule.** In a producer of several units, each copy of a fill depends on the unit: every unit brings
its own part of the stage.

**If broken.** Each unit loads the whole tile: the traffic is multiplied, and the stage is written
several times over.

**Instead.** A producer of one warp; or give each unit a slice, `X[s][u * 16 : u * 16 + 16]`.

**Source.** CUTLASS, one elected producer thread a pipeline.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=4)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                tma_load(X[s], x[m, 0])  # CK419
    with adder:
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][0, lane()])
                fence_async()
                store(y[m, lane()], v)
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
                store(y[m, lane()], v)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, _ in ctx.rings.values():
        units = ctx.roles[ring.producer].units
        if units == 1:
            continue
        differing = ctx.across_units(ring.producer)
        for site in ctx.sites_of(ctx.body(ring.producer)):
            copies = [view for access, view in site.accesses("smem") if access.action == "write"]
            own = any(e is not None and differing.differs(e) for e in site.call.args)
            into = any(getattr(view, "base", None) in ring.buffers for view in copies)
            if into and not own and site.primitive.convergent:
                yield RULE.at(
                    site.call.loc,
                    f"all {units} units of {ring.producer} make this same copy",
                    facts={"ring": ring.name, "role": ring.producer, "units": units},
                    helps=("use role(warps=1), or copy a slice in each unit",),
                )


RULE = rule(
    code="CK419",
    name="ring-repeated-copy",
    gate="schedule semantics",
    layer="L1",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
