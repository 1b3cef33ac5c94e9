"""Verdicts, levels, and the generated page of rules."""

from __future__ import annotations

from cake.verify import RULES, all_rules, verify
from cake.verify.page import PAGE, page

from .examples import found, programs, verdict

RAW_BARRIER = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))
    full = barrier(arrivals=1)
    writer = role(warps=1)
    reader = role(warps=1)
    with writer:
        store(X[lane()], load(x[lane()]))
        arrive(full, 0)
    with reader:
        barrier_wait(full, 0, 0)
        store(y[lane()], load(X[lane()]))
"""

DATA_DEPENDENT = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], n: Tensor[i32, 2], y: Tensor[f32, "M", 32]):
    require(M > 0)
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for k in range(load(n[0])):
            with xs.fill() as s:
                store(X[s][lane()], load(x[0, lane()]))
    with adder:
        for k in range(load(n[1])):
            with xs.use() as s:
                store(y[0, lane()], load(X[s][lane()]))
"""


def test_a_hand_written_protocol_is_decided_by_the_phase_simulation() -> None:
    v = verdict(RAW_BARRIER)
    assert v.status == "accepted", found(v)
    late = verdict(RAW_BARRIER.replace("barrier_wait(full, 0, 0)", "barrier_wait(full, 0, 1)"))
    assert late.status == "rejected", found(late)
    assert any(d.code.startswith("CK45") for d in late.diagnostics)


def test_the_rules_alone_leave_a_hand_written_protocol_open_by_name() -> None:
    (program,) = programs(RAW_BARRIER)
    v = verify(program, layers=RULES)
    assert v.status == "incomplete", found(v)
    assert v.ok
    assert any("mbarrier full" in what for what in v.uncovered)


def test_what_the_phase_simulation_cannot_follow_stays_open() -> None:
    v = verdict(RAW_BARRIER.replace("full, 0, 0)", "full, 0, cast(load(x[0]), i32))"))
    assert v.status == "incomplete", found(v)
    assert any("mbarrier full" in what for what in v.uncovered)
    assert any("phase simulation" in what for what in v.uncovered)


def test_trip_counts_from_different_data_are_left_open() -> None:
    v = verdict(DATA_DEPENDENT)
    assert v.status == "incomplete", found(v)
    assert v.uncovered == (
        "whether ring xs is filled as often as it is used",
        "whether the data agree that roles adder and copier read",
    )


def test_an_error_rejects_whatever_else_is_open() -> None:
    v = verdict(RAW_BARRIER.replace("arrivals=1", "arrivals=0"))
    assert v.status == "rejected", found(v)
    assert not v.ok
    assert v.uncovered


def test_all_findings_of_a_program_are_reported() -> None:
    text = all_rules()[0].bad.replace("role(warps=8)", "role(warps=8, regs=20)")
    assert {"CK300", "CK301"} <= {d.code for d in verdict(text).diagnostics}


def test_a_finding_stands_alone_with_place_figures_and_remedy() -> None:
    for rule in all_rules():
        for d in verdict(rule.bad).diagnostics:
            assert d.span is not None
            assert d.facts, d.code
            assert d.helps, d.code
            assert d.stage == "verify"


def test_the_page_of_rules_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m cake.verify.page"
