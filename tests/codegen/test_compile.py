"""Schedules compile for their targets without spills, local arrays or complaints of ptxas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cake.codegen import compile as compile_module
from cake.codegen.build import BuildResult
from cake.codegen.cache import KernelCache
from cake.codegen.compile import Compiled, compile_program
from cake.codegen.cuda import Emitted, emit_program
from cake.codegen.ptxas import FunctionFacts, Notice, Place, PtxasFacts
from cake.codegen.sass import disassemble, opcode_counts
from cake.diag import Diagnostic
from cake.lang.elaborate import parse
from tests.codegen.schedules import COPY, GEMM, MIXED, SCALE, program


def facts(compiled: Compiled) -> FunctionFacts:
    found = compiled.build.facts.entry(compiled.abi.name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "source", [SCALE, COPY, MIXED, GEMM], ids=["scale", "copy", "mixed", "gemm"]
)
def test_builds_clean(source: str) -> None:
    compiled = compile_program(program(source))
    assert compiled.diagnostics == ()
    used = facts(compiled)
    assert (used.stack_bytes, used.spill_store_bytes, used.spill_load_bytes) == (0, 0, 0)
    assert compiled.build.cubin.startswith(b"\x7fELF")
    assert compiled.build.seconds > 0


@pytest.mark.parametrize("target", ["sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_one_text_for_many_targets(target: str) -> None:
    compiled = compile_program(parse(SCALE, "k.py", target=target).program())
    assert compiled.abi.target == target
    assert facts(compiled).spill_store_bytes == 0


def test_the_gemm_loop_is_what_the_hardware_wants() -> None:
    sass = disassemble(compile_program(program(GEMM)).build.cubin)
    counts = opcode_counts(sass)
    assert counts["HGMMA"] == 8  # the first slice and the loop, four instructions each
    assert counts["USETMAXREG"] == 2
    assert counts["UTMALDG"] == 2  # no loop over lanes round a copy
    assert counts["ELECT"] == 2  # once a role, not once a copy
    assert counts["UTMASTG"] == 4
    assert counts["LDL"] == counts["STL"] == 0


FAKE = BuildResult(
    cubin=b"another kernel",
    ptx=None,
    log="",
    facts=PtxasFacts(functions=(), notices=()),
    seconds=0.1,
)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that were built."""
    seen: list[str] = []
    build: Callable[..., object] = compile_module._build

    def count(emitted: Emitted) -> object:
        seen.append(emitted.abi.name)
        return build(emitted)

    monkeypatch.setattr(compile_module, "_build", count)
    return seen


def fail_on_warning(found: Diagnostic) -> None:
    raise AssertionError(found.message)


def test_a_kernel_is_built_once(tmp_path: Path, builds: list[str]) -> None:
    cache = KernelCache(tmp_path, warn=fail_on_warning)
    first = compile_program(program(SCALE), cache=cache)
    again = compile_program(program(SCALE), cache=cache)
    assert builds == ["scale_kernel"]
    assert first.build.seconds > 0
    assert again.build.seconds == 0
    assert again.build.cubin == first.build.cubin
    assert again.abi == first.abi
    compile_program(program(SCALE, V=1), cache=cache)
    assert builds == ["scale_kernel"] * 2


def test_an_edit_that_moves_lines_finds_the_kernel(tmp_path: Path, builds: list[str]) -> None:
    cache = KernelCache(tmp_path, warn=fail_on_warning)
    compile_program(program(SCALE), cache=cache)
    text = "# a comment\n\n" + SCALE
    moved = compile_program(parse(text, "elsewhere.py").program(), cache=cache)
    assert builds == ["scale_kernel"]
    line = 3 + SCALE.split("\n").index("            v[j] = v[j] * a")
    assert f'#line {line} "elsewhere.py"' in moved.source


def test_a_changed_primitive_builds_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = KernelCache(tmp_path, warn=fail_on_warning)
    compile_program(program(SCALE), cache=cache)
    changed = replace(emit_program(program(SCALE)), source="// other\n")
    monkeypatch.setattr(compile_module, "emit_program", lambda p: changed)
    monkeypatch.setattr(compile_module, "_build", lambda emitted: FAKE)
    assert compile_program(program(SCALE), cache=cache).build.cubin == FAKE.cubin


def test_findings_move_with_the_lines() -> None:
    emitted = emit_program(program(SCALE))
    line = 1 + SCALE.split("\n").index("            v[j] = v[j] * a")
    notice = Notice(
        code="C7510",
        severity="info",
        text="something at a line",
        function="scale_kernel",
        ptx_line=1,
        place=Place(file="k.py", line=line),
    )
    result = compile_module._build(emitted)
    built = replace(result, facts=PtxasFacts(functions=(), notices=(notice,)))
    entry = compile_module._entry(emitted, built)
    moved = program("\n\n\n" + SCALE)
    compiled = compile_module._compiled(moved, emit_program(moved), entry)
    (found,) = compiled.diagnostics
    assert found.span is not None
    assert found.span.line == line + 3
