"""What the solver does not decide is neither accepted nor rejected, and it is not needed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from cake.verify import RULES, all_rules, smt, verify

from .schedules import judged, said

OPEN = next(r for r in all_rules() if r.code == "CK472")


def test_without_the_solver_it_stays_open_and_says_what_could_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(smt, "available", lambda: False)
    for text in (OPEN.bad, OPEN.good):
        v = judged(text)
        assert v.status == "incomplete", said(v)
        assert any("cake-ir[smt]" in u for u in v.uncovered), said(v)


def test_without_effort_it_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3")
    monkeypatch.setattr(smt, "EFFORT", 1)
    monkeypatch.setattr(smt, "LESS_EFFORT", 1)
    for text in (OPEN.bad, OPEN.good):
        v = judged(text)
        assert v.status == "incomplete", said(v)
        assert not any("cake-ir[smt]" in u for u in v.uncovered), said(v)


def test_only_so_many_questions_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3")
    monkeypatch.setattr(smt, "MAX_QUESTIONS", 1)
    v = judged(OPEN.good)
    assert v.status == "incomplete", said(v)
    assert len(v.uncovered) == 1, said(v)


def test_several_threads_may_verify_at_once() -> None:
    pytest.importorskip("z3")
    texts = [OPEN.bad, OPEN.good] * 8
    with ThreadPoolExecutor(4) as threads:
        found = [v.status for v in threads.map(judged, texts)]
    assert found == ["rejected", "accepted"] * 8


def test_the_layer_is_left_out_on_demand() -> None:
    from cake.lang.elaborate import parse

    (program,) = parse(OPEN.bad, "example.py").programs
    assert verify(program, layers=RULES).status == "incomplete"


def test_importing_the_verifier_does_not_import_the_solver() -> None:
    code = "import sys, cake.verify; print('z3' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"
