"""Findings of the build: compiler messages and ptxas facts as diagnostics at the author's line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cake.codegen.ptxas import FunctionFacts, Notice, Place, PtxasFacts
from cake.diag import Code, Diagnostic, Severity, Span, define

_STAGE = "build"

COMPILE_ERROR = define(
    code="CK601",
    name="cuda-compile-error",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="NVRTC or ptxas refuses the emitted CUDA.",
    page="""
The message is the compiler's own. For a schedule in Cake IR this is a fault of the emitter or of a
check that should have caught the mistake earlier: report it with the schedule. For hand-written
CUDA, correct the line named. `facts.cuda` holds the CUDA line where the compiler quotes it.
""",
)

WGMMA_SERIALISED = define(
    code="CK602",
    name="wgmma-serialised",
    severity=Severity.WARNING,
    stage=_STAGE,
    summary="ptxas serialises the wgmma instructions of a kernel.",
    page="""
Notices C7509 to C7516. The result is right, but every wgmma waits for the one before, which costs
most of the throughput. Usual causes, each named in the notice: accumulators that do not fit the
registers known at entry, a function call between issue and wait, accumulators or register operands
touched between the first wgmma of a group and its wait, a wait that only some paths reach.
""",
)

SETMAXNREG_IGNORED = define(
    code="CK603",
    name="setmaxnreg-ignored",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="ptxas drops every setmaxnreg, so the register budgets of the roles do not hold.",
    page="""
Notices C7504 to C7508, or fewer USETMAXREG in the machine code than there are budgets. ptxas needs
the register count at entry: `__launch_bounds__` with both the threads and the minimum blocks per
SM. It also drops setmaxnreg in debug builds, beside calls of extern functions, and when PTX passes
through nvJitLink instead of going straight to a cubin.
""",
)

REGISTER_SPILL = define(
    code="CK604",
    name="register-spill",
    severity=Severity.WARNING,
    stage=_STAGE,
    summary="Registers are spilled to local memory.",
    page="""
The live values do not fit the registers per thread, so some live in local memory (L1 or L2).
Shrink the tile, split the accumulator, give the role more registers, or lower the minimum number
of blocks per SM.
""",
)

PTXAS_NOTICE = define(
    code="CK605",
    name="ptxas-notice",
    severity=Severity.WARNING,
    stage=_STAGE,
    summary="ptxas reports something that CAKE has no special rule for.",
    page="""
The text is that of ptxas; `facts.ptxas_code` is its code where it has one. A notice that keeps
coming back deserves a rule of its own.
""",
)

WGMMA_REPAIRED = define(
    code="CK606",
    name="wgmma-repaired",
    severity=Severity.WARNING,
    stage=_STAGE,
    summary="ptxas inserts a wgmma fence or wait that the kernel lacks on some path.",
    page="""
Notices C7517 to C7519. Registers that a wgmma uses are touched without the `wgmma_fence` before it
or the `wgmma_wait` after it. ptxas repairs registers, not shared memory, and the inserted wait
stalls. Put the fence or the wait on every path from the touch to the wgmma.
(PTX ISA, "Asynchronous warpgroup level matrix instructions".)
""",
)

STACK_FRAME = define(
    code="CK607",
    name="stack-frame",
    severity=Severity.WARNING,
    stage=_STAGE,
    summary="A function keeps a stack frame in local memory although nothing is spilled.",
    page="""
A per-thread array is indexed with a value that the compiler does not know, or its address escapes.
Unroll the loop that indexes it, or keep the array in shared memory.
""",
)

COMPILER_MISSING = define(
    code="CK608",
    name="nvrtc-missing",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The NVRTC library, or the CUDA headers it needs, cannot be found.",
    page="""
Install the wheels that CAKE depends on: `pip install nvidia-cuda-nvrtc nvidia-cuda-runtime
cuda-bindings`, all of one CUDA release.
""",
)

BUILD_LIMIT = define(
    code="CK609",
    name="build-limit",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="An isolated build ran past its time or memory, or its process died.",
    page="""
Foreign CUDA is compiled in a child process with limits. Macros or templates that expand without
end, and very large sources, run into them. Raise the limits only for sources that you trust.
""",
)

DISASSEMBLER_MISSING = define(
    code="CK610",
    name="nvdisasm-failed",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="nvdisasm is not installed, or it does not accept the cubin.",
    page="""
Install it with `pip install nvidia-cuda-nvdisasm`, in a release no older than that of NVRTC: an
older nvdisasm does not know newer architectures.
""",
)

INSTRUCTION_MISSING = define(
    code="CK611",
    name="instruction-missing",
    severity=Severity.WARNING,
    stage=_STAGE,
    summary="The machine code lacks the instruction that a primitive of the schedule stands for.",
    page="""
`wgmma` becomes HGMMA (or IGMMA, QGMMA), `tma_load` UTMALDG, `cp_async` LDGSTS, `ldmatrix` LDSM,
and so on. ptxas has removed the instruction, because nothing uses what it does or the code is
never reached, or has replaced it. The kernel then does not do what the schedule says, or not by
the means that it names. `cake show sass` shows the code.
""",
)

MACHINE_CODE_UNREAD = define(
    code="CK612",
    name="machine-code-unread",
    severity=Severity.NOTE,
    stage=_STAGE,
    summary="The machine code was not looked at.",
    page="""
