"""A ring's buffer is accessed other than at a slot that the ring handed out.

**Rule.** The consumer accesses a ring's buffers at the slot of a use; other roles do not access
them.

**If broken.** The stage may be free, or in the middle of a fill.

**Instead.** Access `X[s]` inside `with ring.use() as s:`. If a second role needs the data, give
it a ring of its own.

**Source.** PTX ISA, mbarrier; deepseek-ai/DeepEP#657.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Pipeline
from cake.ir.types import Slot
from cake.verify.context import Context
from cake.verify.memory_items import views
from cake.verify.rule import rule
from cake.verify.sites import Site

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
            with xs.use() as s:
                store(y[m, lane()], load(X[m % 2][lane()]))  # CK409
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
    for site in ctx.sites:
        for access, view in views(site):
            ring = ctx.owner.get(view.base)
            if ring is None or (site.role.role == ring.producer and access.action != "read"):
                continue
            slot = view.stage is not None and view.stage.type == Slot(ring.name)
            if site.role.role not in (ring.producer, ring.consumer) or not slot:
                yield _report(site, ring, view.base)


def _report(site: Site, ring: Pipeline, buffer: str) -> Diagnostic:
    return RULE.at(
        site.call.loc,
        f"role {site.role.role} accesses {buffer} of ring {ring.name} outside a slot of the ring",
        facts={"ring": ring.name, "role": site.role.role, "buffer": buffer},
        helps=(f"access it at the slot of `with {ring.name}.use() as s:` in {ring.consumer}",),
    )


RULE = rule(
    code="CK409",
    name="ring-stray-access",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
