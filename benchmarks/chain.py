"""A schedule file as something to call: its kernels in order, on torch tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cake.codegen.compile import compile_program
from cake.diag import CakeError
from cake.ir.program import Program
from cake.kernels.tensors import padded
from cake.lang.elaborate import parse
from cake.runtime.driver import device
from cake.runtime.kernel import LoadedKernel, architecture

KERNELS = Path(__file__).parent.parent / "cake" / "kernels"


class Chain:
    """Compiled kernels of a file; temporaries are made by the caller."""

    def __init__(self, path: str, target: str | None = None, **meta: Any) -> None:
        file = KERNELS / path
        parsed = parse(file.read_text(), str(file), meta=meta, target=target)
        if not parsed.ok:
            raise CakeError(parsed.diagnostics)
        self.programs = parsed.programs
        self.logs: list[str] = []
        self.kernels = [self._load(p) for p in parsed.programs]

    def _load(self, program: Program) -> tuple[LoadedKernel, frozenset[str]]:
        """Build for the GPU at hand: code for sm_80 runs on sm_90 when it is built for it."""
        here = device(0)
        compiled = compile_program(program, arch=architecture(program.target, here))
        abi, built = compiled.abi, compiled.build
        facts = built.facts.entry(abi.name)
        self.logs.append(
            f"{program.name}: {facts.registers} registers, {facts.spill_store_bytes} B spilled, "
            f"{abi.smem_bytes} smem, {abi.block} threads, "
            f"{[n.code for n in built.facts.notices]}"
        )
        names = frozenset(p.name for p in program.params)
        return LoadedKernel(built.cubin, abi), names

    def temporaries(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Tensors of the kernels that ``args`` lacks, on the device of torch."""
        import torch

        dims = {
            d: size
            for p in self.programs
            for t in p.tensors
            if t.name in args
            for d, size in zip(t.shape, args[t.name].shape, strict=True)
        }
        kinds = {"f32": torch.float32, "i32": torch.int32, "bf16": torch.bfloat16}
        found = {}
        for t in (t for p in self.programs for t in p.tensors if t.name not in args):
            shape = tuple(dims[d] if isinstance(d, str) else d for d in t.shape)
            stored = padded(shape, t.dtype.bytes)
            whole = torch.empty(stored, dtype=kinds[t.dtype.name], device="cuda")
            found[t.name] = whole[..., : shape[-1]]
        return found

    def __call__(self, args: Mapping[str, Any]) -> None:
        for kernel, names in self.kernels:
            kernel.launch({n: args[n] for n in names})