Without nvdisasm, or with one that is older than NVRTC, it stays unchecked whether the instructions
that the schedule asks for are in the cubin; `facts.unchecked` lists the primitives. Install it
with `pip install nvidia-cuda-nvdisasm`.
""",
)

_BY_PTXAS_CODE: dict[str, Code] = (
    {f"C{number}": SETMAXNREG_IGNORED for number in range(7504, 7509)}
    | {f"C{number}": WGMMA_SERIALISED for number in range(7509, 7517)}
    | {f"C{number}": WGMMA_REPAIRED for number in range(7517, 7520)}
)

_HELPS: dict[Code, str] = {
    SETMAXNREG_IGNORED: "bound the kernel with both threads and minimum blocks per SM",
    WGMMA_SERIALISED: "keep accumulators untouched between the first wgmma and its wait",
    WGMMA_REPAIRED: "put wgmma_fence before the wgmma and wgmma_wait before the use, on every path",
}

_COMPILER_MESSAGE = re.compile(
    r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?P<kind>error|warning|catastrophic error)"
    r"(?: #(?P<number>\d+)-D)?: (?P<text>.*)$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerMessage:
    """A message of NVRTC's front end; ``cuda`` is the source line that it quotes, or empty."""

    place: Place
    error: bool
    text: str
    cuda: str


def line_span(place: Place) -> Span:
    """The whole line of ``place``: the compiler's columns count in the CUDA, not in the author's
    source."""
    return Span(file=place.file, line=place.line, col=1, end_line=place.line + 1, end_col=1)


def compiler_messages(log: str) -> Iterator[CompilerMessage]:
    """The errors and warnings of NVRTC's front end in ``log``."""
    lines = iter(log.splitlines())
    for line in lines:
        found = _COMPILER_MESSAGE.match(line)
        if not found:
            continue
        details: list[str] = []
        for follower in lines:  # up to the blank line that ends a message
            if not follower.strip():
                break
            details.append(follower.strip())
        cuda = details[-2] if len(details) >= 2 and details[-1] == "^" else ""
        text = [found["text"], *(details[:-2] if cuda else details)]
        yield CompilerMessage(
            place=Place(file=found["file"], line=int(found["line"])),
            error="error" in found["kind"],
            text=" ".join(text),
            cuda=cuda,
        )


def error_findings(log: str, facts: PtxasFacts, target: str) -> list[Diagnostic]:
    """What made a build fail: front-end errors, else errors of ptxas, else the log as it is."""
    found = [
        Diagnostic.of(
            COMPILE_ERROR,
            f"NVRTC: {message.text}",
            line_span(message.place),
            facts={"cuda": message.cuda} if message.cuda else None,
        )
        for message in compiler_messages(log)
        if message.error
    ]
    errors = [notice for notice in facts.notices if notice.severity in ("error", "fatal")]
    # "Ptx assembly aborted" adds nothing when the cause is listed before it.
    causes = [notice for notice in errors if notice.code or notice.severity == "error"]
    found += [_notice_finding(COMPILE_ERROR, notice, None) for notice in causes or errors]
    text = " ".join(log.split()) or "no message"
    return found or [Diagnostic.of(COMPILE_ERROR, f"NVRTC for {target}: {text[:400]}")]


def ptxas_findings(
    facts: PtxasFacts,
    kernel_span: Span | None = None,
    spill_places: Mapping[Place, int] | None = None,
) -> list[Diagnostic]:
    """The diagnostics of a build that succeeded.

    Notices without a line of their own stand at ``kernel_span``. ``spill_places`` counts local
    loads and stores by line (:func:`cake.codegen.sass.spill_places`); with it a spill or a stack
    frame stands at the line that has most of them.
    """
    found = [
        _notice_finding(_BY_PTXAS_CODE.get(notice.code, PTXAS_NOTICE), notice, kernel_span)
        for notice in facts.notices
    ]
    for function in facts.functions:
        if function.spill_store_bytes or function.spill_load_bytes:
            found.append(_spill_finding(function, kernel_span, spill_places or {}))
        elif function.stack_bytes:
            found.append(
                Diagnostic.of(
                    STACK_FRAME,
                    f"`{function.name}` keeps {function.stack_bytes} bytes of stack per thread in "
                    "local memory",
                    _worst_span(spill_places or {}, kernel_span),
                    label="most of its accesses are here" if spill_places else None,
                    facts={"function": function.name, "stack_bytes": function.stack_bytes},
                    helps=("index per-thread arrays with compile-time values only",),
                )
            )
    return found


def _notice_finding(code: Code, notice: Notice, kernel_span: Span | None) -> Diagnostic:
    span = kernel_span if notice.place is None else line_span(notice.place)
    label = f" ({notice.code})" if notice.code else ""
    return Diagnostic.of(
        code,
        f"ptxas{label}: {notice.text}",
        span,
        facts={
            "ptxas_code": notice.code or None,
            "function": notice.function,
            "ptx_line": notice.ptx_line,
        },
        helps=(_HELPS[code],) if code in _HELPS else (),
    )


def _worst_span(places: Mapping[Place, int], kernel_span: Span | None) -> Span | None:
    """The line with most accesses to local memory; the kernel if they are not known."""
    worst = max(places, key=lambda place: places[place], default=None)
    return kernel_span if worst is None else line_span(worst)


def _spill_finding(
    function: FunctionFacts, kernel_span: Span | None, places: Mapping[Place, int]
) -> Diagnostic:
    return Diagnostic.of(
        REGISTER_SPILL,
        f"`{function.name}` spills {function.spill_store_bytes} bytes per thread to local memory "
        f"and loads {function.spill_load_bytes} back, with {function.registers} registers",
        _worst_span(places, kernel_span),
        label="most of the spilled accesses are here" if places else None,
        facts={
            "function": function.name,
            "spill_store_bytes": function.spill_store_bytes,
            "spill_load_bytes": function.spill_load_bytes,
            "stack_bytes": function.stack_bytes,
            "registers": function.registers,
        },
        helps=("shrink the tile, raise the role's registers, or lower the blocks per SM",),
    )
