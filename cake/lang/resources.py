"""Declarations at kernel level: shared memory, roles, rings, barriers, tiles, launch options."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cake.diag import Span
from cake.ir.dtypes import I32, DType
from cake.ir.nodes import Expr, Static, VarRef, walk_exprs
from cake.ir.program import (
    PAIR,
    Barrier,
    Cluster,
    Grid,
    LaunchOptions,
    NamedBarrier,
    Pipeline,
    Pool,
    ResourceDecl,
    Role,
    Smem,
    Tiles,
    Tmem,
    WorkspaceDecl,
)
from cake.ir.types import Scalar
from cake.lang import codes
from cake.lang.arguments import Arguments
from cake.lang.scope import State, Variable, constant


def _positive(args: Arguments, what: str, value: int, low: int = 1, high: int = 2**31) -> None:
    if not low <= value <= high:
        args.state.reject(
            codes.BAD_RESOURCE,
            f"{args.callee}: {what} must be in [{low}, {high}], got {value}",
            args.node,
            facts={"value": value, "low": low, "high": high},
        )


def _dtype_and_shape(args: Arguments) -> tuple[DType, tuple[int, ...]]:
    if len(args.node.args) != 2:
        args.state.reject(
            codes.BAD_ARGUMENTS, f"{args.callee} takes a dtype and a shape", args.node
        )
    dtype = args.state.static_value(args.node.args[0], f"{args.callee}: the dtype")
    if not isinstance(dtype, DType):
        args.state.reject(
            codes.BAD_RESOURCE, f"{args.callee}: {dtype!r} is not a dtype", args.node.args[0]
        )
    shape = args.state.static_value(args.node.args[1], f"{args.callee}: the shape")
    dims = shape if isinstance(shape, tuple) else (shape,)
    out = []
    for d in dims:
        if not isinstance(d, int) or isinstance(d, bool) or d < 1:
            args.state.reject(
                codes.BAD_RESOURCE,
                f"{args.callee}: extents are positive ints, got {d!r}",
                args.node.args[1],
            )
        out.append(d)
    return dtype, tuple(out)


def _smem(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    dtype, shape = _dtype_and_shape(args)
    stages = args.static("stages", None)
    swizzle = args.static("swizzle", 0)
    pool = args.name("pool", Pool, None)
    offset = args.static("offset", None)
    if stages is not None:
        _positive(args, "stages", stages, 1, 1024)
    if swizzle not in (0, 32, 64, 128):
        args.state.reject(
            codes.BAD_RESOURCE, f"smem: swizzle is 0, 32, 64 or 128, got {swizzle}", args.node
        )
    if (pool is None) != (offset is None):
        args.state.reject(codes.BAD_RESOURCE, "smem: pool= and offset= go together", args.node)
    return Smem(
        name=name,
        dtype=dtype,
        shape=shape,
        stages=stages,
        swizzle=swizzle,
        pool=None if pool is None else pool.name,
        offset=offset,
        loc=loc,
    )


def _tmem(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    dtype, shape = _dtype_and_shape(args)
    if len(shape) != 2:
        args.state.reject(codes.BAD_RESOURCE, "tmem has two extents", args.node)
    stages, pair = args.static("stages", None), _pair(args)
    if any(isinstance(r, Tmem) and r.pair != pair for r in args.state.resources.values()):
        args.state.reject(
            codes.BAD_RESOURCE,
            "all tensor memory of a schedule is paired, or none is",
            args.node,
            helps=("give every tmem(...) the same pair=",),
        )
    size = (shape[0], shape[1])
    return Tmem(name=name, dtype=dtype, shape=size, stages=stages, pair=pair, loc=loc)


def _pair(args: Arguments) -> bool:
    """``pair=True``: shared by the two CTAs of a cluster, which is declared before."""
    pair: bool = args.static("pair", False, (bool,))
    declared = args.state.resources.get("cluster")
    if pair and (not isinstance(declared, Cluster) or declared.size != PAIR):
        args.state.reject(
            codes.BAD_RESOURCE,
            f"{args.callee}: pair=True needs a cluster of {PAIR} CTAs",
            args.node,
            helps=(f"write cluster({PAIR}) in a line before",),
        )
    return pair


def _pool(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    if len(args.node.args) != 1:
        args.state.reject(codes.BAD_ARGUMENTS, "pool takes its size in bytes", args.node)
    size = args.state.static_value(args.node.args[0], "pool: the size")
    if not isinstance(size, int):
        args.state.reject(codes.BAD_RESOURCE, "pool takes its size in bytes", args.node)
    _positive(args, "the size", size)
    return Pool(name=name, bytes=size, loc=loc)


def _role(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    warps = args.static("warps", None)
    warpgroups = args.static("warpgroups", None)
    if (warps is None) == (warpgroups is None):
        args.state.reject(codes.BAD_ARGUMENTS, "role takes either warps= or warpgroups=", args.node)
    units = warps if warpgroups is None else warpgroups
    _positive(args, "the number of units", units, 1, 32)
    regs = args.static("regs", None)
    return Role(name=name, units=units, warpgroup=warps is None, regs=regs, loc=loc)


def _pipeline(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    if not args.node.args:
        args.state.reject(codes.BAD_ARGUMENTS, "pipeline takes at least one buffer", args.node)
    buffers = [args.resource(a, Smem, "pipeline: a buffer") for a in args.node.args]
    stages = {b.stages for b in buffers}
    if None in stages or len(stages) != 1:
        args.state.reject(
            codes.BAD_RESOURCE,
            "the buffers of a pipeline must be staged, with equal stages",
            args.node,
            helps=("declare each with stages=n",),
        )
    producer = args.name("producer", Role)
    consumer = args.name("consumer", Role)
    multicast, pair = args.static("multicast", False, (bool,)), _pair(args)
    if multicast and pair:
        args.state.reject(
            codes.BAD_RESOURCE, "a pipeline is multicast or paired, not both", args.node
        )
    return Pipeline(
        name=name,
        buffers=tuple(b.name for b in buffers),
        stages=stages.pop(),
        producer=producer.name,
        consumer=consumer.name,
        multicast=multicast,
        pair=pair,
        loc=loc,
    )


def _barrier(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    slots, arrivals = args.static("slots", 1), args.static("arrivals")
    _positive(args, "slots", slots, 1, 1024)
    return Barrier(name=name, slots=slots, arrivals=arrivals, loc=loc)


def _named_barrier(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    threads, slots = args.static("threads"), args.static("slots", 1)
    _positive(args, "slots", slots, 1, 16)
    return NamedBarrier(name=name, threads=threads, slots=slots, loc=loc)


def host_value(state: State, node: ast.expr, what: str) -> Expr:
    """An i32 over dimensions and earlier kernel-level values: the host can evaluate it."""
    e = state.expression(node)
    if isinstance(e, Static):
        if not isinstance(e.value, int) or isinstance(e.value, bool):
            state.reject(codes.BAD_RESOURCE, f"{what} must be an integer, got {e.value!r}", node)
        return constant(e.value, I32, e.loc)
    if not isinstance(e.type, Scalar) or not e.type.dtype.is_int:
        state.reject(codes.BAD_RESOURCE, f"{what} must be an integer, got {e.type}", node)
    on_device = _grid_names(state)
    for part in (e, *walk_exprs(e)):
        if isinstance(part, VarRef) and part.name in on_device:
            state.reject(
                codes.BAD_RESOURCE, f"{what} cannot depend on the grid coordinate {part.name}", node
            )
    return e


def _grid_names(state: State) -> set[str]:
    """Grid coordinates and every kernel-level value that depends on them."""
    found: set[str] = set()
    for r in state.resources.values():
        if isinstance(r, Grid):
            found |= set(r.vars)
    for let in state.lets:
        if any(isinstance(e, VarRef) and e.name in found for e in walk_exprs(let)):
            found |= set(let.targets)
    return found


def _extents(args: Arguments) -> tuple[Expr, ...]:
    if not args.node.args:
        args.state.reject(codes.BAD_ARGUMENTS, f"{args.callee} needs its extents", args.node)
    if any(isinstance(r, Grid | Tiles) for r in args.state.resources.values()):
        args.state.reject(
            codes.BAD_RESOURCE, "a schedule has one grid or one persistent tile set", args.node
        )
    return tuple(host_value(args.state, a, f"an extent of {args.callee}") for a in args.node.args)


def _tiles(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    extents = _extents(args)
    return Tiles(name=name, extents=extents, raster=_raster(args, extents), loc=loc)


def _raster(args: Arguments, extents: tuple[Expr, ...]) -> int:
    raster: int = args.static("raster", 1)
    _positive(args, "raster", raster, 1, 65536)
    if raster > 1 and len(extents) < 2:
        args.state.reject(codes.BAD_RESOURCE, "raster needs two extents", args.node)
    return raster


def _workspace(args: Arguments, name: str, loc: Span) -> ResourceDecl:
    if len(args.node.args) != 2 or not isinstance(args.node.args[1], ast.Tuple):
        args.state.reject(
            codes.BAD_ARGUMENTS, "workspace takes a dtype and a tuple of extents", args.node
        )
    dtype = args.state.static_value(args.node.args[0], "workspace: the dtype")
    if not isinstance(dtype, DType):
        args.state.reject(codes.BAD_RESOURCE, "workspace: not a dtype", args.node.args[0])
    shape = tuple(
        host_value(args.state, e, "an extent of a workspace") for e in args.node.args[1].elts
    )
    zeroed = args.static("zeroed", False, (bool,))
    return WorkspaceDecl(name=name, dtype=dtype, shape=shape, zeroed=zeroed, loc=loc)


_DECLARATIONS: dict[str, Callable[[Arguments, str, Span], ResourceDecl]] = {
    "smem": _smem,
    "tmem": _tmem,
    "pool": _pool,
    "role": _role,
    "pipeline": _pipeline,
    "barrier": _barrier,
    "named_barrier": _named_barrier,
    "persistent": _tiles,
    "workspace": _workspace,
}


def declaration(state: State, name: str, node: ast.Call) -> bool:
    """``name = smem(...)`` and its like; False if the call declares nothing."""
    if not isinstance(node.func, ast.Name) or node.func.id not in _DECLARATIONS:
        return False
    if name in state.used or state.find(name) is not None:
        state.reject(codes.REDEFINED, f"{name} already names something else", node)
    args = Arguments(state, node, node.func.id)
    decl = _DECLARATIONS[node.func.id](args, name, state.source.span(node))
    args.done()
    add(state, decl)
    return True


def add(state: State, decl: ResourceDecl) -> None:
    """Make a resource known."""
    state.used.add(decl.name)
    state.resources[decl.name] = decl
    state.scopes[0][decl.name] = decl


def grid(state: State, names: list[str], node: ast.Call) -> None:
    """``b, m = grid(B, cdiv(M, BM), raster=8)``."""
    args = Arguments(state, node, "grid")
    extents = _extents(args)
    if len(names) != len(extents):
        state.reject(codes.BAD_RESOURCE, f"{len(names)} names, {len(extents)} extents", node)
    loc = state.source.span(node)
    variables = tuple(state.fresh(n) for n in names)
    raster = _raster(args, extents)
    args.done()
    add(state, Grid(name="grid", vars=variables, extents=extents, raster=raster, loc=loc))
    for n, v in zip(names, variables, strict=True):
        state.bind(n, Variable(v, Scalar(I32), (loc.line, loc.col)))


def directive(state: State, node: ast.Call) -> bool:
    """Statements ``cluster(2)`` and ``launch(min_blocks=1, pdl=True)``; False if neither."""
    callee = node.func.id if isinstance(node.func, ast.Name) else ""
    if callee not in ("cluster", "launch"):
        return False
    args = Arguments(state, node, callee)
    loc = state.source.span(node)
    if callee == "cluster":
        size = state.static_value(node.args[0], "cluster: the size") if node.args else None
        if not isinstance(size, int) or len(node.args) != 1:
            state.reject(codes.BAD_ARGUMENTS, "cluster takes its size in CTAs", node)
        _positive(args, "the size", size, 1, 16)
        decl: ResourceDecl = Cluster(name="cluster", size=size, loc=loc)
    else:
        blocks, pdl = args.static("min_blocks", 1), args.static("pdl", False, (bool,))
        _positive(args, "min_blocks", blocks, 1, 32)
        decl = LaunchOptions(name="launch", min_blocks=blocks, pdl=pdl, loc=loc)
    args.done()
    if decl.name in state.resources:
        state.reject(codes.REDEFINED, f"{callee}(...) stands twice", node)
    add(state, decl)
    return True
