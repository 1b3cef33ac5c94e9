"""A program as CUDA C++: one self-contained source with one kernel, and its interface.

The source includes no header. ``#line`` leads every line back to the schedule; a comment in front
of each statement says what it was. Equal programs give equal text.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake.codegen.abi import KernelAbi
from cake.codegen.cuda_abi import arguments, kernel_abi
from cake.codegen.cuda_kernel import kernel_body
from cake.codegen.cuda_state import KernelState
from cake.codegen.cuda_text import identifiers
from cake.codegen.cuda_writer import Line, render
from cake.codegen.emit_findings import SMEM_EXCEEDED, TOO_MANY_THREADS, fail
from cake.ir.program import Program, Role, Smem
from cake.ops.raster import cluster_size
from cake.targets import get

EMITTER_VERSION = "1"
"""Part of the cache key: raise it when equal text must be built anew."""

MAX_ATTEMPTS = 8
"""Attempts to find names that no helper bears; each keeps away from those found before."""

_TENSOR_MAP = """\
// CUtensorMap of the CUDA driver.
struct __align__(64) TensorMap {
  unsigned long long words[16];
};
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """CUDA C++ and the interface of its kernel."""

    source: str
    abi: KernelAbi


def emit_program(program: Program) -> Emitted:
    """Write a program as CUDA C++.

    Raises:
        CakeError: the program does not fit the target, or a primitive has no emission for it.
    """
    _check_limits(program)
    taken: set[str] = set()
    for _ in range(MAX_ATTEMPTS):
        kernel = KernelState.of(program, taken)
        body = kernel_body(kernel)
        clashes = ({*map(_function, kernel.helpers)} | kernel.locals) & kernel.names.used
        if not clashes:
            name = f"{program.name}_kernel"
            return Emitted(source=_source(kernel, name, body), abi=kernel_abi(kernel, name))
        taken |= clashes
    raise RuntimeError(f"no names free of clashes: {sorted(taken)}")


def _check_limits(program: Program) -> None:
    target = get(program.target)
    kernel = KernelState.of(program)
    used, limit = kernel.layout.bytes, target.smem_per_cta
    if used > limit:
        largest = max(program.find(Smem), key=lambda b: kernel.layout.buffers[b.name].bytes)
        fail(
            SMEM_EXCEEDED,
            f"a CTA needs {used} bytes of shared memory, {target.name} has {limit}",
            largest.loc,
            facts={"bytes": used, "limit": limit, "largest": largest.name},
            helps=("take fewer stages or smaller tiles",),
        )
    threads = kernel.plan.threads
    if threads > target.threads_per_cta:
        roles: tuple[Role, ...] = program.role_decls()
        fail(
            TOO_MANY_THREADS,
            f"the roles take {threads} threads, a CTA has at most {target.threads_per_cta}",
            roles[-1].loc,
            facts={"threads": threads, "limit": target.threads_per_cta},
        )


def _function(helper: str) -> str:
    """The function that a helper defines; overloads are told apart by ``<type>`` behind it."""
    return helper.partition("<")[0]


def _used_helpers(kernel: KernelState, body: list[Line]) -> list[str]:
    """The helpers that the body calls, and those that they call, in the order of definition."""
    text = "\n".join(line.text for line in body if not line.is_comment)
    used: set[str] = set()
    while True:
        called = identifiers(text)
        found = {name for name in kernel.helpers if _function(name) in called} - used
        if not found:
            return [code for name, code in kernel.helpers.items() if name in used]
        used |= found
        text = "\n".join(kernel.helpers[name] for name in found)


def _source(kernel: KernelState, name: str, body: list[Line]) -> str:
    program = kernel.program
    parts = [f"// {name} for {program.target}, emitted by CAKE.\n"]
    if kernel.maps:
        parts.append(_TENSOR_MAP)
    parts += [f"{code}\n" for code in _used_helpers(kernel, body)]
    plan, cluster = kernel.plan, cluster_size(program)
    bounds = f"__launch_bounds__({plan.threads}, {plan.min_blocks})"
    if cluster > 1:
        bounds += f" __cluster_dims__({cluster}, 1, 1)"
    head = f'extern "C" __global__ void {bounds}'
    declarations = [text for text, _ in arguments(kernel)]
    lines = [Line(head, 0, program.loc), Line(f"{name}(", 0, program.loc)]
    for i, text in enumerate(declarations):
        end = ")" if i == len(declarations) - 1 else ","
        lines.append(Line(f"{text}{end}", 2, program.loc))
    if not declarations:
        lines.append(Line(")", 0, program.loc))
    lines += [Line("{", 0, program.loc), *body, Line("}", 0, program.loc)]
    return "\n".join(parts) + "\n" + render(lines)
