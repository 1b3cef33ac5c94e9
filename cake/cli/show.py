"""`cake show`: what becomes of a schedule, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from cake.cli.options import cake_command, schedule_options
from cake.cli.output import Output
from cake.cli.sources import chosen, programs, read
from cake.cli.status import Status
from cake.codegen.build import compile_cubin
from cake.codegen.compile import FLAGS
from cake.codegen.cuda import Emitted, emit_program
from cake.codegen.sass import disassemble
from cake.ir.program import Program
from cake.lang.printer import print_program

_WHAT = ("ir", "cuda", "ptx", "sass")


@cake_command("show")
@schedule_options
@click.option("--what", type=click.Choice(_WHAT), default="ir", show_default=True)
@click.option("--schedule", "name", help="Only this schedule of the file.")
def command(
    out: Output,
    file: str,
    meta: Mapping[str, Any],
    target: str | None,
    what: str,
    name: str | None,
) -> Status:
    """Print a schedule as IR, CUDA, PTX or SASS.

    ir is the canonical source of the elaborated program: meta parameters bound, compile-time loops
    and inline helpers expanded. Several schedules follow one another in source order.
    """
    found = chosen(programs(read(file), meta, target), name)
    texts = {}
    with out.progress(f"making {what}", len(found)) as advance:
        for program in found:
            texts[program.name] = _text(program, what)
            advance()
    for text in texts.values():
        out.line(text.rstrip("\n"))
    entries = [{"name": name, "text": text} for name, text in texts.items()]
    return out.finish(Status.ACCEPTED, {"what": what, "schedules": entries})


def _text(program: Program, what: str) -> str:
    if what == "ir":
        return print_program(program)
    emitted = emit_program(program)
    if what == "cuda":
        return emitted.source
    return _compiled(emitted, what)


def _compiled(emitted: Emitted, what: str) -> str:
    built = compile_cubin(
        emitted.source,
        name=emitted.abi.name,
        target=emitted.abi.target,
        options=FLAGS,
        include_cuda_headers=False,
        want_ptx=what == "ptx",
    )
    return built.ptx or "" if what == "ptx" else disassemble(built.cubin)
