"""Roles wait for each other in a circle.

**Rule.** Taking slots and meeting at hardware barriers in the order in which the roles write
them, all roles come to an end. The rings' stages are the only credits.

**If broken.** Deadlock. It may need a certain number of steps or tiles to show.

**Instead.** Take slots along the flow of the data: what a role needs first must be handed over
before the other role waits for something of this one. A ring that goes back needs a stage more,
or a step that does not wait.

**Source.** marin-community/marin#8311; facebookexperimental/triton#1121; G. Kahn, The semantics
of a simple language for parallel programming, 1974.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.concrete import Sample
from cake.verify.context import Context
from cake.verify.rule import Uncovered, rule
from cake.verify.tokens import Blocked, TokenRun, actors
from cake.verify.trace import Event, Undecided, events

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    P = smem(f32, (32,), stages=1)
    Q = smem(f32, (32,), stages=1)
    first = role(warps=1)
    second = role(warps=1)
    ps = pipeline(P, producer=first, consumer=second)
    qs = pipeline(Q, producer=second, consumer=first)
    with first:
        v = 0.0
        for m in range(M):
            with qs.use() as q:  # CK414
                v = load(Q[q][lane()])
            with ps.fill() as p:
                store(P[p][lane()], v + load(x[m, lane()]))
    with second:
        v = 0.0
        for m in range(M):
            with ps.use() as p:
                v = load(P[p][lane()])
            with qs.fill() as q:
                store(Q[q][lane()], v)
            store(y[m, lane()], v)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    P = smem(f32, (32,), stages=1)
    Q = smem(f32, (32,), stages=1)
    first = role(warps=1)
    second = role(warps=1)
    ps = pipeline(P, producer=first, consumer=second)
    qs = pipeline(Q, producer=second, consumer=first)
    with first:
        for m in range(M):
            with ps.fill() as p:
                store(P[p][lane()], load(x[m, lane()]))
            with qs.use() as q:
                store(y[m, lane()], load(Q[q][lane()]))
    with second:
        v = 0.0
        for m in range(M):
            with ps.use() as p:
                v = load(P[p][lane()])
            with qs.fill() as q:
                store(Q[q][lane()], v * 2.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    if len(ctx.rings) + len(ctx.named_barriers) < 2 or len(list(ctx.countable())) < len(ctx.rings):
        return
    tried, everyone = False, actors(ctx.program)
    for sample in ctx.samples:
        try:
            steps = {a: events(ctx.program, a.role, sample, a.unit) for a in everyone}
        except Undecided:
            continue
        tried = True
        blocked = TokenRun(ctx.program, steps).run()
        if blocked:
            yield _report(blocked, sample)
            return
    if not tried:
        what = "whether the roles can wait for each other in a circle: it depends on data"
        yield Uncovered(what, decider="L2")


def _report(blocked: tuple[Blocked, ...], sample: Sample) -> Diagnostic:
    first, *others = sorted(blocked, key=lambda b: b.event.place.loc)
    waits = "; ".join(dict.fromkeys(f"{b.actor.role} waits {_for(b.event)}" for b in blocked))
    return RULE.at(
        first.event.place.loc,
        f"for {sample} no role can go on: {waits}",
        related=[(b.event.place.loc, f"{b.actor.role} waits {_for(b.event)}") for b in others],
        facts={"roles": [b.actor.role for b in blocked], **sample.sizes},
        helps=("take slots in the order in which data flows", "add a stage to the ring going back"),
    )


def _for(event: Event) -> str:
    if event.kind == "acquire":
        return f"for a free slot of {event.what}"
    return f"for data of {event.what}" if event.kind == "wait" else f"at barrier {event.what}"


RULE = rule(
    code="CK414",
    name="ring-deadlock",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
