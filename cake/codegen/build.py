"""CUDA C++ to cubin through NVRTC, in this process or in a limited child process.

NVRTC goes straight to a cubin: a detour through PTX and nvJitLink silently drops setmaxnreg. No
driver and no GPU are needed.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cake.codegen.build_findings import (
    BUILD_LIMIT,
    COMPILE_ERROR,
    COMPILER_MISSING,
    error_findings,
)
from cake.codegen.ptxas import PtxasFacts, line_files, parse_log, ptx_places
from cake.diag import CakeError, Diagnostic, from_json, to_json

_TARGET = re.compile(r"sm_\d{2,3}[af]?")
_GIB = 1 << 30


class BuildError(CakeError):
    """A build failed; ``diagnostics`` says why and ``log`` is the compiler's whole output."""

    def __init__(self, diagnostics: Sequence[Diagnostic], log: str = "") -> None:
        super().__init__(diagnostics)
        self.log = log
        self.args = (tuple(diagnostics), log)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """A compiled kernel: ``ptx`` only where it was asked for; ``seconds`` is wall time."""

    cubin: bytes
    ptx: str | None
    log: str
    facts: PtxasFacts
    seconds: float


def compile_cubin(
    source: str,
    *,
    name: str,
    target: str,
    options: Sequence[str] = (),
    include_cuda_headers: bool = True,
    lineinfo: bool = True,
    want_ptx: bool = False,
) -> BuildResult:
    """Compile CUDA C++ to a cubin for exactly ``target`` (``sm_90a``; also plain ``sm_90``).

    ``name`` is the file name used for lines before the first ``#line``. ``options`` are further
    NVRTC options. Without ``lineinfo`` ptxas notices keep no line, and profilers show no source.
    Raises :class:`BuildError` with every message of the compiler, at the lines that ``#line``
    names. The source runs through the compiler in this process: use :func:`compile_isolated` for
    text that you did not emit.
    """
    if not _TARGET.fullmatch(target):
        problem = f"target {target!r} is not of the form sm_90, sm_90a or sm_100f"
        raise BuildError([Diagnostic.of(COMPILE_ERROR, problem)])
    flags = [
        f"--gpu-architecture={target}",
        "-std=c++17",
        "-default-device",
        "--ptxas-options=-v",
        # With a driver at hand NVRTC keeps a cache of its own, and a hit has no ptxas report.
        "--no-cache",
        *(["-lineinfo"] if lineinfo else []),
        *([f"--include-path={cuda_include_dir()}"] if include_cuda_headers else []),
        *options,
    ]
    start = time.perf_counter()
    succeeded, cubin, ptx, log = _run_nvrtc(source, f"{name}.cu", flags)
    seconds = time.perf_counter() - start
    facts = parse_log(log, ptx_places(ptx, line_files(source)) if lineinfo else None)
    if not succeeded:
        raise BuildError(error_findings(log, facts, target), log)
    return BuildResult(
        cubin=cubin, ptx=ptx if want_ptx else None, log=log, facts=facts, seconds=seconds
    )


