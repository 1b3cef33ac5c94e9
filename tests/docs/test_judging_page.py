"""What the page on judging shows is so: sources build and pass, the session gives its answers."""

import doctest
import re
from pathlib import Path

from cake.cli.app import COMMANDS
from cake.judge import Candidate, Evaluation, judge, python_runner
from cake.judge.cuda_runner import build
from cake.judge.manifest import read_manifest
from cake.workloads import Case, get, problem

PAGE = (Path(__file__).parents[2] / "docs" / "judging.md").read_text(encoding="utf-8")
CASE = Case(shape={"M": 5, "D": 72}, dtype="bf16")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_cuda_source_builds_with_its_manifest() -> None:
    text = block("cuda")
    instance = problem(get("rmsnorm"), CASE.shape, CASE.dtype)
    manifest = read_manifest(text, instance, target="sm_90a", sms=132)
    (launch,) = manifest.launches
    assert launch.abi.grid == ("5", "1", "1")
    assert build(Candidate(runner="cuda", entry="rows", text=text), manifest, "sm_90a").cubin


def test_the_python_module_passes() -> None:
    verdict = judge(
        Evaluation(
            workload="rmsnorm",
            candidate=Candidate(runner=python_runner.RUNNER, entry="rows", text=block("python")),
            cases=(CASE,),
            families=("normal", "zero", "large"),
            plugins=(python_runner.PLUGIN,),
        )
    )
    assert verdict.status == "passed", verdict.detail


def test_the_session_gives_its_answers() -> None:
    test = doctest.DocTestParser().get_doctest(block("pycon"), {}, "judging.md", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_commands_exist() -> None:
    commands = re.findall(r"^cake (\w+)", PAGE, re.MULTILINE)
    assert commands
    assert set(commands) <= set(COMMANDS)
