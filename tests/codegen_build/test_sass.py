"""SASS: opcode counts without modifiers, source places, and clear failures."""

import subprocess
from typing import Any

import pytest
from cuda import pathfinder

from cake.codegen.build import BuildError, compile_cubin
from cake.codegen.ptxas import Place
from cake.codegen.sass import disassemble, opcode_counts, opcode_places
from tests.codegen_build.samples import (
    ADD_ONE,
    COMMIT,
    FENCE,
    TARGETS,
    WAIT,
    wgmma_kernel,
)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_disassembled(target: str) -> None:
    counts = opcode_counts(disassemble(compile_cubin(ADD_ONE, name="k", target=target).cubin))
    assert counts["STG"] == 1
    assert counts["LDG"] == 1
    assert counts["EXIT"] >= 1


def test_wgmma_is_counted_once_for_each_instruction() -> None:
    source = wgmma_kernel("\n".join([FENCE, "WGMMA", "WGMMA", COMMIT, WAIT]))
    counts = opcode_counts(disassemble(compile_cubin(source, name="k", target="sm_90a").cubin))
    assert counts["HGMMA"] == 2


def test_modifiers_and_predicates_are_left_out() -> None:
    sass = """
        /*0040*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0050*/             @UPT  UIADD3 UR4, UR4, 0x1, URZ ;
        /*0060*/                   USETMAXREG.DEALLOC.CTAPOOL 0x18 ;
.L_x_1:
        /*0070*/              @P1  BRA `(.L_x_1) ;
"""
    assert opcode_counts(sass) == {"LDG": 1, "UIADD3": 1, "USETMAXREG": 1, "BRA": 1}


def test_places_are_the_authors_lines() -> None:
    cubin = compile_cubin(ADD_ONE, name="k", target="sm_90a").cubin
    places = opcode_places(disassemble(cubin, line_info=True), ("STG", "LDG"), ["schedule.py"])
    assert places == {Place(file="schedule.py", line=42): 2}


def test_what_is_no_cubin_is_refused_with_the_words_of_nvdisasm() -> None:
    with pytest.raises(BuildError, match="nvdisasm ended with status") as caught:
        disassemble(b"not an ELF file")
    assert caught.value.diagnostics[0].code == "CK610"


def test_absent_nvdisasm_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", lambda name: None)
    with pytest.raises(BuildError, match="pip install --upgrade nvidia-cuda-nvdisasm"):
        disassemble(b"")


def test_a_slow_nvdisasm_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    cubin = compile_cubin(ADD_ONE, name="k", target="sm_90a").cubin

    def slow(*arguments: Any, timeout: float, **options: Any) -> None:
        raise subprocess.TimeoutExpired(cmd="nvdisasm", timeout=timeout)

    monkeypatch.setattr(subprocess, "run", slow)
    with pytest.raises(BuildError, match="longer than 3 s"):
        disassemble(cubin, timeout_s=3.0)
