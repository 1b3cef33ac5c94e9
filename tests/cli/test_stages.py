"""`cake show | build | simulate` on small schedules."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cake.codegen import build
from cake.codegen.build import BuildError
from cake.diag import Diagnostic
from cake.lang.elaborate import parse
from cake.lang.printer import print_program
from cake.simulate import ORDERS

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]

RMSNORM = """\
@cake.schedule(target="sm_80")
def rmsnorm(x: Tensor[T, "M", "D"], w: Tensor[T, "D"], y: Tensor[T, "M", "D"], eps: f32, *,
            T: meta(bf16, f16) = bf16):
    (row,) = grid(M)
    rows = role(warps=1)
    with rows:
        total = 0.0
        for d in range(lane(), D, 32):
            e = cast(load(x[row, d]), f32)
            total = fma(e, e, total)
        scale = rsqrt(warp_sum(total) / cast(D, f32) + eps)
        for d in range(lane(), D, 32):
            e = cast(load(x[row, d]), f32) * scale * cast(load(w[d]), f32)
            store(y[row, d], cast(e, T))
"""


@pytest.fixture
def rmsnorm(tmp_path: Path) -> Path:
    path = tmp_path / "rmsnorm.py"
    path.write_text(RMSNORM)
    return path


def test_show_ir_is_the_canonical_source(cake: Cake, good: Path) -> None:
    shown = cake("show", good, "--meta", "WARPS=2").stdout
    program = parse(good.read_text(), meta={"WARPS": 2}).program()
    assert shown == print_program(program)


@pytest.mark.parametrize(
    ("what", "text"),
    [("cuda", "__global__"), ("ptx", ".target sm_80"), ("sass", "STG")],
)
def test_show_prints_what_a_schedule_becomes(
    cake: Cake, document: Document, good: Path, what: str, text: str
) -> None:
    assert text in cake("show", good, "--what", what).stdout
    assert text in document("show", good, "--what", what)["schedules"][0]["text"]


@pytest.mark.parametrize("arguments", [("build",), ("show", "--what", "ptx")])
def test_a_missing_compiler_is_the_machines_fault(
    document: Document, good: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def missing() -> None:
        raise BuildError([Diagnostic.of("CK608", "NVRTC cannot be loaded")])

    monkeypatch.setattr(build, "_nvrtc", missing)
    build.compiler_version.cache_clear()
    found = document(*arguments, good)
    assert found["status"] == "environment"
    assert found["diagnostics"][0]["code"] == "CK608"


def test_findings_do_not_mix_with_what_is_shown(cake: Cake, bad: Path) -> None:
    result = cake("show", bad)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "error[CK101]" in result.stderr


def test_findings_in_standard_input_show_its_lines(cake: Cake, bad: Path) -> None:
    result = cake("build", "-", input=bad.read_text())
    assert result.exit_code == 1
    assert "8 |         j = lan()" in result.stderr


def test_one_schedule_of_a_file_is_chosen(cake: Cake, good: Path) -> None:
    good.write_text(good.read_text() + "\n\n" + good.read_text().replace("scale", "again"))
    assert "def again(" not in cake("show", good, "--schedule", "scale").stdout
    assert "def again(" in cake("show", good).stdout
    result = cake("show", good, "--schedule", "nope")
    assert result.exit_code == 2
    assert "there are scale, again" in result.stderr


def test_build_writes_cubin_cuda_and_facts(document: Document, good: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    kernel = document("build", good, "-o", folder)["kernels"][0]
    assert kernel["name"] == "scale"
    assert kernel["spill_bytes"] == 0
    assert 0 < kernel["registers"] < 64
    assert (folder / "scale.cubin").read_bytes().startswith(b"\x7fELF")
    assert len((folder / "scale.cubin").read_bytes()) == kernel["cubin_bytes"]
    assert "scale_kernel" in (folder / "scale.cu").read_text()
    facts = json.loads((folder / "scale.json").read_text())
    assert facts["abi"]["name"] == "scale_kernel"
    assert facts["registers"] == kernel["registers"]
    assert sorted(p.name for p in folder.iterdir()) == ["scale.cu", "scale.cubin", "scale.json"]


def test_a_rejected_schedule_is_not_built(cake: Cake, bad: Path, tmp_path: Path) -> None:
    result = cake("build", bad, "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_is_a_file_is_the_machines_fault(
    document: Document, good: Path
) -> None:
    found = document("build", good, "-o", good)
    assert found["status"] == "environment"
    assert found["diagnostics"][0]["code"] == "CK953"


def test_a_simulation_is_compared_with_the_reference(document: Document, rmsnorm: Path) -> None:
    found = document("simulate", rmsnorm, "--workload", "rmsnorm", "--shape", "M=3,D=40")
    assert found["problem"]["shape"] == {"M": 3, "D": 40, "eps": 1e-06}
    assert found["comparison"]["ok"] is True
    assert found["comparison"]["tensors"][0]["checked"] == 120


def test_a_wrong_result_is_rejected_with_the_worst_element(
    document: Document, rmsnorm: Path
) -> None:
    rmsnorm.write_text(rmsnorm.read_text().replace("* scale *", "* 2.0 * scale *"))
    found = document("simulate", rmsnorm, "--workload", "rmsnorm", "--shape", "M=3,D=40")
    assert found["status"] == "rejected"
    assert found["diagnostics"][0]["code"] == "CK954"
    assert "expected" in found["diagnostics"][0]["message"]


def test_orders_agree_on_a_right_program(document: Document, rmsnorm: Path) -> None:
    found = document(
        "simulate",
        rmsnorm,
        "--dim",
        "M=2",
        "--dim",
        "D=40",
        "--scalar",
        "eps=0.1",
        "--order",
        "all",
    )
    assert [run["order"] for run in found["runs"]] == list(ORDERS)
    assert found["results"][0]["tensor"] == "y"
    assert found["diagnostics"] == []


def test_a_fault_is_found_at_its_line(cake: Cake, good: Path) -> None:
    good.write_text(good.read_text().replace("fill=0.0) * a, mask=i < N)", "fill=0.0) * a)"))
    result = cake("simulate", good, "--dim", "N=33", "--scalar", "a=2")
    assert result.exit_code == 1
    assert "error[CK503]" in result.stdout
    assert f"{good}:7:" in result.stdout


def test_equal_seeds_give_equal_inputs(document: Document, rmsnorm: Path) -> None:
    options = ("--dim", "M=2", "--dim", "D=40", "--scalar", "eps=0.1", "--seed")
    first, again, other = (
        document("simulate", rmsnorm, *options, seed)["results"][0]["sha256"] for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "the value of eps is not known: --scalar eps=..."),
        (["--scalar", "eps=1"], "the extent of M, D is not known: --dim M=... --dim D=..."),
        (["--dim", "M"], "'M' is not of the form NAME=VALUE"),
        (["--dim", "M=1e3"], "M: '1e3' is not an extent"),
        (["--dim", "M=-1"], "M: '-1' is not an extent"),
        (["--dim", "M=4294967296"], "is not an extent"),
        (["--scalar", "eps=small"], "eps: 'small' is not a number"),
        (
            ["--scalar", "eps=1", "--dim", "M=1", "--dim", "D=1", "--dim", "K=1"],
            "there is no dimension K",
        ),
        (
            ["--scalar", "eps=1", "--dim", "M=100000", "--dim", "D=100000"],
            "the tensors take 40000200000 bytes, a simulation at most 1073741824",
        ),
        (["--workload", "rmsnorm", "--shape", "M=100000,D=100000"], "use a smaller shape"),
        (["--workload", "nope"], "'nope' is not one of"),
        (["--workload", "rmsnorm", "--shape", "M=3"], "the shape lacks D"),
        (["--workload", "rmsnorm", "--shape", "M:3"], "'M:3' is not of the form DIM=N"),
        (["--workload", "rmsnorm", "--shape", "M=3,M=4"], "M is set twice"),
        (["--workload", "rmsnorm", "--shape", "M=3,D=x"], "D = 'x'"),
        (["--workload", "rmsnorm", "--dtype", "f8"], "f8"),
        (["--workload", "rmsnorm", "--family", "odd"], "no input family `odd`"),
        (["--workload", "softmax"], "no number eps"),
        (["--workload", "rmsnorm", "--dim", "M=3"], "do not go with --workload"),
        (["--order", "worst"], "'worst' is not one of"),
    ],
)
def test_requests_that_make_no_sense_are_wrong_use(
    cake: Cake, rmsnorm: Path, options: list[str], problem: str
) -> None:
    result = cake("simulate", rmsnorm, *options)
    assert result.exit_code == 2
    assert problem in result.stderr.replace("\n", " ")


def test_a_guard_that_does_not_hold_is_wrong_use(cake: Cake, good: Path) -> None:
    good.write_text(good.read_text().replace("    work =", "    require(N % 32 == 0)\n    work ="))
    options = ("--scalar", "a=2", "--dim")
    assert cake("simulate", good, *options, "N=64").exit_code == 0
    result = cake("simulate", good, *options, "N=65")
    assert result.exit_code == 2
    assert "scale: require(N % 32 == 0) does not hold at N=65" in result.stderr
