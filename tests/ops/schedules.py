"""Schedules for the tests of memory and synchronisation primitives: a frame around role bodies."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

from cake.codegen.compile import compile_program
from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.simulate.run import simulate

PARAMS = (
    'x: Tensor[bf16, "B", "M", 128], y: Tensor[f32, "M", "N"], '
    'z: Tensor[bf16, "M", "N"], c: Tensor[i32, "N"], w: Tensor[f32, "N"], v: Tensor[f32, 4096]'
)


def source(roles: str, decls: str = "", *, params: str = PARAMS, target: str = "sm_90a") -> str:
    """Text of a schedule: declarations, then role bodies."""
    head = f'@cake.schedule(target="{target}")\ndef kernel({params}):\n'
    body = indent(dedent(decls) + "\n" + dedent(roles), "    ")
    return f"import cake\n\n{head}{body}\n"


def one_role(body: str, role: str = "warps=1") -> str:
    """A single role ``r`` with a body."""
    return f"r = role({role})\nwith r as u:\n{indent(dedent(body), '    ')}"


def program(roles: str, decls: str = "", **options: str) -> Program:
    """The elaborated program; raises CakeError for a rejected schedule."""
    return parse(source(roles, decls, **options)).program()


def message(body: str, decls: str = "", *, role: str = "warps=1", **options: str) -> str:
    """Message and helps of the only error in a one-role schedule."""
    found = parse(source(one_role(body, role), decls, **options)).diagnostics
    errors = [d for d in found if d.severity == "error"]
    assert len(errors) == 1, [d.message for d in errors]
    return "\n".join([errors[0].message, *errors[0].helps])


def accepted(body: str, decls: str = "", *, role: str = "warps=1", **options: str) -> Program:
    """A one-role schedule that must elaborate."""
    return program(one_role(body, role), decls, **options)


def run(made: Program, tensors: dict[str, Any], order: str = "late", **options: Any) -> None:
    """Simulate a program that must have no findings; tensors are written in place."""
    found = simulate(made, tensors, {}, order=order, **options)
    assert found.ok, [d.message for d in found.findings]


def finding(made: Program, tensors: dict[str, Any]) -> str:
    """Code and message of the only finding of a simulation."""
    result = simulate(made, tensors, {})
    assert len(result.findings) == 1, [d.message for d in result.findings]
    return f"{result.findings[0].code}: {result.findings[0].message}"


def cuda(made: Program) -> str:
    """The emitted source of a program that must compile without notices."""
    compiled = compile_program(made)
    assert not compiled.diagnostics, [d.message for d in compiled.diagnostics]
    return compiled.source
