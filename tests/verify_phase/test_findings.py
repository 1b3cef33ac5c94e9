"""What a finding says beyond its code: places, phases, sizes, trace; and what is left open."""

from __future__ import annotations

import pytest

from cake.diag import Code, explain
from cake.verify.phase import codes
from tests.verify_phase.schedules import GEMM, LENGTHS, RAW, checked, edited, line

CODES = [code for code in vars(codes).values() if isinstance(code, Code)]


@pytest.mark.parametrize("code", CODES, ids=lambda c: c.name)
def test_the_page_says_rule_consequence_remedy_and_source(code: Code) -> None:
    page = explain(code.code)
    for part in ("**Rule.**", "**If broken.**", "**Instead.**", "**Source.**"):
        assert part in page, part
    assert "CK450" <= code.code <= "CK479"
    assert code.name.startswith("phase-")


def test_a_deadlock_names_who_waits_for_what_at_the_smallest_sizes() -> None:
    text = edited(RAW, ("(n // 3 + 1) % 2", "n // 3 % 2"))
    (found,), _ = checked(text)
    assert found.facts["sizes"] == ["M = 1", "K = 32"]
    assert (found.facts["barrier"], found.facts["slot"], found.facts["phase"]) == ("free[0]", 0, 0)
    assert found.facts["waiting"] == [
        "copier[0] for phase 0 of free[0]",
        "adder[0] for phase 0 of full[0]",
        "adder[1] for phase 0 of full[0]",
    ]
    assert "2 of 2 arrivals are due" in found.message
    assert any("would reach free[0] here" in r.message for r in found.related)
    trace = found.facts["trace"]
    assert trace == [
        ["copier[0]", "wait for ever", "free[0]", 0, 16],
        ["adder[0]", "wait for ever", "full[0]", 0, 26],
        ["adder[1]", "wait for ever", "full[0]", 0, 26],
    ]


def test_a_race_names_both_accesses_and_the_signal_between_them() -> None:
    text = edited(GEMM, ("wgmma_wait(1)", "wgmma_wait(2)"))
    (found, _), _ = checked(text)
    assert found.code == "CK452"
    read, signal = found.related
    lines = text.split("\n")
    assert "wgmma(acc, A[last]" in lines[read.span.line - 1]
    assert "release(ab, last)" in lines[signal.span.line - 1]
    assert (found.facts["buffer"], found.facts["stage"]) == ("A", 0)
    assert (found.facts["role"], found.facts["other_role"]) == ("loader", "math")
    assert found.facts["proxies"] == ["async", "async"]
    assert "wgmma_wait" in found.helps[0]


def test_the_trace_of_a_race_leads_from_one_access_to_the_other() -> None:
    text = edited(GEMM, ("wgmma_wait(1)", "wgmma_wait(2)"))
    (found, _), _ = checked(text)
    trace = found.facts["trace"]
    assert isinstance(trace, list)
    actions = [(e[0], e[1]) for e in trace]
    assert actions.index(("math[0] (warp 0)", "wgmma")) < len(actions) - 1
    assert actions[-1] == ("loader[0]", "copy")
    assert all(len(e) == 5 for e in trace)


def test_steps_that_do_not_match_come_with_their_loops() -> None:
    text = edited(GEMM, ("for k in range(cdiv(K, 64)):", "for k in range(cdiv(K, 64) + 1):"))
    (found, _), _ = checked(text)
    heads = [r.span.line for r in found.related if r.message == "a loop around it"]
    assert any("cdiv(K, 64) + 1" in text.split("\n")[n - 1] for n in heads)


DATA = """
@cake.schedule(target="sm_80")
def kernel(n: Tensor[i32, 2], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for k in range(load(n[0])):
            with xs.fill() as s:
                store(X[s][lane()], 1.0)
    with adder:
        for k in range(load(n[{index}])):
            with xs.use() as s:
                store(y[0, lane()], load(X[s][lane()]))
"""


def test_roles_that_read_different_data_are_left_open() -> None:
    assert checked(DATA.format(index=0)) == ((), ())
    diagnostics, uncovered = checked(DATA.format(index=1))
    assert not diagnostics
    assert uncovered == ("whether the data agree that roles adder and copier read",)


def test_what_cannot_be_followed_is_named() -> None:
    text = edited(
        LENGTHS,
        ("            for k in range(n):", "            for k in range(load(lens[b + k0])):"),
        (
            "    with math as u:\n",
            "    with math as u:\n        k0 = cast(cast(load(y[0, 0, 0]), f32), i32)\n",
        ),
    )
    diagnostics, uncovered = checked(text)
    assert not diagnostics
    (left,) = uncovered
    assert left.startswith("phase simulation: the trip count of the loop in line")


VALUES = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, "M", 64], y: Tensor[i32, "M", 64]):
    (m,) = grid(M)
    S = smem(i32, (64,))
    work = role(warps=2)
    with work as u:
        store(S[u * 32 + lane()], 0)
        cta_sync()
        store(S[load(ids[m, u * 32 + lane()])], lane())
        cta_sync()
        store(y[m, u * 32 + lane()], load(S[u * 32 + lane()]))
"""


def test_stores_at_places_from_memory_are_left_open() -> None:
    diagnostics, uncovered = checked(VALUES)
    assert not diagnostics
    assert uncovered == ("whether the accesses to S in lines 10 and 10 touch the same bytes",)


def test_a_barrier_less_hand_over_at_places_from_memory_is_refused() -> None:
    """Wherever the stores go, the loads read there."""
    text = edited(
        VALUES,
        ("lane())\n        cta_sync()\n        store(y", "lane())\n        store(y"),
        ("smem(i32, (64,))", "smem(i32, (32,))"),
        ("        store(S[u * 32 + lane()], 0)\n", "        store(S[lane()], 0)\n"),
        ("load(S[u * 32 + lane()])", "load(S[lane()])"),
    )
    diagnostics, _ = checked(text)
    assert {d.code for d in diagnostics} <= {"CK452", "CK453"}
    assert any("store(y" in line(text, d) for d in diagnostics)


def test_a_slot_that_a_barrier_does_not_have_is_named() -> None:
    text = edited(RAW, ("s = n % 3", "s = n % 4"))
    (found,), _ = checked(text)
    assert found.code == "CK466"
    facts = found.facts
    assert (facts["barrier"], facts["slot"], facts["role"]) == ("free", 3, "copier")
    assert "barrier_wait(free" in line(text, found)
    assert facts["sizes"]
    assert facts["trips"]
    assert found.helps


POOLED = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, "M", 64], y: Tensor[bf16, "M", 64]):
    require(M % 16 == 0)
    m = grid(M // 16)
    P = pool(2048)
    A = smem(bf16, (16, 64), swizzle=128, pool=P, offset=0)
    B = smem(bf16, (16, 64), swizzle=128, pool=P, offset=0)
    copier = role(warps=1)
    math = role(warps=1)
    with copier:
        cp_async(A, x[m * 16, 0])
        cp_async_commit()
        cp_async_wait(0)
        cta_sync()
    with math:
        cta_sync()
        store(y[m * 16, 0], ldmatrix(B))
"""


def test_bytes_of_a_pool_are_read_as_they_lie() -> None:
    assert checked(POOLED) == ((), ())
    text = edited(POOLED, ("B = smem(bf16, (16, 64), swizzle=128,", "B = smem(bf16, (16, 64),"))
    (found,), _ = checked(text)
    assert found.code == "CK465"
    assert "of this swizzle" in found.message
    assert "ldmatrix(B)" in line(text, found)
