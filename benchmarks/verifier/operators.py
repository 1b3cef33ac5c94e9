"""Mutation operators over statements that synchronise: fences, waits, commits, barriers, rings.

An operator yields edits of a program. ``equivalent`` is the argument why its mutants mean the same
as the original: they measure false alarms instead of kills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from benchmarks.verifier.commute import commutes
from benchmarks.verifier.edits import (
    Site,
    Statements,
    effect,
    number,
    shifted,
    sites,
    with_expr,
    with_resource,
    with_statements,
)
from cake.ir.nodes import Bracket, Call, Const, Do, Node, ResourceRef, Static, Stmt
from cake.ir.program import Barrier, NamedBarrier, Pipeline, Program, Role, Smem

FENCES = ("fence", "fence_async", "tcgen05_fence_before", "tcgen05_fence_after")
COMMITS = ("cp_async_commit", "tma_store_commit", "tcgen05_commit")
DRAINS = ("cp_async_wait", "tma_store_wait", "wgmma_wait", "tcgen05_wait_ld")
BARRIERS = ("cta_sync", "role_sync", "unit_sync")
CLUSTER = ("cluster_sync", "cluster_arrive", "cluster_wait")
NAMED = ("named_sync", "named_arrive")
RING = ("acquire", "commit", "wait", "release")
MBARRIER = ("arrive", "barrier_wait", "expect_tx")
SEPARATING = FENCES + DRAINS + BARRIERS + CLUSTER + NAMED
"""What orders the accesses before it against those after it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edit:
    """One mutation: the nodes of the original that changed, and the new program.

    ``equivalent`` says why it means the same, where that is decided from the text alone.
    """

    nodes: tuple[Node, ...]
    program: Program
    equivalent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A kind of slip. See the module.

    ``only_slack``: the mutants order more, or leave less slack, than the original. If they come to
    an end at all, they mean the same; the text says why. ``values``: the mutants compute something
    else and stay defined.
    """

    name: str
    apply: Callable[[Program], Iterator[Edit]]
    equivalent: str | None = None
    only_slack: str | None = None
    values: bool = False


def op_of(stmt: Stmt | None) -> str:
    """The primitive that a statement executes, the empty text for other statements."""
    # `s = acquire(ring)` and `s = wait(ring)` are assignments.
    call = effect(stmt) if stmt is not None else None
    if call is None:
        value = getattr(stmt, "value", None)
        call = value if isinstance(value, Call) else None
    return call.op if call is not None else ""


def executing(program: Program, ops: tuple[str, ...]) -> Iterator[Site]:
    """Sites that execute one of ``ops``."""
    return (s for s in sites(program) if op_of(s.stmt) in ops)


def dropping(*ops: str) -> Callable[[Program], Iterator[Edit]]:
    """Leave out one statement that executes one of ``ops``."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in executing(program, ops):
            if isinstance(site.stmt, Do):
                yield Edit(nodes=(site.stmt,), program=with_statements(program, {site.stmt: ()}))

    return apply


def duplicating(*ops: str, same: str | None = None) -> Callable[[Program], Iterator[Edit]]:
    """Execute a statement twice; ``same`` says why that means the same."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in executing(program, ops):
            if isinstance(site.stmt, Do):
                twice: dict[Stmt, Statements] = {site.stmt: (site.stmt, site.stmt)}
                # The other roles would have to meet once more too.
                alone = op_of(site.stmt) != "cta_sync" or len(program.roles) == 1
                yield Edit(
                    nodes=(site.stmt,),
                    program=with_statements(program, twice),
                    equivalent=same if alone else None,
                )

    return apply


def moving(*ops: str, by: int) -> Callable[[Program], Iterator[Edit]]:
    """Let a statement change places with the one before (-1) or after (+1) it."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in executing(program, ops):
            other = site.index + by
            if 0 <= other < len(site.block):
                yield exchange(program, site.stmt, site.block[other])

    return apply


def exchange(program: Program, one: Stmt, two: Stmt) -> Edit:
    """Two statements of a block change places."""
    return Edit(
        nodes=(one, two),
        program=with_statements(program, {one: (two,), two: (one,)}),
        equivalent=commutes(program, one, two),
    )


def swap_fence_and_barrier(program: Program) -> Iterator[Edit]:
    """A fence next to a barrier: the barrier comes first."""
    meeting = BARRIERS + NAMED + CLUSTER
    for site in executing(program, FENCES):
        if op_of(site.following) in meeting and site.following is not None:
            yield exchange(program, site.stmt, site.following)


