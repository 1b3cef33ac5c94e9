"""NVRTC builds: every target, errors at the author's line, limits of the isolated build."""

import pickle
import time

import pytest

from cake.codegen.build import BuildError, compile_cubin, compile_isolated, compiler_version
from tests.codegen_build.samples import ADD_ONE, AUTHOR, TARGETS

EM_CUDA = 190  # ELF e_machine


@pytest.mark.parametrize("target", [*TARGETS, "sm_90"])
def test_builds_for_every_target(target: str) -> None:
    built = compile_cubin(ADD_ONE, name="add_one", target=target)
    assert built.cubin[:4] == b"\x7fELF"
    assert int.from_bytes(built.cubin[18:20], "little") == EM_CUDA
    assert f"for '{target}'" in built.log
    assert built.ptx is None
    facts = built.facts.entry("add_one")
    assert facts is not None
    assert 4 <= facts.registers <= 32
    assert (facts.stack_bytes, facts.spill_store_bytes, facts.spill_load_bytes) == (0, 0, 0)
    assert built.facts.notices == ()


def test_same_source_gives_the_same_cubin_and_ptx_on_request() -> None:
    first = compile_cubin(ADD_ONE, name="add_one", target="sm_90a", want_ptx=True)
    again = compile_cubin(ADD_ONE, name="add_one", target="sm_90a")
    assert first.cubin == again.cubin
    assert first.ptx is not None
    assert ".target sm_90a" in first.ptx


def test_every_compile_error_is_reported_at_the_authors_line() -> None:
    source = f"""extern "C" __global__ void k(float* x) {{{AUTHOR}    x[0] = missing;

    x[1] = absent(3);
}}
"""
    with pytest.raises(BuildError) as caught:
        compile_cubin(source, name="k", target="sm_80")
    first, second = caught.value.diagnostics
    assert first.code == second.code == "CK601"
    assert 'identifier "missing" is undefined' in first.message
    assert first.span is not None
    assert (first.span.file, first.span.line) == ("schedule.py", 40)
    assert first.facts["cuda"] == "x[0] = missing;"
    assert second.span is not None
    assert second.span.line == 42
    assert "2 errors detected" in caught.value.log


def test_an_error_of_ptxas_is_reported_at_the_authors_line() -> None:
    source = f"""extern "C" __global__ void k(float* x) {{
    x[0] = 1;{AUTHOR}    asm volatile("frobnicate.sync;");
}}
"""
    with pytest.raises(BuildError) as caught:
        compile_cubin(source, name="k", target="sm_90a")
    (finding,) = caught.value.diagnostics
    assert finding.message == "ptxas: Not a name of any known instruction: 'frobnicate'"
    assert finding.span is not None
    assert (finding.span.file, finding.span.line) == ("schedule.py", 40)


def test_a_long_message_keeps_its_details() -> None:
    source = (
        "__device__ int f(int*); __device__ int f(char*);\n__device__ int g() { return f(2.5); }"
    )
    with pytest.raises(BuildError) as caught:
        compile_cubin(source, name="overloads", target="sm_80")
    (finding,) = caught.value.diagnostics
    assert "argument types are: (double)" in finding.message
    assert finding.span is not None
    assert (finding.span.file, finding.span.line) == ("overloads.cu", 2)


def test_wgmma_is_refused_for_other_targets() -> None:
    source = 'extern "C" __global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }'
    compile_cubin(source, name="k", target="sm_90a")
    for target in ("sm_90", "sm_100a"):
        with pytest.raises(BuildError, match="wgmma"):
            compile_cubin(source, name="k", target=target)


def test_bad_option_and_bad_target_are_errors_with_the_compilers_words() -> None:
    with pytest.raises(BuildError, match="no-such-option"):
        compile_cubin(ADD_ONE, name="k", target="sm_90a", options=["--no-such-option"])
    with pytest.raises(BuildError, match="'hopper' is not of the form"):
        compile_cubin(ADD_ONE, name="k", target="hopper")
    with pytest.raises(BuildError, match="sm_42"):
        compile_cubin(ADD_ONE, name="k", target="sm_42")


def test_build_error_survives_pickling() -> None:
    with pytest.raises(BuildError) as caught:
        compile_cubin("nonsense", name="k", target="sm_80")
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, BuildError)
    assert (again.diagnostics, again.log) == (caught.value.diagnostics, caught.value.log)


def test_missing_nvrtc_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from cuda.bindings import nvrtc

    def absent() -> None:
        raise RuntimeError("Failed to dlopen libnvrtc.so.13")

    monkeypatch.setattr(nvrtc, "nvrtcVersion", absent)
    with pytest.raises(BuildError, match="pip install cuda-bindings nvidia-cuda-nvrtc") as caught:
        compile_cubin("", name="k", target="sm_80")
    assert caught.value.diagnostics[0].code == "CK608"


def test_compiler_version_names_the_exact_build() -> None:
    version = compiler_version()
    assert version.startswith("nvrtc 13.")
    assert version.endswith(")")
    assert len(version.split("(")[1]) > 4


def test_isolated_build_equals_the_build_in_process() -> None:
    here = compile_cubin(ADD_ONE, name="add_one", target="sm_90a", want_ptx=True)
    there = compile_isolated(ADD_ONE, name="add_one", target="sm_90a", want_ptx=True)
    assert (there.cubin, there.ptx, there.facts) == (here.cubin, here.ptx, here.facts)


def test_isolated_build_reports_compile_errors() -> None:
    with pytest.raises(BuildError) as caught:
        compile_isolated(AUTHOR + "nonsense;", name="k", target="sm_80")
    assert caught.value.diagnostics[0].code == "CK601"
    assert caught.value.diagnostics[0].span is not None
    assert caught.value.diagnostics[0].span.line == 40
    assert "errors detected" in caught.value.log or "error detected" in caught.value.log


def macro_bomb() -> str:
    """A source that expands to 8^9 statements."""
    levels = [f"#define M{i + 1} " + f"M{i} " * 8 for i in range(9)]
    return "\n".join(["#define M0 x++;", *levels, "__device__ int f(int x) { M9 return x; }"])


def test_isolated_build_is_killed_at_its_time_limit() -> None:
    start = time.monotonic()
    with pytest.raises(BuildError) as caught:
        compile_isolated(macro_bomb(), name="k", target="sm_80", timeout_s=0.7)
    assert time.monotonic() - start < 20
    assert caught.value.diagnostics[0].code == "CK609"
    assert caught.value.diagnostics[0].facts["timeout_s"] == 0.7


def test_isolated_build_is_ended_at_its_memory_limit() -> None:
    with pytest.raises(BuildError, match=r"out of memory|build-limit"):
        compile_isolated(macro_bomb(), name="k", target="sm_80", memory_bytes=300 << 20)


def test_a_dying_build_process_is_an_error_with_its_last_words() -> None:
    with pytest.raises(BuildError) as caught:
        compile_isolated(ADD_ONE, name="k", target="sm_90a", memory_bytes=16 << 20)
    (finding,) = caught.value.diagnostics
    assert finding.code == "CK609"
    assert finding.facts["memory_bytes"] == 16 << 20
    assert finding.facts["status"] != 0
