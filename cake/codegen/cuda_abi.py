"""The arguments of a kernel, in C++ and for the host: one list for both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from cake.codegen.abi import (
    Arg,
    DimArg,
    Guard,
    KernelAbi,
    PointerArg,
    ScalarArg,
    ScalarSpec,
    StrideArg,
    TensorMapArg,
    TensorSpec,
    Workspace,
    WorkspaceArg,
)
from cake.codegen.cuda_emitter import pointer_type
from cake.codegen.cuda_state import KernelState, writes_global
from cake.codegen.cuda_text import c_type
from cake.codegen.cuda_tiles import host_resident, host_tiles
from cake.codegen.host import HostText
from cake.diag import Span
from cake.ir.nodes import Assign, Call, walk_exprs, walk_stmts
from cake.ir.program import (
    Grid,
    LaunchOptions,
    Program,
    ScalarParam,
    TensorParam,
    Tiles,
    WorkspaceDecl,
)
from cake.ir.types import DIM_LIMIT
from cake.lang.printer import print_expr
from cake.ops.raster import Walk, cluster_size, walk_of

MAP_ALIGNMENT = 16  # CUDA driver API, cuTensorMapEncodeTiled: globalAddress
INT_LIMIT = 2**31
TILE_LIMIT = INT_LIMIT - 2**20
"""Tiles are counted in int; a persistent loop steps up to a grid beyond the last one."""


def arguments(kernel: KernelState) -> list[tuple[str, Arg]]:
    """Declaration and meaning of every kernel parameter, in order."""
    program, names = kernel.program, kernel.names
    out: list[tuple[str, Arg]] = []
    for key, name in kernel.maps.items():
        tensor = program.tensor(key.tensor)
        meaning = TensorMapArg(
            tensor=key.tensor,
            box=key.box,
            axes=tuple(range(len(tensor.shape))),
            dtype=tensor.dtype.name,
            swizzle=cast("object", key.swizzle),  # type: ignore[arg-type]
            oob=cast("object", key.outside),  # type: ignore[arg-type]
        )
        out.append((f"const __grid_constant__ TensorMap {name}", meaning))
    for tensor in program.tensors:
        if tensor.name in kernel.pointers:
            kind = pointer_type(tensor.dtype, const=tensor.name not in kernel.written)
            out.append((f"{kind} {names.of(tensor.name)}", PointerArg(tensor=tensor.name)))
    for w in program.find(WorkspaceDecl):
        kind = pointer_type(w.dtype, const=False)
        out.append((f"{kind} {names.of(w.name)}", WorkspaceArg(name=w.name)))
    for dim in program.dims:
        out.append((f"int {names.of(dim)}", DimArg(symbol=dim, dtype="i32")))
    for tensor in program.tensors:
        if tensor.name in kernel.pointers:
            out += _strides(kernel, tensor)
    for p in program.params:
        if isinstance(p, ScalarParam):
            out.append((f"{c_type(p.dtype)} {names.of(p.name)}", ScalarArg(name=p.name)))
    return out


def _strides(kernel: KernelState, tensor: TensorParam) -> Iterator[tuple[str, Arg]]:
    """Strides of all axes but the last, whose stride is 1; vector accesses need multiples."""
    multiple = max(1, kernel.alignments.get(tensor.name, 1) // tensor.dtype.bytes)
    for axis in range(len(tensor.shape) - 1):
        meaning = StrideArg(tensor=tensor.name, axis=axis, multiple=multiple)
        yield f"long long {kernel.strides[tensor.name, axis]}", meaning


def kernel_abi(kernel: KernelState, name: str) -> KernelAbi:
    """The interface of a written kernel whose symbol is ``name``."""
    program = kernel.program
    host = HostText(program)
    cluster = cluster_size(program)
    options = next(iter(program.find(LaunchOptions)), None)
    return KernelAbi(
        name=name,
        target=program.target,
        tensors=tuple(_tensor(kernel, t) for t in program.tensors),
        scalars=tuple(
            ScalarSpec(name=p.name, dtype=p.dtype.name)
            for p in program.params
            if isinstance(p, ScalarParam)
        ),
        args=tuple(arg for _, arg in arguments(kernel)),
        workspaces=tuple(_workspace(host, w) for w in program.find(WorkspaceDecl)),
        guards=tuple(_guards(kernel, host)),
        grid=(_grid(kernel, host), "1", "1"),
        cluster=(cluster, 1, 1) if cluster > 1 else None,
        block=kernel.plan.threads,
        smem_bytes=kernel.layout.bytes,
        pdl=options is not None and options.pdl,
        min_blocks=kernel.plan.min_blocks,
    )


def _tensor(kernel: KernelState, t: TensorParam) -> TensorSpec:
    mapped = any(key.tensor == t.name for key in kernel.maps)
    align = max(t.dtype.bytes, kernel.alignments.get(t.name, 1), MAP_ALIGNMENT if mapped else 1)
    return TensorSpec(
        name=t.name,
        dtype=t.dtype.name,
        shape=t.shape,
        writable=t.name in kernel.written,
        align=align,
    )


def _workspace(host: HostText, w: WorkspaceDecl) -> Workspace:
    extents = " * ".join([*map(host.of, w.shape), str(w.dtype.bytes)])
    return Workspace(name=w.name, bytes=extents, zeroed=w.zeroed)


def _tiles(program: Program) -> Grid | Tiles | None:
    """The grid or persistent tile set; a schedule has at most one of them."""
    return next(iter(program.find(Grid) + program.find(Tiles)), None)


def _grid(kernel: KernelState, host: HostText) -> str:
    tiles = _tiles(kernel.program)
    if tiles is None:
        return str(cluster_size(kernel.program))
    walk = walk_of(kernel.program, tiles)
    count = host_tiles(walk, [host.of(e) for e in tiles.extents])
    if isinstance(tiles, Grid):
        return count
    return host_resident(walk, count, kernel.plan.min_blocks)


def _guards(kernel: KernelState, host: HostText) -> Iterator[Guard]:
    program = kernel.program
    for g in program.guards:
        yield _guard(host.of(g.cond), f"require({print_expr(program, g.cond)})", g.loc)
    for dim in program.dims:
        yield _guard(
            f"{dim} < {DIM_LIMIT}",
            f"dimension {dim} is below 2^31 - 2^16: indices are i32",
            program.loc,
        )
    for w in program.find(WorkspaceDecl):
        align = kernel.alignments.get(w.name, 1)
        if len(w.shape) > 1 and align > w.dtype.bytes:
            row = f"{host.of(w.shape[-1])} * {w.dtype.bytes}"
            yield _guard(
                f"{row} % {align} == 0", f"rows of {w.name} are multiples of {align} bytes", w.loc
            )
    tiles = _tiles(program)
    if tiles is None:
        return
    walk = walk_of(program, tiles)
    extents = [host.of(e) for e in tiles.extents]
    limit = f"{host_tiles(walk, extents)} < {TILE_LIMIT}"
    yield _guard(limit, f"there are fewer than {TILE_LIMIT} tiles", tiles.loc)
    if walk.cluster > 1 and _updates_for_result(program):
        yield _whole_clusters(walk, extents, tiles.loc)


def _whole_clusters(walk: Walk, extents: list[str], loc: Span) -> Guard:
    """A tile that does not exist cannot skip an update whose result it needs."""
    what = f"axis {walk.axis} of the tiles is a multiple of the cluster's {walk.cluster} CTAs"
    return _guard(f"{extents[walk.axis]} % {walk.cluster} == 0", what, loc)


def _updates_for_result(program: Program) -> bool:
    """Whether a call that writes global memory is also used for its value."""
    return any(
        isinstance(s, Assign)
        and any(isinstance(e, Call) and writes_global(e) for e in walk_exprs(s))
        for role in program.roles
        for s in walk_stmts(role.body)
    )


def _guard(text: str, message: str, loc: Span) -> Guard:
    return Guard(
        text=text,
        message=message,
        file=loc.file,
        line=loc.line,
        col=loc.col,
        end_line=loc.end_line,
        end_col=loc.end_col,
    )