def swap_neighbours(program: Program) -> Iterator[Edit]:
    """Two neighbouring statements with effects change places."""
    for site in sites(program):
        nxt = site.following
        # What a statement declares must stay before its use; the language would refuse it.
        if isinstance(site.stmt, Do) and isinstance(nxt, Do):
            yield exchange(program, site.stmt, nxt)


def wait_distance(by: int) -> Callable[[Program], Iterator[Edit]]:
    """A wait leaves ``by`` more groups unfinished."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in executing(program, DRAINS):
            call = effect(site.stmt)
            if call is None or not call.args:
                continue
            pending = call.args[0]
            if isinstance(pending, Static | Const) and int(pending.value) + by >= 0:
                new = with_expr(site.stmt, pending, number(pending, int(pending.value) + by))
                yield Edit(
                    nodes=(site.stmt,), program=with_statements(program, {site.stmt: (new,)})
                )

    return apply


def stages(by: int) -> Callable[[Program], Iterator[Edit]]:
    """All buffers of a ring, or one staged buffer outside rings, get ``by`` more stages."""

    def apply(program: Program) -> Iterator[Edit]:
        rings: tuple[Pipeline, ...] = program.find(Pipeline)
        in_rings = {b for r in rings for b in r.buffers}
        groups = [r.buffers for r in rings]
        groups += [
            (s.name,) for s in program.find(Smem) if s.stages is not None and s.name not in in_rings
        ]
        for names in groups:
            made, changed = program, []
            for name in names:
                decl = program.resource(name)
                if isinstance(decl, Smem) and decl.stages is not None and decl.stages + by > 0:
                    made = with_resource(made, decl, replace(decl, stages=decl.stages + by))
                    changed.append(decl)
            if changed:
                yield Edit(nodes=tuple(changed), program=made)

    return apply


def release_before_read(program: Program) -> Iterator[Edit]:
    """A release comes right after the wait of the same slot, before the slot is read."""
    for site in executing(program, ("release", "commit")):
        call = effect(site.stmt)
        slot = getattr(call.args[1], "name", None) if call is not None else None
        for earlier in site.block[: site.index - 1]:
            if slot is not None and slot in getattr(earlier, "targets", ()):
                edits = {earlier: (earlier, site.stmt), site.stmt: ()}
                yield Edit(nodes=(site.stmt,), program=with_statements(program, edits))


def arrive_before_wait(program: Program) -> Iterator[Edit]:
    """An arrival comes before a wait of the same block that stood before it."""
    for site in executing(program, ("named_arrive", "arrive", "cluster_arrive")):
        for earlier in site.block[: site.index]:
            if op_of(earlier) in ("named_sync", "barrier_wait", "cluster_wait", "wait"):
                edits = {earlier: (site.stmt, earlier), site.stmt: ()}
                yield Edit(nodes=(site.stmt,), program=with_statements(program, edits))


def unbracket(program: Program) -> Iterator[Edit]:
    """``with ring.use() as s``: the body's last statement leaves the bracket (early release)."""
    for site in sites(program):
        if isinstance(site.stmt, Bracket) and site.stmt.body:
            *kept, last = site.stmt.body
            inner = replace(site.stmt, body=tuple(kept))
            edits: dict[Stmt, Statements] = {site.stmt: (inner, last)}
            yield Edit(nodes=(site.stmt, last), program=with_statements(program, edits))


def drop_bracket(program: Program) -> Iterator[Edit]:
    """A whole fill or use of a ring is left out."""
    for site in sites(program):
        if isinstance(site.stmt, Bracket):
            yield Edit(nodes=(site.stmt,), program=with_statements(program, {site.stmt: ()}))


def barrier_count(by: int) -> Callable[[Program], Iterator[Edit]]:
    """A barrier expects one warp, or one arrival, more or less."""

    def apply(program: Program) -> Iterator[Edit]:
        for named in program.find(NamedBarrier):
            new = replace(named, threads=named.threads + 32 * by)
            yield Edit(nodes=(named,), program=with_resource(program, named, new))
        for barrier in program.find(Barrier):
            more = replace(barrier, arrivals=barrier.arrivals + by)
            yield Edit(nodes=(barrier,), program=with_resource(program, barrier, more))

    return apply


