"""Tensor memory beyond the rules' own examples: several roles and units, conditions, pairs."""

from __future__ import annotations

import pytest

from cake.verify import Verdict, verify

from .examples import found, programs

HEAD = """
@cake.schedule(target="sm_100a")
def kernel(x: Tensor[bf16, 128, "K"], y: Tensor[f32, 128, 32]):
    require(K > 0)
    require(K % 64 == 0)
    X = smem(bf16, (128, 64), stages=2, swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        cta_sync()
        for k in range(K // 64):
            with xs.fill() as s:
                tma_load(X[s], x[0, k * 64])
        cta_sync()
"""
MATH = """\
    with math:
        tmem_alloc(T, word[0])
        cta_sync()
        for k in range(K // 64):
            s = wait(xs)
            tcgen05_mma(T[0], X[s], X[s].T, init=k == 0)
            tcgen05_commit(xs, s)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)
"""
OUT = """\
    with out:
        cta_sync()
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32)
        tcgen05_wait_ld(r)
        store(y[thread(), 0], r)
        tcgen05_fence_before()
        cta_sync()
"""
RIGHT = HEAD + MATH + OUT


def said(*changes: tuple[str, str]) -> Verdict:
    """The verdict of the rules alone on the right schedule with replacements."""
    text = RIGHT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (program,) = programs(text)
    return verify(program, layers=("L0", "L1"))


def codes(v: Verdict) -> set[str]:
    return {d.code for d in v.diagnostics if d.severity == "error"}


ALLOC = "        tmem_alloc(T, word[0])\n        cta_sync()\n"
FREE = "        tmem_free(T)\n"
WAIT = "        barrier_wait(done, 0, 0)\n"
AFTER = "        tcgen05_fence_after()\n"
DRAIN = "        tcgen05_wait_ld(r)\n"
READ = "        r = tcgen05_ld"
BEFORE = "        tcgen05_fence_before()\n"
LOAD = "        cta_sync()\n        barrier_wait(done"


def test_the_right_schedule_is_accepted() -> None:
    (program,) = programs(RIGHT)
    v = verify(program)
    assert v.status == "accepted", found(v)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param([(FREE, "        if K > 64:\n    " + FREE)], "CK391", id="freed at times"),
        pytest.param(
            [(FREE, FREE + "        tmem_alloc(T, word[0])\n")], "CK391", id="taken again"
        ),
        pytest.param([(FREE, "")], "CK391", id="never freed"),
        pytest.param(
            [
                ("    with math:\n", "    with math as u:\n"),
                ("math = role(warps=1)", "math = role(warps=2)"),
            ],
            "CK391",
            id="each warp allocates",
        ),
        pytest.param(
            [(ALLOC, "        cta_sync()\n        tmem_alloc(T, word[0])\n")],
            "CK392",
            id="allocated behind the barrier",
        ),
        pytest.param([("init=k == 0", "init=False")], "CK394", id="a sum without a start"),
        pytest.param([("init=k == 0", "init=k == 1")], "CK394", id="a sum with a late start"),
        pytest.param([(AFTER + READ, READ)], "CK395", id="no fence behind the wait"),
        pytest.param([(WAIT + AFTER, AFTER + WAIT)], "CK395", id="fence before the wait"),
        pytest.param([(BEFORE, "")], "CK396", id="no fence before the barrier"),
        pytest.param([(BEFORE, ""), (DRAIN, BEFORE + DRAIN)], "CK396", id="fence in flight"),
        pytest.param(
            [
                ("            tcgen05_mma(T[0], X[s], X[s].T, init=k == 0)\n", ""),
            ],
            "CK394",
            id="loaded and never written",
        ),
        pytest.param(
            [
                ("    word = ", "    U = tmem(f32, (128, 256), stages=2)\n    word = "),
                (ALLOC, "        tmem_alloc(U, word[0])\n" + ALLOC),
                (FREE, FREE + "        tmem_free(U)\n"),
            ],
            "CK393",
            id="more than there is",
        ),
    ],
)
def test_a_slip_is_found(changes: list[tuple[str, str]], code: str) -> None:
    v = said(*changes)
    assert code in codes(v), found(v)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("    require(K > 0)\n", "", id="a tile without products"),
        pytest.param("init=k == 0", "init=k > 0", id="a sum with a late start"),
    ],
)
def test_what_the_phase_simulation_finds_unwritten(old: str, new: str) -> None:
    (program,) = programs(RIGHT.replace(old, new))
    v = verify(program, layers=("L2",))
    assert codes(v) == {"CK465"}, found(v)


def test_one_warp_of_a_role_may_allocate_for_all() -> None:
    v = said(
        ("    with math:\n", "    with math as u:\n"),
        ("math = role(warps=1)", "math = role(warps=2)"),
        ("        tmem_alloc", "        if u == 0:\n            tmem_alloc"),
        ("        tmem_free", "        if u == 0:\n            tmem_free"),
    )
    assert not codes(v) & {"CK390", "CK391", "CK392"}, found(v)


def test_a_named_barrier_publishes_the_address_as_well() -> None:
    v = said(
        ("    word = ", "    meet = named_barrier(threads=160)\n    word = "),
        (ALLOC, "        tmem_alloc(T, word[0])\n        named_sync(meet)\n        cta_sync()\n"),
        (LOAD, "        named_sync(meet)\n        barrier_wait(done"),
        (
            "        tcgen05_fence_before()\n",
            "        tcgen05_fence_before()\n        cta_sync()\n",
        ),
    )
    assert "CK392" not in codes(v), found(v)
    assert any("T are allocated" in u for u in v.uncovered), found(v)


def test_conditions_that_correspond_are_left_open() -> None:
    v = said(
        (ALLOC, "        if K > 64:\n            tmem_alloc(T, word[0])\n        cta_sync()\n"),
        (FREE, "        if K > 64:\n            tmem_free(T)\n"),
    )
    assert not codes(v) & {"CK390", "CK391"}, found(v)
    assert any("allocated whenever" in u for u in v.uncovered), found(v)


def test_two_allocations_matter_only_where_ctas_share_an_sm() -> None:
    two = (
        ("    word = ", "    U = tmem(f32, (128, 256), stages=1)\n    word = "),
        ("word = smem(u32, (1,))", "word = smem(u32, (2,))"),
        (ALLOC, "        tmem_alloc(U, word[1])\n" + ALLOC),
        (FREE, FREE + "        tmem_free(U)\n"),
    )
    v = said(*two)
    assert "CK393" not in codes(v), found(v)
    assert any("each other's columns" in u for u in v.uncovered), found(v)
    alone = said(*two, ("(128, 64), stages=2", "(128, 64), stages=8"))
    assert not any("each other's columns" in u for u in alone.uncovered), found(alone)


def test_a_barrier_tells_of_earlier_work_once() -> None:
    """Behind the fence of the first barrier after the loads, later barriers need none."""
    barrier = "        cta_sync()\n"
    more = "        tcgen05_mma(T[0], X[0], X[0].T, init=True)\n        tcgen05_commit(done, 0)\n"
    last = [
        (barrier + FREE, barrier + AFTER + barrier + more + barrier + FREE),
        (BEFORE + barrier, BEFORE + 3 * barrier),
        (barrier + "    with math", 3 * barrier + "    with math"),
    ]
    v = said(*last)
    assert not codes(v) & {"CK395", "CK396"}, found(v)
    assert "CK395" in codes(said((last[0][0], last[0][1].replace(AFTER, "")), *last[1:]))
