"""`cake check`: verdicts, findings, and every kind of file that is no schedule."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cake.cli import check
from cake.verify import Verdict
from tests.verify_phase.schedules import RAW, edited

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]

INCOMPLETE_OR_BETTER = {"accepted", "incomplete"}


def test_an_accepted_file_ends_with_0(cake: Cake, good: Path) -> None:
    result = cake("check", good)
    assert result.exit_code == 0
    assert "scale     sm_80   accepted" in result.stdout
    assert result.stdout.endswith(f"{good}: accepted, no findings\n")


def test_all_errors_are_shown_at_their_places(cake: Cake, bad: Path) -> None:
    result = cake("check", bad)
    assert result.exit_code == 1
    assert f"--> {bad}:8:" in result.stdout
    assert f"--> {bad}:9:" in result.stdout
    assert "did you mean lane" in result.stdout
    assert result.stdout.endswith(f"{bad}: rejected, 2 errors\n")
    assert result.stderr == ""


def test_many_findings_alike_are_counted(
    cake: Cake, document: Document, tmp_path: Path, good: Path
) -> None:
    lines = good.read_text(encoding="utf-8").splitlines()
    role = next(i for i, line in enumerate(lines) if line.lstrip().startswith("with "))
    wrong = " " * (len(lines[role]) - len(lines[role].lstrip()) + 4) + "nothing(1)"
    path = tmp_path / "many.py"
    path.write_text("\n".join([*lines[: role + 1], *[wrong] * 5000]), encoding="utf-8")
    result = cake("check", path)
    assert result.stdout.count("error[CK101]") == 5
    assert "4995 more of CK101: nothing is not defined here (--json lists all)" in result.stdout
    assert result.stdout.endswith(f"{path}: rejected, 5000 errors\n")
    assert len(document("check", path)["diagnostics"]) == 5000


def test_the_document_holds_verdicts_and_findings(document: Document, bad: Path) -> None:
    found = document("check", bad)
    assert found["command"] == "check"
    assert found["file"] == str(bad)
    assert found["schedules"] == [
        {"name": "scale", "target": None, "verdict": "rejected", "uncovered": [], "allowed": []}
    ]
    assert [d["code"] for d in found["diagnostics"]] == ["CK101", "CK106"]
    assert [d["span"]["line"] for d in found["diagnostics"]] == [8, 9]


def test_a_rejected_schedule_beside_an_accepted_one(
    document: Document, tmp_path: Path, good: Path, bad: Path
) -> None:
    both = tmp_path / "both.py"
    renamed = bad.read_text().replace("def scale", "def broken")
    both.write_text(good.read_text() + "\n\n" + renamed)
    verdicts = {s["name"]: s["verdict"] for s in document("check", both)["schedules"]}
    assert verdicts == {"scale": "accepted", "broken": "rejected"}


def test_standard_input_is_a_file(cake: Cake, good: Path) -> None:
    result = cake("check", "-", input=good.read_text())
    assert result.exit_code == 0
    assert "<stdin>: accepted" in result.stdout


def test_meta_parameters_are_bound(cake: Cake, good: Path) -> None:
    assert cake("check", good, "--meta", "WARPS=2").exit_code == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--meta", "WARPS=3"], "WARPS = 3 is outside its domain (1, 2)"),
        (["--meta", "NOPE=1"], "there is no meta parameter NOPE (known: WARPS)"),
        (["--meta", "WARPS"], "'WARPS' is not of the form NAME=VALUE"),
        (["--meta", "WARPS="], "WARPS: '' is not a value"),
        (["--meta", "2=2"], "'2=2' is not of the form NAME=VALUE"),
        (["--meta", "WARPS=1", "--meta", "WARPS=2"], "WARPS is set twice"),
        (["--target", "sm_90"], "'sm_90' is not one of"),
        (["--level", "lax"], "'lax' is not one of"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_wrong_options_are_wrong_use(
    cake: Cake, document: Document, good: Path, options: list[str], problem: str
) -> None:
    result = cake("check", good, *options)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stdout == ""
    assert problem in document("check", good, *options)["message"]


def test_another_target_is_exact(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "hopper.py"
    path.write_text(
        '@cake.schedule(target="sm_90a")\n'
        'def copy(x: Tensor[bf16, "N", 64], y: Tensor[bf16, "N", 64]):\n'
        "    (block,) = grid(cdiv(N, 64))\n"
        "    S = smem(bf16, (64, 64), stages=1, swizzle=128)\n"
        "    load = role(warps=1)\n"
        "    save = role(warps=1)\n"
        "    ring = pipeline(S, producer=load, consumer=save)\n"
        "    with load:\n"
        "        with ring.fill() as s:\n"
        "            tma_load(S[s], x[block * 64, 0])\n"
        "    with save:\n"
        "        with ring.use() as s:\n"
        "            tma_store(y[block * 64, 0], S[s])\n"
        "            tma_store_commit()\n"
        "            tma_store_wait(0)\n"
    )
    assert document("check", path)["status"] in INCOMPLETE_OR_BETTER
    codes = {d["code"] for d in document("check", path, "--target", "sm_80")["diagnostics"]}
    assert codes == {"CK201"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "CK004"),
        (b"def f(:\n", "CK001"),
        (b"import os\nos.system('true')\n", "CK003"),
        (b"\x7fELF\x02\x01\x01\0\0\xff\xfe", "CK952"),
        ("# größer\n".encode("latin-1"), "CK952"),
        (b"\0\0", "CK001"),
        (b"(" * 100_000, "CK001"),
        (b"x = " + b"-" * 50_000 + b"1\n", "CK001"),
    ],
    ids=["empty", "syntax", "import", "binary", "latin-1", "nulls", "parentheses", "deep"],
)
def test_what_is_no_schedule_is_rejected(
    document: Document, tmp_path: Path, content: bytes, code: str
) -> None:
    path = tmp_path / "file.py"
    path.write_bytes(content)
    found = document("check", path)
    assert found["status"] == "rejected"
    assert code in {d["code"] for d in found["diagnostics"]}
    assert found["diagnostics"][0]["span"]["file"] == str(path)


def test_the_first_byte_that_is_not_text_is_named(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_bytes("x = 1\ny = 'ß'\n".encode("latin-1"))
    finding = document("check", path)["diagnostics"][0]
    assert finding["facts"] == {"offset": 11, "byte": 0xDF}
    assert (finding["span"]["line"], finding["span"]["col"]) == (2, 6)


def test_a_byte_order_mark_is_no_part_of_the_text(cake: Cake, good: Path) -> None:
    good.write_bytes(b"\xef\xbb\xbf" + good.read_bytes())
    assert cake("check", good).exit_code == 0


def test_nothing_of_a_file_is_executed(cake: Cake, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    path = tmp_path / "file.py"
    path.write_text(f"import os\nopen({str(marker)!r}, 'w')\nos.system('touch {marker}')\n")
    assert cake("check", path).exit_code == 1
    assert not marker.exists()


def test_a_file_of_5000_lines_is_read_to_its_end(document: Document, good: Path) -> None:
    lines = "".join(f"        v{i} = cast(i, f32) * {i}.0\n" for i in range(5000))
    good.write_text(good.read_text() + lines + "        nonsense\n")
    found = document("check", good)
    assert found["status"] == "rejected"
    assert found["diagnostics"][-1]["span"]["line"] == 5008


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.py", "No such file"), (".", "Is a directory"), ("a\0b", "null byte")],
)
def test_a_name_that_is_no_file_is_wrong_use(
    document: Document, tmp_path: Path, name: str, reason: str
) -> None:
    found = document("check", tmp_path / name)
    assert found["status"] == "usage"
    assert found["diagnostics"][0]["code"] == "CK951"
    assert reason in found["diagnostics"][0]["message"]


def test_a_file_that_cannot_be_read_is_the_machines_fault(document: Document) -> None:
    found = document("check", "/proc/self/mem")
    assert found["status"] == "environment"
    assert found["diagnostics"][0]["code"] == "CK951"


def test_a_file_without_end_is_rejected(document: Document) -> None:
    found = document("check", "/dev/zero")
    assert found["status"] == "rejected"
    assert found["diagnostics"][0]["code"] == "CK006"


def test_an_incomplete_verdict_ends_with_3(
    cake: Cake, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict(status="incomplete", diagnostics=(), uncovered=("a loop without bounds",))
    monkeypatch.setattr(check, "verify", lambda program, **how: verdict)
    result = cake("check", good)
    assert result.exit_code == 3
    assert "scale: not covered: a loop without bounds" in result.stdout


def test_json_has_no_text_beside_the_document(cake: Cake, good: Path) -> None:
    result = cake("check", good, "--json")
    assert result.stdout.count("\n") == 1
    assert json.loads(result.stdout)["schedules"][0]["verdict"] == "accepted"


def test_an_expression_that_nests_too_deeply_is_rejected(document: Document, good: Path) -> None:
    good.write_text(good.read_text() + f"        k = i{' + i' * 900}\n")
    found = document("check", good)
    assert found["status"] == "rejected"
    assert found["diagnostics"][0]["code"] == "CK006"


def test_trace_draws_the_events_that_lead_to_a_finding(cake: Cake, tmp_path: Path) -> None:
    path = tmp_path / "hangs.py"
    path.write_text(edited(RAW, ("(n // 3 + 1) % 2", "n // 3 % 2")), encoding="utf-8")
    plain = cake("check", path).stdout
    lines = cake("check", "--trace", path).stdout.splitlines()
    assert "for ever" not in plain.partition("schedule  target")[2]
    head = next(i for i, line in enumerate(lines) if line.startswith("CK450 at "))
    assert "M = 1, K = 32" in lines[head]
    assert lines[head + 1].split() == ["line", "copier[0]", "adder[0],", "adder[1]"]
    assert lines[head + 2].strip() == "16  wait free[0], phase 0, for ever"
    assert lines[head + 3].strip().startswith("26")
    assert lines[head + 3].endswith("wait full[0], phase 0, for ever")


def test_trace_adds_nothing_where_there_is_none(cake: Cake, document: Document, good: Path) -> None:
    assert cake("check", "--trace", good).stdout == cake("check", good).stdout
    assert document("check", "--trace", good)["diagnostics"] == []


def test_quick_leaves_open_what_only_the_phases_decide(document: Document, tmp_path: Path) -> None:
    path = tmp_path / "raw.py"
    path.write_text(RAW)
    whole, quick = (document("check", path, *how) for how in ((), ("--quick",)))
    assert (whole["status"], quick["status"]) == ("accepted", "incomplete")
    assert quick["schedules"][0]["uncovered"]
