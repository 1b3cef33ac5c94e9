import os
import signal
import time

import pytest

from cake.judge import Candidate
from cake.judge.child import Child, ChildDied, ChildHang
from cake.judge.protocol import Build, Failed, Open, Ready
from cake.workloads import Case

OPEN = Open(device="cpu", plugins=(), runner="baseline")


def build(text: str) -> Build:
    return Build(
        workload="softmax",
        case=Case(shape={"M": 1, "N": 1}, dtype="f32"),
        candidate=Candidate(runner="baseline", entry="none", text=text),
    )


def test_a_request_larger_than_a_pipe_arrives_whole():
    with Child() as child:
        assert isinstance(child.ask(OPEN, 30), Ready)
        answer = child.ask(build("x" * 3_000_000), 30)
        assert isinstance(answer, Failed)
        assert "softmax has no baseline `none`" in answer.message


def test_a_child_that_does_not_even_read_is_a_hang():
    with Child() as child:
        child.ask(OPEN, 30)
        os.killpg(child._process.pid, signal.SIGSTOP)
        start = time.monotonic()
        with pytest.raises(ChildHang, match=r"no answer within 0\.3 s"):
            child.ask(build("x" * 3_000_000), 0.3)
        assert time.monotonic() - start < 0.3 + 2


def test_an_interpreter_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    with Child() as child:
        with pytest.raises(ChildDied, match="ended with exit code 1"):
            child.ask(OPEN, 30)
        assert "/nowhere" in child.output
