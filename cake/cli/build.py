"""`cake build`: cubins, their CUDA, and what ptxas says about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cake.cli.files import make_folder, write
from cake.cli.options import cake_command, level_option, schedule_options
from cake.cli.output import Output
from cake.cli.sources import checked, chosen, read
from cake.cli.status import Status, status_of
from cake.codegen.cache import KernelCache
from cake.codegen.compile import Compiled, compile_program
from cake.codegen.machine_code import machine_findings
from cake.diag import Diagnostic, to_json
from cake.verify.rule import Level

_COLUMNS = ("schedule", "target", "registers", "spilled", "stack", "smem", "threads", "cubin", "s")


@cake_command("build")
@schedule_options
@level_option
@click.option("--schedule", "name", help="Only this schedule of the file.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    help="Write NAME.cubin, NAME.cu and NAME.json into this folder.",
)
def command(
    out: Output,
    file: str,
    meta: Mapping[str, Any],
    target: str | None,
    level: Level,
    name: str | None,
    folder: Path | None,
) -> Status:
    """Compile a schedule to a cubin, with facts and findings.

    Checks first: a rejected schedule is not built. No GPU is needed. The machine code is looked
    through for the instructions that the schedule asks for. NAME.json holds the kernel's interface,
    the facts of ptxas and its findings.
    """
    text = read(file)
    accepted = checked(text, meta, target, level)
    found = list(accepted.diagnostics)
    made: list[Compiled] = []
    cache = KernelCache(warn=found.append)
    picked = chosen(accepted.programs, name)
    with out.progress("building", len(picked)) as advance:
        for program in picked:
            advance(program.name, steps=0)
            made.append(compile_program(program, cache=cache))
            found += made[-1].diagnostics
            found += machine_findings(made[-1])
            advance()
    if folder is not None:
        make_folder(folder)
        for compiled in made:
            _save(folder, compiled)
    out.findings(found, text.sources)
    out.table(_COLUMNS, [_row(compiled) for compiled in made])
    out.line("bytes, but for registers, threads and seconds; 0 s: taken from the cache")
    status = status_of(found) or accepted.status
    out.heading(f"{text.file}: {status.word}" + (f", written to {folder}" if folder else ""))
    return out.finish(status, {"file": text.file, "kernels": [_facts(m) for m in made]}, found)


def _facts(compiled: Compiled) -> dict[str, Any]:
    entry = compiled.build.facts.entry(compiled.abi.name)
    return {
        "name": compiled.program.name,
        "symbol": compiled.abi.name,
        "target": compiled.abi.target,
        "meta": {k: str(v) for k, v in compiled.program.bindings.items()},
        "registers": entry.registers if entry else None,
        "spill_bytes": entry.spill_store_bytes + entry.spill_load_bytes if entry else None,
        "stack_bytes": entry.stack_bytes if entry else None,
        "smem_bytes": compiled.abi.smem_bytes + (entry.smem_bytes if entry else 0),
        "threads": compiled.abi.block,
        "cubin_bytes": len(compiled.build.cubin),
        "build_seconds": round(compiled.build.seconds, 3),
    }


def _row(compiled: Compiled) -> tuple[object, ...]:
    facts = _facts(compiled)
    return (
        facts["name"],
        facts["target"],
        *(
            "?" if facts[key] is None else facts[key]
            for key in ("registers", "spill_bytes", "stack_bytes", "smem_bytes", "threads")
        ),
        facts["cubin_bytes"],
        f"{compiled.build.seconds:.2f}",
    )


def _save(folder: Path, compiled: Compiled) -> None:
    name = compiled.program.name
    write(folder / f"{name}.cubin", compiled.build.cubin)
    write(folder / f"{name}.cu", compiled.source.encode())
    document = {
        **_facts(compiled),
        "abi": json.loads(compiled.abi.to_json()),
        "ptxas": json.loads(compiled.build.facts.to_json()),
        "diagnostics": _documents(compiled.diagnostics),
    }
    write(folder / f"{name}.json", (json.dumps(document, indent=1) + "\n").encode())


def _documents(diagnostics: tuple[Diagnostic, ...]) -> list[dict[str, Any]]:
    return [to_json(found) for found in diagnostics]
