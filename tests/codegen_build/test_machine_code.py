"""Layer L5: what the machine code holds of a schedule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cake.kernels
from cake.codegen import machine_code
from cake.codegen.build import BuildError
from cake.codegen.build_findings import DISASSEMBLER_MISSING
from cake.codegen.compile import Compiled, compile_program
from cake.codegen.machine_code import INSTRUCTIONS, machine_findings
from cake.codegen.sass import disassemble, opcode_counts
from cake.diag import Diagnostic
from cake.ir.nodes import walk_calls
from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.ops.base import lookup
from tests.ops.examples import EXAMPLES

KERNELS = Path(cake.kernels.__file__).parent

BULK = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128], z: Tensor[f32, 128]):
    m = grid(M)
    X = smem(f32, (128,))
    r = role(warps=1)
    with r:
        for i in range(lane(), 128, 32):
            store(X[i], load(x[m, i]))
        fence_async()
        unit_sync()
        bulk_store(y[m, 0], X)
        bulk_reduce_add(z[0], X)
        tma_store_commit()
        tma_store_wait(0)
"""

UNUSED = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 16, 16], y: Tensor[f32, 32]):
    X = smem(bf16, (16, 16))
    r = role(warps=1)
    with r:
        cp_async(X, x[0, 0])
        cp_async_commit()
        cp_async_wait(0)
        unit_sync()
        acc = fragment(f32, (16, 8), fill=0.0)
        a = ldmatrix(X)
        if lane() > 40:
            nanosleep(100)
        store(y[lane()], 1.0)
"""


def compiled(text: str) -> Compiled:
    return compile_program(parse(text, "kernel.py").program())


def shipped(file: str, name: str) -> Program:
    return parse((KERNELS / file).read_text(), file).program(name)


def programs() -> list[Program]:
    """Programs that together use every primitive of the table."""
    found = [parse(BULK, "kernel.py").program(), shipped("gemm/sm_100a.py", "gemm")]
    left = set(INSTRUCTIONS) - {op for p in found for op in ops(p)}
    for example in EXAMPLES.values():
        program = example.make()
        if left & ops(program):
            left -= ops(program)
            found.append(program)
    assert not left
    return found


def ops(program: Program) -> set[str]:
    return {call.op for role in program.roles for call in walk_calls(role.body)}


def test_every_listed_name_is_a_primitive() -> None:
    assert all(lookup(op) is not None for op in INSTRUCTIONS)


@pytest.mark.parametrize(
    "program", programs(), ids=lambda p: "-".join(sorted(ops(p) & set(INSTRUCTIONS)))
)
def test_instructions_are_where_primitives_are(program: Program) -> None:
    assert machine_findings(compile_program(program)) == []


def test_what_ptxas_removes_is_reported_where_it_stands() -> None:
    found = machine_findings(compiled(UNUSED))
    assert [(d.code, d.facts["primitive"]) for d in found] == [
        ("CK611", "ldmatrix"),
        ("CK611", "nanosleep"),
    ]
    lines = UNUSED.split("\n")
    for d in found:
        assert d.span is not None
        assert str(d.facts["primitive"]) in lines[d.span.line - 1]


def test_budgets_that_the_code_does_not_set_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made = compile_program(shipped("gemm/sm_90a.py", "gemm"))
    assert machine_findings(made) == []
    sass = disassemble(made.build.cubin)
    assert opcode_counts(sass)["USETMAXREG"] == 2
    fewer = sass.replace("USETMAXREG", "NOP", 1)
    monkeypatch.setattr(machine_code, "disassemble", lambda cubin: fewer)
    (d,) = machine_findings(made)
    assert (d.code, d.severity, d.facts["instructions"]) == ("CK603", "error", 1)
    noticed = replace(made, diagnostics=(d,))
    assert machine_findings(noticed) == []


def test_without_a_disassembler_it_says_what_was_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(cubin: bytes) -> str:
        raise BuildError([Diagnostic.of(DISASSEMBLER_MISSING, "nvdisasm is not installed")])

    made = compile_program(shipped("gemm/sm_90a.py", "gemm"))
    monkeypatch.setattr(machine_code, "disassemble", missing)
    (d,) = machine_findings(made)
    assert (d.code, d.severity) == ("CK612", "note")
    assert d.facts["unchecked"] == ["setmaxnreg", "stmatrix", "tma_load", "tma_store", "wgmma"]
