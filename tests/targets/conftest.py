"""An assembler for the tests of this folder: NVRTC to cubin, which runs ptxas."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cuda.bindings import nvrtc
from cuda.pathfinder import find_nvidia_binary_utility

# Every snippet may use these; a kernel that leaves them unset still assembles.
REGISTERS = """
.reg .pred p; .reg .b16 h<4>; .reg .b32 r<8>, sa, sb, bar; .reg .b64 g, s<4>; .reg .f32 f<8>;
"""


@dataclass(frozen=True, slots=True)
class Assembled:
    """What came of one compilation: whether ptxas accepted, its log, and the cubin if so."""

    ok: bool
    log: str
    cubin: bytes


class Assembler:
    """Compiles CUDA C++, or snippets of PTX wrapped into a kernel, for one exact target."""

    def cuda(self, source: str, arch: str) -> Assembled:
        error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"probe.cu", 0, [], [])
        assert int(error) == 0, error
        options = [f"--gpu-architecture={arch}".encode()]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        cubin = b""
        if int(status) == 0:
            _, size = nvrtc.nvrtcGetCUBINSize(program)
            cubin = b" " * size
            nvrtc.nvrtcGetCUBIN(program, cubin)
        nvrtc.nvrtcDestroyProgram(program)
        return Assembled(ok=int(status) == 0, log=log.decode().strip("\0 \n"), cubin=cubin)

    def ptx(self, snippets: Iterable[str], arch: str) -> Assembled:
        """One kernel of 128 threads that holds all snippets, each in a scope of its own."""
        blocks = [f'asm volatile("{{{_one_line(REGISTERS + s)}}}");' for s in snippets]
        body = "\n".join(blocks)
        return self.cuda(
            f'extern "C" __global__ void __launch_bounds__(128, 1) probe() {{\n{body}\n}}', arch
        )

    def accepts(self, snippet: str, arch: str) -> bool:
        """Whether ptxas takes one snippet."""
        return self.ptx([snippet], arch).ok

    def sass(self, kernels: Iterable[str], arch: str, folder: Path) -> list[str]:
        """The machine code of kernels, each given as PTX that addresses memory through ``%0``."""
        source = "\n".join(
            f'extern "C" __global__ void kernel{i}(void* memory) '
            f'{{ asm volatile("{{{_one_line(text)}}}" :: "l"(memory) : "memory"); }}'
            for i, text in enumerate(kernels)
        )
        assembled = self.cuda(source, arch)
        assert assembled.ok, assembled.log
        path = folder / f"{arch}.cubin"
        path.write_bytes(assembled.cubin)
        tool = find_nvidia_binary_utility("nvdisasm")
        assert tool is not None, "nvdisasm comes with the nvidia-cuda-nvdisasm wheel"
        listing = subprocess.run([tool, "-c", path], capture_output=True, text=True, check=True)
        pieces = re.split(r"^\.text\.kernel(\d+):$", listing.stdout, flags=re.MULTILINE)[1:]
        by_number = {int(n): text for n, text in zip(pieces[::2], pieces[1::2], strict=True)}
        return [by_number[i] for i in range(len(by_number))]


def _one_line(ptx: str) -> str:
    return " ".join(ptx.split())


@pytest.fixture(scope="session")
def assembler() -> Assembler:
    return Assembler()
