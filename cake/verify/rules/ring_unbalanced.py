"""A role takes more slots of a ring than it hands over, or the other way round.

**Rule.** Every `acquire` is followed by one `commit` of its slot, every `wait` by one `release`,
on every path and for all sizes. (A bracket does both.)

**If broken.** A slot that is not handed over is lost to the other side, which waits for ever; one
handed over twice lets a barrier open early.

**Instead.** Use `with ring.fill()` and `with ring.use()`. With look-ahead, hand over behind the
loop what the last round still holds.

**Source.** PTX ISA, mbarrier; triton-lang/triton#8969; tile-ai/tilelang#2360.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import Assign, Call, Do, RoleBody, VarRef, child_blocks, walk_calls, walk_stmts
from cake.ops.rings import ring_step
from cake.verify.context import Context
from cake.verify.ring_steps import StepKind, compare
from cake.verify.rule import Uncovered, rule

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
            s = wait(xs)  # CK403
            store(y[m, lane()], load(X[s][lane()]))
            if m > 0:
                release(xs, s)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M > 0)
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        last = wait(xs)
        for m in range(1, M):
            store(y[m - 1, lane()], load(X[last][lane()]))
            s = wait(xs)
            release(xs, last)
            last = s
        store(y[M - 1, lane()], load(X[last][lane()]))
        release(xs, last)
"""

_ENDS: dict[StepKind, StepKind] = {"acquire": "commit", "wait": "release"}


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for ring in ctx.countable():
        for first, role in (("acquire", ring.producer), ("wait", ring.consumer)):
            kind: StepKind = "acquire" if first == "acquire" else "wait"
            last, body = _ENDS[kind], ctx.body(role)
            result = compare(ctx, (body, ring.name, kind), (body, ring.name, last))
            if result.proved:
                continue
            if result.sample is None:
                slip = _slip(ring.name, body, first, last)
                if slip is None:
                    yield Uncovered(f"whether {role} hands over every slot of ring {ring.name}")
                else:
                    yield RULE.at(slip[0].loc, slip[1], facts={"ring": ring.name, "role": role})
                continue
            fills, uses = ctx.ring_places(ring.name)
            place = (fills if kind == "acquire" else uses)[0]
            yield RULE.at(
                place.loc,
                f"for {result.sample} role {role} takes {result.first} slots of ring {ring.name}"
                f" by {kind} and hands over {result.second} by {last}",
                facts={
                    "ring": ring.name,
                    "role": role,
                    "taken": result.first,
                    "handed_over": result.second,
                },
                helps=(f"each {kind} needs one {last} on every path",),
            )


def _slip(ring: str, body: RoleBody, first: str, last: str) -> tuple[Call, str] | None:
    """A slot that is plainly never handed over, or twice in one block, however often that runs."""
    steps = [c for c in walk_calls(body.body) if _is(c, ring, first) or _is(c, ring, last)]
    if steps and not any(_is(c, ring, last) for c in steps):
        return steps[0], f"no {last} hands over the slots of ring {ring} that {first} takes"
    for block in (body.body, *(b for s in walk_stmts(body.body) for b in child_blocks(s))):
        given: set[str] = set()
        for s in block:
            given -= {t for x in walk_stmts((s,)) if isinstance(x, Assign) for t in x.targets}
            slot = s.call.args[1] if isinstance(s, Do) and _is(s.call, ring, last) else None
            if isinstance(s, Do) and isinstance(slot, VarRef):
                if slot.name in given:
                    return s.call, f"the slot {slot.name} of ring {ring} is handed over again"
                given.add(slot.name)
    return None


def _is(call: Call, ring: str, step: str) -> bool:
    return ring_step(call) == step and getattr(call.args[0], "name", None) == ring


RULE = rule(
    code="CK403",
    name="ring-unbalanced",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
