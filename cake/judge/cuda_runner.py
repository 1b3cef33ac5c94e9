"""The runner of direct CUDA candidates: sources that NVRTC compiles, launched by the judge.

Named in ``Evaluation.plugins`` as ``cake.judge.cuda_runner``; its name as a runner is ``cuda``. The
source begins with its manifest (:mod:`cake.judge.manifest`). It has no host code of its own; its
kernels may keep nothing from one call to the next: globals that can be written are refused, and
workspaces are cleared before every call.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from cake.codegen.build import BuildError as CompileError
from cake.codegen.build import BuildResult, compile_isolated
from cake.diag import CakeError
from cake.judge.candidate import BuildError, Candidate
from cake.judge.device_cuda import CudaArray, CudaBuffer
from cake.judge.gpu_clock import target_of
from cake.judge.manifest import Manifest, read_manifest
from cake.judge.runners import register
from cake.runtime import driver
from cake.runtime.kernel import LoadedKernel
from cake.workloads import Problem

PLUGIN = __name__
RUNNER = "cuda"
DEFAULT_STREAM = 0
_BYTE: np.dtype[np.generic] = np.dtype(np.uint8)

# PTX ISA, "State Spaces": variables at module scope that kernels can write.
_GLOBAL = re.compile(r"\.global\b[^;=]*?\s(?P<name>[A-Za-z_$][\w$]*)(\[\d*\])?\s*[=;]")
_GLOBAL_SECTIONS = (".nv.global", ".nv.global.init")


@register(RUNNER)
class CudaRunner:
    """Kernels built for GPU 0 and its problem."""

    def __init__(self, candidate: Candidate, problem: Problem) -> None:
        try:
            here = driver.device(0)
            target = target_of(here.capability)
            manifest = read_manifest(candidate.text, problem, target=target, sms=here.sms)
            built = build(candidate, manifest, target)
        except CakeError as error:
            raise BuildError(str(error)) from None
        self._problem = problem
        self._launches = [
            (LoadedKernel(built.cubin, launch.abi), launch) for launch in manifest.launches
        ]
        self._workspaces = {
            name: CudaArray(CudaBuffer(size), 0, (size,), _BYTE)
            for name, size in manifest.workspaces.items()
        }

    def run(self, tensors: Mapping[str, Any]) -> None:
        """Launch all kernels in order."""
        arrays = {**tensors, **self._workspaces}
        for kernel, launch in self._launches:
            given = {t.name: arrays[t.name] for t in launch.abi.tensors}
            kernel.launch({**given, **launch.scalars})

    def reset(self) -> None:
        """Clear the workspaces: nothing that a call left there reaches the next one."""
        cu = driver.driver()
        for array in self._workspaces.values():
            done = cu.cuMemsetD8Async(array.data_ptr(), 0, array.shape[0], DEFAULT_STREAM)
            driver.checked(done, "cuMemsetD8Async")


def build(candidate: Candidate, manifest: Manifest, target: str) -> BuildResult:
    """The cubin of a candidate, compiled in a limited process.

    Raises :class:`BuildError` with the compiler's messages, or for globals that can be written.
    """
    try:
        built = compile_isolated(
            candidate.text,
            name=candidate.entry,
            target=target,
            options=manifest.options,
            want_ptx=True,
        )
    except CompileError as error:
        raise BuildError(error.log or str(error)) from None
    if any(name in _GLOBAL_SECTIONS for name in section_names(built.cubin)):
        found = dict.fromkeys(match["name"] for match in _GLOBAL.finditer(built.ptx or ""))
        raise BuildError(
            f"globals outlive a call and may hold results of an earlier one: {', '.join(found)}; "
            "use a workspace of the manifest, or __constant__ for tables"
        )
    return built


def section_names(cubin: bytes) -> tuple[str, ...]:
    """The sections of an ELF file of 64 bits (System V ABI, "Section Header")."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<3H", cubin, 0x3A)
    headers = [struct.unpack_from("<I20xQ", cubin, start + i * size) for i in range(count)]
    (texts,) = (offset for i, (_, offset) in enumerate(headers) if i == names_at)
    return tuple(
        cubin[texts + name : cubin.index(b"\0", texts + name)].decode() for name, _ in headers
    )
