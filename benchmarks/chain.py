"""A schedule file as something to call: its kernels in order, on torch tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cake.codegen.build import compile_cubin
from cake.codegen.compile import FLAGS
from cake.codegen.cuda import emit_program
from cake.diag import CakeError
from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.runtime.kernel import LoadedKernel

KERNELS = Path(__file__).parent.parent / "cake" / "kernels"


class Chain:
    """Compiled kernels of a file; temporaries are made by the caller."""

    def __init__(self, path: str, **meta: Any) -> None:
        file = KERNELS / path
        parsed = parse(file.read_text(), str(file), meta=meta)
        if not parsed.ok:
            raise CakeError(parsed.diagnostics)
        self.programs = parsed.programs
        self.logs: list[str] = []
        self.kernels = [self._load(p) for p in parsed.programs]

    def _load(self, program: Program) -> tuple[LoadedKernel, frozenset[str]]:
        """Build for the GPU at hand: code for sm_80 runs on sm_90 when it is built for it."""
        emitted = emit_program(program)
        arch = program.target if program.target == "sm_90a" else "sm_90"
        built = compile_cubin(
            emitted.source,
            name=emitted.abi.name,
            target=arch,
            options=FLAGS,
            include_cuda_headers=False,
        )
        facts = built.facts.entry(emitted.abi.name)
        self.logs.append(
            f"{program.name}: {facts.registers} registers, {facts.spill_store_bytes} B spilled, "
            f"{emitted.abi.smem_bytes} smem, {emitted.abi.block} threads, "
            f"{[n.code for n in built.facts.notices]}"
        )
        names = frozenset(p.name for p in program.params)
        return LoadedKernel(built.cubin, replace(emitted.abi, target=arch)), names

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
        return {
            t.name: torch.empty(
                [dims[d] if isinstance(d, str) else d for d in t.shape],
                dtype=kinds[t.dtype.name],
                device="cuda",
            )
            for p in self.programs
            for t in p.tensors
            if t.name not in args
        }

    def __call__(self, args: Mapping[str, Any]) -> None:
        for kernel, names in self.kernels:
            kernel.launch({n: args[n] for n in names})
