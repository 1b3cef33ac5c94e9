"""What is derived for a ring: bytes, counts, who arrives, which fences."""

from __future__ import annotations

import pytest

from cake.diag import Span
from cake.ir.dtypes import BF16, I32
from cake.ir.nodes import (
    Assign,
    Bracket,
    Call,
    Const,
    Do,
    ResourceRef,
    RoleBody,
    TensorRef,
    VarRef,
    View,
)
from cake.ir.program import Pipeline, Program, Role, Smem
from cake.ir.types import Resource, Scalar, Slot, SmemView, TensorPlace, Void
from cake.ops.base import lookup
from cake.ops.rings import RingFacts, ring_facts
from tests.ops.schedules import program

HERE = Span(file="ring.py", line=1, col=1, end_line=1, end_col=2)

DECLS = """
load = role(warps={producers})
math = role(warpgroups=2)
X = smem(bf16, (64, 64), stages=3, swizzle=128)
Q = smem(f32, (64,), stages=3)
p = pipeline(X, Q, producer=load, consumer=math)
"""
USE = """
with math as u:
    with p.use() as s:
        a = load(Q[s][lane()])
"""


def facts(fill: str, use: str = USE, *, producers: int = 1) -> RingFacts:
    """Facts of ring p whose producer is ``fill``."""
    made = program(f"with load as w:\n{fill}\n{use}", DECLS.format(producers=producers))
    return ring_facts(made, "p")


def test_a_ring_filled_by_tma_announces_the_bytes_and_arrives_at_once() -> None:
    found = facts(
        """
    with p.fill() as s:
        tma_load(X[s], x[0, 0, 0])
        bulk_load(Q[s], v[0])
"""
    )
    assert found.bytes == 64 * 64 * 2 + 64 * 4
    assert found.fills[0].early
    assert (found.full_count, found.empty_count) == (1, 8)
    assert (found.arrival, found.fence, found.drain) == ("warps", False, False)
    assert found.fill_kinds == {"copy"}


def test_hand_built_program_without_the_front_end() -> None:
    slot = VarRef(name="s", type=Slot("p"), loc=HERE)
    zero = Const(value=0, type=Scalar(I32), loc=HERE)
    view = View(
        base="X", stage=slot, offsets=(zero, zero), type=SmemView(BF16, (8, 64), 128), loc=HERE
    )
    ring = ResourceRef(name="p", type=Resource("pipeline"), loc=HERE)
    place = TensorRef(tensor="x", index=(zero, zero), type=TensorPlace(BF16, 2), loc=HERE)
    acquire = Call(op="acquire", args=(ring,), type=Slot("p"), loc=HERE)
    commit = Call(op="commit", args=(ring, slot), type=Void(), loc=HERE)
    load = lookup("tma_load")
    assert load is not None
    others = [None] * (len(load.params) - 2)
    copy = Call(op="tma_load", args=(view, place, *others), type=Void(), loc=HERE)
    body = (
        Assign(targets=("s",), declares=(True,), value=acquire, loc=HERE),
        Do(call=copy, loc=HERE),
        Do(call=commit, loc=HERE),
    )
    bracket = Bracket(pipeline="p", side="fill", slot="s", body=body[1:2], loc=HERE)
    made = Program(
        name="k",
        target="sm_90a",
        params=(),
        metas=(),
        guards=(),
        lets=(),
        resources=(
            Smem(
                name="X",
                dtype=BF16,
                shape=(8, 64),
                stages=2,
                swizzle=128,
                pool=None,
                offset=None,
                loc=HERE,
            ),
            Role(name="load", units=1, warpgroup=False, regs=None, loc=HERE),
            Role(name="math", units=3, warpgroup=False, regs=None, loc=HERE),
            Pipeline(
                name="p",
                buffers=("X",),
                stages=2,
                producer="load",
                consumer="math",
                multicast=False,
                loc=HERE,
            ),
        ),
        roles=(RoleBody(role="load", unit=None, body=(*body, bracket), loc=HERE),),
        loc=HERE,
    )
    found = ring_facts(made, "p")
    assert found.fill(acquire).bytes == found.fill(bracket).bytes == 1024
    assert found.fill_ended_by(commit).site is acquire
    assert (found.full_count, found.empty_count) == (1, 3)
    with pytest.raises(KeyError, match="begins"):
        found.fill(commit)


