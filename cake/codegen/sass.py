"""The machine code of a cubin: disassembly, and which opcodes it holds."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection

from cake.codegen.build import BuildError
from cake.codegen.build_findings import DISASSEMBLER_MISSING
from cake.codegen.ptxas import Place, as_given, line_files
from cake.diag import Diagnostic

# An instruction line of nvdisasm: /*0040*/  @!P0 LDG.E.128 R4, desc[UR4][R2.64] ;
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[T\d]+\s+)?(?P<opcode>[A-Z][A-Z0-9_]*)"
)
_LINE_INFO = re.compile(r'^\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')

_LOCAL_ACCESSES = ("LDL", "STL")


def disassemble(cubin: bytes, *, line_info: bool = False, timeout_s: float = 60.0) -> str:
    """The SASS of ``cubin`` as nvdisasm prints it, with source lines if ``line_info``.

    Raises :class:`BuildError` (``nvdisasm-failed``) if nvdisasm is not installed, refuses the
    cubin, or takes longer than ``timeout_s`` seconds.
    """
    from cuda import pathfinder

    program = pathfinder.find_nvidia_binary_utility("nvdisasm")
    if program is None:
        raise _failure("nvdisasm is not installed")
    flags = ["--print-code", *(["--print-line-info-inline"] if line_info else [])]
    try:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            child = subprocess.run(
                [program, *flags, file.name],
                capture_output=True,
                timeout=timeout_s,
                text=True,
                errors="replace",
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise _failure(f"nvdisasm took longer than {timeout_s:g} s") from None
    except OSError as error:
        folder = tempfile.gettempdir()
        raise _failure(f"nvdisasm reads files only, and {folder} takes none: {error}") from None
    if child.returncode != 0:
        said = " ".join((child.stderr or child.stdout).replace(file.name, "the cubin").split())
        raise _failure(f"nvdisasm ended with status {child.returncode}: {said[:300]}")
    return child.stdout


def _failure(problem: str) -> BuildError:
    help_text = "pip install --upgrade nvidia-cuda-nvdisasm"
    return BuildError([Diagnostic.of(DISASSEMBLER_MISSING, problem, helps=(help_text,))])


def opcode_counts(sass: str) -> Counter[str]:
    """How often each opcode stands in ``sass``, without modifiers (``HGMMA``, ``USETMAXREG``)."""
    found = (_INSTRUCTION.match(line) for line in sass.splitlines())
    return Counter(match["opcode"] for match in found if match)


def opcode_places(
    sass: str, opcodes: Collection[str], files: Collection[str] = ()
) -> Counter[Place]:
    """How many of ``opcodes`` come from each source line.

    ``sass`` must have been disassembled with ``line_info`` from a cubin built with it; ``files``
    are the names that the source gave in ``#line``. With inlining, code counts for the outermost
    call.
    """
    counts: Counter[Place] = Counter()
    current: Place | None = None
    for line in sass.splitlines():
        if found := _LINE_INFO.match(line):
            current = Place(file=as_given(found["file"], files), line=int(found["line"]))
        elif current and (match := _INSTRUCTION.match(line)) and match["opcode"] in opcodes:
            counts[current] += 1
    return counts


def spill_places(cubin: bytes, source: str) -> Counter[Place]:
    """The author's lines whose code touches local memory, with the number of such instructions.

    ``cubin`` must have been built from ``source`` with line information. Raises as
    :func:`disassemble` does.
    """
    files = line_files(source)
    places = opcode_places(disassemble(cubin, line_info=True), _LOCAL_ACCESSES, files)
    return Counter({place: count for place, count in places.items() if place.file in files})
