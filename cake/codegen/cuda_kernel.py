"""The skeleton of a kernel: set-up, what all roles share, dispatch of roles to warps, exit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from cake.codegen.cuda_emitter import TILE_EXISTS, CudaEmitter
from cake.codegen.cuda_setup import leave, set_up
from cake.codegen.cuda_state import KernelState
from cake.codegen.cuda_stmt import emit_block
from cake.codegen.cuda_text import bare, c_type, known, paren
from cake.codegen.cuda_tiles import decode, step_extents
from cake.codegen.cuda_writer import Definition, Line, Writer
from cake.codegen.emit_findings import NO_EMISSION, fail
from cake.ir.nodes import Assign, RoleBody, VarRef, walk_exprs
from cake.ir.program import (
    Barrier,
    Grid,
    Pipeline,
    Role,
    Smem,
    Tiles,
    WorkspaceDecl,
)
from cake.ir.types import element_dtype
from cake.ops.raster import cluster_size, walk_of
from cake.ops.warps import RolePlace, WarpGroupPlan
from cake.targets import get

_CLUSTER_RANK = """\
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}"""


def kernel_body(kernel: KernelState) -> list[Line]:
    """The lines between the braces of the kernel."""
    program = kernel.program
    writer = Writer(program.loc, depth=1)
    before = _common(kernel, writer)
    with writer.headed(before):
        start = len(writer.lines)
        _roles(kernel, writer)
        writer.loc = program.loc
        leave(kernel, writer)
        setup = Writer(program.loc, depth=1)
        set_up(kernel, setup)
        writer.lines[start:start] = setup.lines
    if kernel.layout.bytes:
        head = f"extern __shared__ __align__({kernel.layout.alignment}) unsigned char smem_block[];"
        writer.lines.insert(0, Line(head, 1, program.loc))
    return writer.lines


# -- what all roles share --------------------------------------------------------------------------


def _common(kernel: KernelState, writer: Writer) -> list[Definition]:
    """Everything that role bodies may refer to, in an order in which it can be defined."""
    program = kernel.program
    cg = CudaEmitter(kernel, writer)
    rank = "0"
    if cluster_size(program) > 1:
        rank = f"{kernel.helper('cluster_rank', _CLUSTER_RANK)}()"
    warp = "__shfl_sync(0xffffffffu, (int)threadIdx.x >> 5, 0)"
    address = "(unsigned)__cvta_generic_to_shared(smem_block)"
    found = [
        *_smem_offsets(kernel),
        Definition("smem", "unsigned", address),
        Definition("warp", "int", warp, "uniform"),
        Definition("lane", "int", "(int)threadIdx.x & 31"),
        Definition("cta_rank", "int", rank),
    ]
    grids: tuple[Grid, ...] = program.find(Grid)
    on_grid = {v for grid in grids for v in grid.vars}
    early: list[Assign] = []
    late: list[Assign] = []
    for let in program.lets:
        dependent = any(isinstance(e, VarRef) and e.name in on_grid for e in walk_exprs(let))
        on_grid |= set(let.targets) if dependent else set()
        (late if dependent else early).append(let)
    found += [_let(cg, let) for let in early]
    found += _tile_definitions(kernel, cg)
    found += [_let(cg, let) for let in late]
    found += _workspace_strides(kernel, cg)
    return found


def _smem_offsets(kernel: KernelState) -> Iterator[Definition]:
    program, layout = kernel.program, kernel.layout
    for b in program.find(Smem):
        stages = f", {b.stages} stages" if b.stages is not None else ""
        swizzle = f", swizzle {b.swizzle}" if b.swizzle else ""
        shape = "x".join(map(str, b.shape))
        place = layout.buffers[b.name]
        yield _offset(kernel, b.name, place.offset, f"{b.dtype} {shape}{stages}{swizzle}")
    for ring in program.find(Pipeline):
        yield _offset(kernel, f"{ring.name}_full", layout.full[ring.name], "mbarriers")
        yield _offset(kernel, f"{ring.name}_empty", layout.empty[ring.name], "mbarriers")
    for barrier in program.find(Barrier):
        yield _offset(kernel, barrier.name, layout.barriers[barrier.name], "mbarriers")


def _offset(kernel: KernelState, name: str, at: int, comment: str) -> Definition:
    return Definition(kernel.offsets[name], "constexpr unsigned", str(at), comment)


def _let(cg: CudaEmitter, let: Assign) -> Definition:
    dtype = element_dtype(let.value.type)
    assert dtype is not None
    return Definition(cg.name_of(let.targets[0]), c_type(dtype), bare(cg.scalar(let.value)))


def _tile_definitions(kernel: KernelState, cg: CudaEmitter) -> Iterator[Definition]:
    """Extents of the tiles, and the coordinates of a grid's CTA."""
    for tiles in kernel.program.find(Grid) + kernel.program.find(Tiles):
        for axis, extent in enumerate(tiles.extents):
            text = bare(cg.scalar(extent))
            at = known(text)
            if isinstance(at, str) and not text.isidentifier():
                name = kernel.names.fresh(f"tiles_{axis}")
                yield Definition(name, "int", text)
                at = name
            kernel.extents.append(at)
        if isinstance(tiles, Grid):
            yield from _grid_coordinates(kernel, tiles)