def role_size(by: int) -> Callable[[Program], Iterator[Edit]]:
    """A role has one unit more or less."""

    def apply(program: Program) -> Iterator[Edit]:
        for role in program.find(Role):
            if role.units + by > 0:
                new = replace(role, units=role.units + by)
                yield Edit(nodes=(role,), program=with_resource(program, role, new))

    return apply


def retarget_barrier(program: Program) -> Iterator[Edit]:
    """A barrier operation names the next slot, or another barrier of the same kind."""
    barriers: list[NamedBarrier | Barrier] = [
        r for r in program.resources if isinstance(r, NamedBarrier | Barrier)
    ]
    for site in executing(program, NAMED + MBARRIER):
        call = effect(site.stmt)
        ref = call.args[0] if call is not None else None
        if call is None or not isinstance(ref, ResourceRef):
            continue
        own = next(b for b in barriers if b.name == ref.name)
        if own.slots > 1 and call.args[1] is not None:
            new = with_expr(site.stmt, call.args[1], shifted(call.args[1], 1))
            yield Edit(nodes=(site.stmt,), program=with_statements(program, {site.stmt: (new,)}))
        for other in barriers:
            if other is not own and type(other) is type(own):
                new = with_expr(site.stmt, ref, replace(ref, name=other.name))
                edits = {site.stmt: (new,)}
                yield Edit(nodes=(site.stmt,), program=with_statements(program, edits))


_STRICTER = "a wait that leaves fewer groups unfinished delays, and changes no result"
_IDEMPOTENT = "a second fence or wait in the same place orders nothing anew"
_SLACK = "fewer stages take away slack; roles that still come to an end take the same steps"
_RENDEZVOUS = "all threads meet once more in the same place; nothing depends on the number"

SYNC_OPERATORS: tuple[Operator, ...] = (
    Operator(name="drop fence", apply=dropping(*FENCES)),
    Operator(name="swap fence and barrier", apply=swap_fence_and_barrier),
    Operator(name="move fence up", apply=moving(*FENCES, by=-1)),
    Operator(name="move fence down", apply=moving(*FENCES, by=1)),
    Operator(name="duplicate fence", apply=duplicating(*FENCES, *DRAINS, same=_IDEMPOTENT)),
    Operator(name="duplicate barrier", apply=duplicating(*BARRIERS, same=_RENDEZVOUS)),
    Operator(name="drop commit", apply=dropping(*COMMITS)),
    Operator(name="drop wait", apply=dropping(*DRAINS, "pdl_wait", "barrier_wait")),
    Operator(name="wait distance + 1", apply=wait_distance(1)),
    Operator(name="wait distance - 1", apply=wait_distance(-1), equivalent=_STRICTER),
    Operator(name="stages - 1", apply=stages(-1), only_slack=_SLACK),
    Operator(name="release before read", apply=release_before_read),
    Operator(name="arrive before wait", apply=arrive_before_wait),
    Operator(name="drop ring step", apply=dropping(*RING)),
    Operator(name="duplicate ring step", apply=duplicating("release", "commit")),
    Operator(name="drop fill or use", apply=drop_bracket),
    Operator(name="leave bracket early", apply=unbracket),
    Operator(name="barrier count + 1 warp", apply=barrier_count(1)),
    Operator(name="barrier count - 1 warp", apply=barrier_count(-1)),
    Operator(name="role + 1 unit", apply=role_size(1)),
    Operator(name="role - 1 unit", apply=role_size(-1), values=True),
    Operator(name="retarget barrier", apply=retarget_barrier),
    Operator(name="drop named barrier step", apply=dropping(*NAMED, "arrive", "expect_tx")),
    Operator(name="drop cluster barrier", apply=dropping(*CLUSTER)),
    Operator(name="drop barrier", apply=dropping(*BARRIERS)),
    Operator(name="move barrier down", apply=moving(*BARRIERS, *CLUSTER, by=1)),
    Operator(name="move barrier up", apply=moving(*BARRIERS, *CLUSTER, by=-1)),
    Operator(name="move ring step up", apply=moving("release", "commit", by=-1)),
    Operator(name="move wait down", apply=moving(*DRAINS, by=1)),
    Operator(name="move commit up", apply=moving(*COMMITS, by=-1)),
    Operator(name="swap statements", apply=swap_neighbours),
)