def _run_nvrtc(source: str, file: str, flags: Sequence[str]) -> tuple[bool, bytes, str, str]:
    """Success, cubin, PTX and log. After a failure in ptxas the PTX is still there."""
    nvrtc = _nvrtc()
    result, program = nvrtc.nvrtcCreateProgram(source.encode(), file.encode(), 0, [], [])
    _must(result)
    try:
        (compiled,) = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
        succeeded = compiled == nvrtc.nvrtcResult.NVRTC_SUCCESS
        log = _output(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        ptx = _output(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
        cubin = b""
        if succeeded:
            cubin = _output(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        elif compiled != nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION:
            log += compiled.name.encode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return succeeded, cubin, _text(ptx), _text(log)


def _text(raw: bytes) -> str:
    return raw.replace(b"\0", b"").decode(errors="replace")


def _output(size_of: Any, read: Any, program: Any) -> bytes:
    result, size = size_of(program)
    if result.value != 0:
        return b""  # a failed front end leaves no PTX
    buffer = bytearray(size)
    _must(*read(program, buffer))
    return bytes(buffer)


def _must(result: Any) -> None:
    if result.value != 0:
        raise BuildError([Diagnostic.of(COMPILE_ERROR, f"NVRTC failed with {result.name}")])


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()  # loads the library
    except (ImportError, RuntimeError) as error:
        finding = Diagnostic.of(
            COMPILER_MISSING,
            f"NVRTC cannot be loaded: {' '.join(str(error).split())[:300]}",
            helps=("pip install cuda-bindings nvidia-cuda-nvrtc",),
        )
        raise BuildError([finding]) from error
    return nvrtc


@cache
def cuda_include_dir() -> str:
    """The folder of cuda_bf16.h, cuda_fp8.h and the like."""
    from cuda import pathfinder

    folder = pathfinder.find_nvidia_header_directory("cudart")
    if folder is None:
        finding = Diagnostic.of(
            COMPILER_MISSING,
            "the CUDA headers (cuda_bf16.h) cannot be found",
            helps=("pip install nvidia-cuda-runtime",),
        )
        raise BuildError([finding])
    return str(folder)


@cache
def compiler_version() -> str:
    """What names the compiler in a cache key: its release, and its exact build.

    The release alone ("13.0") covers builds that differ in code generation.
    """
    from importlib import metadata

    from cuda import pathfinder

    _, major, minor = _nvrtc().nvrtcVersion()
    library = Path(pathfinder.load_nvidia_dynamic_lib("nvrtc").abs_path or "")
    try:
        wheel = metadata.distribution("nvidia-cuda-nvrtc")
        files = {Path(str(wheel.locate_file(file))) for file in wheel.files or ()}
        build = wheel.version if library in files else ""
    except metadata.PackageNotFoundError:
        build = ""
    if not build:
        facts = library.resolve().stat()
        build = f"{facts.st_size}-{facts.st_mtime_ns}"
    return f"nvrtc {major}.{minor} ({build})"


def compile_isolated(
    source: str,
    *,
    name: str,
    target: str,
    options: Sequence[str] = (),
    include_cuda_headers: bool = True,
    lineinfo: bool = True,
    want_ptx: bool = False,
    timeout_s: float = 60.0,
    memory_bytes: int = 4 * _GIB,
) -> BuildResult:
    """:func:`compile_cubin` in a child process, for CUDA that nobody vouches for.

    The child is killed after ``timeout_s`` seconds and may map ``memory_bytes``; it writes no file
    and has a bare environment. ``#include`` can still read files that the user may read, and their
    text can appear in the log. Raises :class:`BuildError`, with ``build-limit`` when a limit was
    hit.
    """
    request = {
        "source": source,
        "name": name,
        "target": target,
        "options": list(options),
        "include_cuda_headers": include_cuda_headers,
        "lineinfo": lineinfo,
        "want_ptx": want_ptx,
    }
    limits = [str(math.ceil(timeout_s)), str(memory_bytes)]
    command = "from cake.codegen.build import serve_one_build; serve_one_build()"
    kept = ("PATH", "LD_LIBRARY_PATH", "CUDA_PATH", "CUDA_HOME", "VIRTUAL_ENV", "LANG")
    environment = {variable: os.environ[variable] for variable in kept if variable in os.environ}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-c", command, *limits],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=timeout_s,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _limit_error(f"the build took longer than {timeout_s:g} s", timeout_s) from None
    try:
        return _result_from(json.loads(child.stdout))
    except ValueError:
        last = child.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        problem = f"the build process ended with status {child.returncode}: {last[0][:300]}"
        raise _limit_error(problem, timeout_s, memory_bytes, child.returncode) from None


def _limit_error(
    problem: str, timeout_s: float, memory_bytes: int | None = None, status: int | None = None
) -> BuildError:
    finding = Diagnostic.of(
        BUILD_LIMIT,
        problem,
        facts={"timeout_s": timeout_s, "memory_bytes": memory_bytes, "status": status},
        helps=("reduce macros, templates and unrolling, or raise the limits",),
    )
    return BuildError([finding])


def _result_from(answer: dict[str, Any]) -> BuildResult:
    if "diagnostics" in answer:
        raise BuildError([from_json(found) for found in answer["diagnostics"]], answer["log"])
    return BuildResult(
        cubin=base64.b64decode(answer["cubin"]),
        ptx=answer["ptx"],
        log=answer["log"],
        facts=PtxasFacts.from_json(answer["facts"]),
        seconds=answer["seconds"],
    )


def serve_one_build() -> None:
    """The child of :func:`compile_isolated`: one request on stdin, one answer on stdout."""
    seconds, memory = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        built = compile_cubin(**json.load(sys.stdin))
    except BuildError as error:
        answer: dict[str, Any] = {
            "diagnostics": [to_json(found) for found in error.diagnostics],
            "log": error.log,
        }
    else:
        answer = {
            "cubin": base64.b64encode(built.cubin).decode(),
            "ptx": built.ptx,
            "log": built.log,
            "facts": built.facts.to_json(),
            "seconds": built.seconds,
        }
    json.dump(answer, sys.stdout)