def _grid_coordinates(kernel: KernelState, grid: Grid) -> Iterator[Definition]:
    walk = walk_of(kernel.program, grid)
    index = "(int)blockIdx.x"
    if walk.cluster > 1:
        index = f"{index} / {walk.cluster}"
    names = [kernel.names.of(v) for v in grid.vars]
    tile = index
    if walk.rank > 1:
        tile = kernel.names.fresh("tile")
        yield Definition(tile, "int", index)
    yield from decode(walk, step_extents(walk, kernel.extents), tile, names, kernel.names.fresh)
    if walk.cluster > 1:
        test = f"{names[walk.axis]} < {kernel.extents[walk.axis]}"
        yield Definition(TILE_EXISTS, "bool", test)


def _workspace_strides(kernel: KernelState, cg: CudaEmitter) -> Iterator[Definition]:
    """Workspaces are contiguous."""
    for workspace in kernel.program.find(WorkspaceDecl):
        stride: str = "1"
        for axis in reversed(range(1, len(workspace.shape))):
            extent = paren(cg.scalar(workspace.shape[axis]))
            stride = f"(long long){extent}" if stride == "1" else f"{stride} * {extent}"
            yield Definition(kernel.strides[workspace.name, axis - 1], "long long", stride)


# -- roles -----------------------------------------------------------------------------------------


def _roles(kernel: KernelState, writer: Writer) -> None:
    """One if/else chain over the warps."""
    groups = [g for g in kernel.plan.groups if g.warps]
    for i, group in enumerate(groups):
        writer.loc = kernel.program.loc
        last = i == len(groups) - 1
        head = "else" if last else f"if (warp < {group.first + group.warps})"
        if i and not last:
            head = f"else {head}"
        with nullcontext() if len(groups) == 1 else writer.block(head):
            _set_registers(kernel, writer, group)
            _group(kernel, writer, group)


def _set_registers(kernel: KernelState, writer: Writer, group: WarpGroupPlan) -> None:
    """Move registers between warpgroups: all warps of one execute this, idle ones too."""
    entry = kernel.plan.entry_regs
    if group.regs is None or group.regs == entry:
        return
    if get(kernel.program.target).setmaxnreg is None:
        fail(
            NO_EMISSION,
            f"role {group.places[0].role.name} has regs={group.regs}, "
            f"but {kernel.program.target} has no setmaxnreg",
            group.places[0].role.loc,
            helps=("leave regs out",),
        )
    action = "inc" if group.regs > entry else "dec"
    writer.line(f'asm volatile("setmaxnreg.{action}.sync.aligned.u32 {group.regs};");')


def _group(kernel: KernelState, writer: Writer, group: WarpGroupPlan) -> None:
    """The roles of a group; its idle warps pass by."""
    bodies = {body.role: body for body in kernel.program.roles}
    places = [p for p in group.places if p.role.name in bodies]
    for i, place in enumerate(places):
        end = place.first + place.role.warps
        exact = place.role.warps == 1
        test = f"warp == {place.first}" if exact else f"warp < {end}"
        head = f"if ({test})" if i == 0 else f"else if ({test})"
        alone = len(group.places) == 1 and group.warps == place.role.warps
        if alone:
            _role(kernel, writer, place, bodies[place.role.name])
            continue
        writer.loc = bodies[place.role.name].loc
        with writer.block(head):
            _role(kernel, writer, place, bodies[place.role.name])


def _role(kernel: KernelState, writer: Writer, place: RolePlace, body: RoleBody) -> None:
    role = place.role
    writer.loc = body.loc
    writer.comment(f"{role.name}: {_description(role)}")
    cg = CudaEmitter(kernel, writer, role=role.name, unit_threads=role.unit_threads)
    grid = kernel.program.find(Grid)
    if grid and cluster_size(kernel.program) > 1:
        cg.store_guard = TILE_EXISTS
    inside = Writer(body.loc, writer.depth)
    cg.writer = inside
    with kernel.names.scope():
        emit_block(cg, body.body)
    for stage, phase in cg.cursors.values():
        writer.line(f"int {stage} = 0;")
        writer.line(f"unsigned {phase} = 0;")
    with writer.headed(_unit_definitions(kernel, place, body)):
        writer.lines += inside.lines


def _description(role: Role) -> str:
    unit = "warpgroup" if role.warpgroup else "warp"
    return f"{role.units} {unit}{'s' if role.units > 1 else ''}"


def _unit_definitions(
    kernel: KernelState, place: RolePlace, body: RoleBody
) -> Sequence[Definition]:
    """Where a thread stands in its role."""
    role, first = place.role, place.first
    index = f"warp - {first}" if first else "warp"
    unit = index
    if role.warpgroup:
        unit = f"({index}) >> 2" if first else "warp >> 2"
    found = [
        Definition("unit", "int", "0" if role.units == 1 else unit),
        Definition("warp_in_unit", "int", "warp & 3" if role.warpgroup else "0"),
        Definition("unit_thread", "int", "(int)threadIdx.x & 127" if role.warpgroup else "lane"),
    ]
    if get(kernel.program.target).elect_sync:
        found.append(Definition("leader", "bool", "elect_one()"))
    if body.unit is not None:
        found.append(Definition(kernel.names.of(body.unit), "int", "unit"))
    return found
