"""From a program to a compiled kernel: emission, build, cache, and what ptxas has to say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cake.codegen.abi import KernelAbi
from cake.codegen.build import BuildError, BuildResult, compile_cubin, compiler_version
from cake.codegen.build_findings import ptxas_findings
from cake.codegen.cache import CacheEntry, KernelCache, cache_key
from cake.codegen.cuda import EMITTER_VERSION, Emitted, emit_program
from cake.codegen.cuda_writer import line_places, without_line_directives
from cake.codegen.ptxas import Place, PtxasFacts
from cake.codegen.sass import spill_places
from cake.diag import Diagnostic
from cake.ir.program import Program
from cake.lang.printer import print_program

# f32 arithmetic rounds after every operation; the language has an explicit fma.
FLAGS = ("-fmad=false",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A program with everything that was made of it.

    ``build.seconds`` is 0 for a kernel from the cache. ``diagnostics`` are the findings of ptxas at
    the author's lines.
    """

    program: Program
    source: str
    abi: KernelAbi
    build: BuildResult
    diagnostics: tuple[Diagnostic, ...]


def compile_program(
    program: Program, *, cache: KernelCache | None = None, arch: str | None = None
) -> Compiled:
    """Emit and build a program, or take the kernel from ``cache``.

    The cache knows kernels by their canonical text: an edit that moves lines finds the kernel
    again, and findings move to the new lines. ``arch`` builds the same code for another
    architecture than the program's target, such as an sm_80 schedule for an sm_90 device
    (:func:`cake.runtime.kernel.architecture`); the instructions stay those of the target.

    Raises:
        CakeError: the emitter cannot write the program (CK62x).
        BuildError: the compiler refuses what was written (CK601), which is a fault of CAKE.
    """
    emitted = emit_program(program)
    if arch is not None:
        emitted = replace(emitted, abi=replace(emitted.abi, target=arch))
    if cache is None:
        result = _build(emitted)
        return _compiled(program, emitted, _entry(emitted, result), result.seconds)
    key = cache_key(
        ir_text=print_program(program),
        target=emitted.abi.target,
        emitter_version=_emitter_version(emitted),
        compiler_version=compiler_version(),
        flags=FLAGS,
    )
    seconds = 0.0

    def build() -> CacheEntry:
        nonlocal seconds
        result = _build(emitted)
        seconds = result.seconds
        return _entry(emitted, result)

    return _compiled(program, emitted, cache.get_or_build(key, build), seconds)


def _emitter_version(emitted: Emitted) -> str:
    """What stands for the emitter in the key: its text, so that a changed primitive is noticed.

    Without ``#line`` the text depends on the canonical program alone.
    """
    text = without_line_directives(emitted.source)
    return f"{EMITTER_VERSION}-{hashlib.sha256(text.encode()).hexdigest()}"


def _build(emitted: Emitted) -> BuildResult:
    return compile_cubin(
        emitted.source,
        name=emitted.abi.name,
        target=emitted.abi.target,
        options=FLAGS,
        include_cuda_headers=False,
    )


def _entry(emitted: Emitted, result: BuildResult) -> CacheEntry:
    return CacheEntry(
        cubin=result.cubin,
        abi=emitted.abi,
        facts=result.facts,
        source=emitted.source,
        log=result.log,
    )


def _compiled(
    program: Program, emitted: Emitted, entry: CacheEntry, seconds: float = 0.0
) -> Compiled:
    moved = _moved_places(entry.source, emitted.source)
    facts = _at_new_places(entry.facts, moved)
    spills = {moved.get(p, p): n for p, n in _spills(entry).items()}
    return Compiled(
        program=program,
        source=emitted.source,
        abi=emitted.abi,
        build=BuildResult(cubin=entry.cubin, ptx=None, log=entry.log, facts=facts, seconds=seconds),
        diagnostics=tuple(ptxas_findings(facts, program.loc, spills)),
    )


def _moved_places(old: str, new: str) -> Mapping[Place, Place]:
    """The lines of the author's present text for those that a kernel was built from.

    Both sources come from equal programs, so they differ in their ``#line`` directives alone.
    """
    if old == new:
        return {}
    return dict(zip(line_places(old), line_places(new), strict=False))


def _at_new_places(facts: PtxasFacts, moved: Mapping[Place, Place]) -> PtxasFacts:
    notices = tuple(
        n if n.place is None else replace(n, place=moved.get(n.place, n.place))
        for n in facts.notices
    )
    return replace(facts, notices=notices)


def _spills(entry: CacheEntry) -> Mapping[Place, int]:
    """Local accesses by line, if there are any and nvdisasm can be asked."""
    if not any(
        f.spill_store_bytes or f.spill_load_bytes or f.stack_bytes for f in entry.facts.functions
    ):
        return {}
    try:
        return spill_places(entry.cubin, entry.source)
    except BuildError:
        return {}  # the finding then stands at the kernel; a missing tool is no fault of it