def test_every_producing_warp_arrives_once() -> None:
    found = facts(
        """
    with p.fill() as s:
        tma_load(X[s][w * 16 : w * 16 + 16], x[0, w * 16, 0])
""",
        producers=4,
    )
    assert found.full_count == 4
    assert found.bytes == 16 * 64 * 2


def test_stores_arrive_late_and_are_fenced_for_an_asynchronous_reader() -> None:
    found = facts(
        """
    with p.fill() as s:
        store(Q[s][lane()], 1.0)
        tma_load(X[s], x[0, 0, 0])
""",
        use="""
with math as u:
    with p.use() as s:
        tma_store(z[0, 0], X[s])
""",
    )
    assert found.fill_kinds == {"store", "copy"}
    assert not found.fills[0].early
    assert found.bytes == 64 * 64 * 2
    assert found.consumer_proxies == {"async"}
    assert (found.arrival, found.fence, found.drain) == ("warps", True, False)


@pytest.mark.parametrize(
    ("use", "arrival", "count", "fence"),
    [
        (USE, "threads", 32, False),
        (USE.replace("a = load(Q[s][lane()])", "tma_store(z[0, 0], X[s])"), "warps", 1, True),
    ],
)
def test_cp_async_arrives_by_itself_unless_it_must_be_fenced(
    use: str, arrival: str, count: int, fence: bool
) -> None:
    found = facts("    with p.fill() as s:\n        cp_async(X[s], x[0, 0, 0])", use)
    assert (found.arrival, found.full_count, found.fence) == (arrival, count, fence)
    assert found.drain == (arrival == "warps")


def test_bytes_count_compile_time_loops() -> None:
    found = facts(
        """
    with p.fill() as s:
        for i in range(4):
            tma_load(X[s][i * 16 : i * 16 + 16], x[0, i * 16, 0])
"""
    )
    assert found.bytes == 64 * 64 * 2


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            """
    with p.fill() as s:
        if M > 5:
            tma_load(X[s], x[0, 0, 0])
""",
            "copy 8192 and 0 bytes",
        ),
        (
            """
    with p.fill() as s:
        for i in range(M):
            tma_load(X[s], x[0, 0, 0])
""",
            "known only at run time",
        ),
        ("    s = acquire(p)\n    tma_load(X[s], x[0, 0, 0])", "never committed"),
        (
            """
    s = acquire(p)
    if M > 5:
        commit(p, s)
""",
            "only one branch",
        ),
        (
            """
    s = acquire(p)
    for i in range(4):
        commit(p, s)
        s = acquire(p)
    commit(p, s)
""",
            "fill ends|uncommitted|carries",
        ),
    ],
)
def test_disagreeing_paths_are_recorded_not_guessed(body: str, why: str) -> None:
    found = facts(body)
    reasons = [f.why for f in found.fills if f.why is not None]
    assert any(any(w in r for w in why.split("|")) for r in reasons), reasons
    assert any(f.bytes is None for f in found.fills)


def test_equal_branches_agree() -> None:
    found = facts(
        """
    with p.fill() as s:
        if M > 5:
            tma_load(X[s], x[0, 0, 0])
        else:
            tma_load(X[s], x[0, 64, 0])
"""
    )
    assert found.bytes == 64 * 64 * 2
    assert found.fills[0].why is None


def test_a_copy_onto_a_raw_barrier_is_not_the_rings() -> None:
    made = program(
        "with load:\n    with p.fill() as s:\n        tma_load(X[s], x[0, 0, 0], barrier=b)\n"
        + USE,
        DECLS.format(producers=1) + "b = barrier(arrivals=1)",
    )
    found = ring_facts(made, "p")
    assert found.bytes == 0
    assert found.fill_kinds == frozenset()


def test_a_write_outside_a_fill_is_stray() -> None:
    found = facts(
        """
    with p.fill() as s:
        tma_load(X[s], x[0, 0, 0])
    store(Q[0][lane()], 1.0)
"""
    )
    assert [c.op for c in found.stray] == ["store"]


def test_a_multicast_ring_collects_releases_of_the_whole_cluster() -> None:
    decls = DECLS.format(producers=1).replace("consumer=math)", "consumer=math, multicast=True)")
    fill = "    with p.fill() as s:\n        tma_load(X[s], x[0, 0, 0], multicast=True)"
    found = ring_facts(program(f"with load:\n{fill}\n{USE}", "cluster(2)\n" + decls), "p")
    assert (found.full_count, found.empty_count) == (1, 16)
    assert found.bytes == 64 * 64 * 2
