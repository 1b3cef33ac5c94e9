"""Statements in C++."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cake.codegen.cuda_comment import summary
from cake.codegen.cuda_emitter import TILE_EXISTS, CudaEmitter
from cake.codegen.cuda_state import writes_global
from cake.codegen.cuda_text import bare, c_type, declaration, known, packing, paren, words
from cake.codegen.cuda_tiles import decode, group_count, step_extents
from cake.codegen.cuda_writer import Definition
from cake.ir.dtypes import DType
from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Const,
    Do,
    Expr,
    For,
    If,
    SetElement,
    Stmt,
    TileLoop,
    VarRef,
    While,
    walk_exprs,
)
from cake.ir.program import Tiles
from cake.ir.types import Tuple, Type, element_dtype, is_array
from cake.ops.base import lookup
from cake.ops.elementwise_facets import is_fused
from cake.ops.pipeline_ops import emit_acquire, emit_commit, emit_release, emit_wait
from cake.ops.raster import walk_of
from cake.ops.rings import ring_facts


def emit_block(cg: CudaEmitter, block: Block) -> None:
    """The statements of a block, each behind a comment that says what it is."""
    for s in block:
        cg.writer.loc = s.loc
        cg.writer.comment(summary(cg.program, s))
        with cg.statement():
            _statement(cg, s)


def _statement(cg: CudaEmitter, s: Stmt) -> None:
    if isinstance(s, Assign):
        _assign(cg, s)
    elif isinstance(s, SetElement):
        _set_element(cg, s)
    elif isinstance(s, Do):
        _do(cg, s)
    elif isinstance(s, For):
        _for(cg, s)
    elif isinstance(s, TileLoop):
        _tile_loop(cg, s)
    elif isinstance(s, While):
        _while(cg, s)
    elif isinstance(s, If):
        _if(cg, s)
    elif isinstance(s, Bracket):
        _bracket(cg, s)
    else:
        raise TypeError(f"{type(s).__name__} at {s.loc} is no statement of a role")


# -- assignment ------------------------------------------------------------------------------------


def _assign(cg: CudaEmitter, s: Assign) -> None:
    if isinstance(s.value.type, Tuple):
        _assign_tuple(cg, s, s.value.type)
    elif is_array(s.value.type):
        _assign_array(cg, s)
    else:
        value = cg.emit(s.value) if isinstance(s.value, Call) else cg.scalar(s.value)
        if value is None:
            raise TypeError(f"the value assigned at {s.loc} gives none")
        name = cg.name_of(s.targets[0])
        left = declaration(s.value.type, name) if s.declares[0] else name
        cg.line(f"{left} = {bare(value)};")


def _assign_tuple(cg: CudaEmitter, s: Assign, types: Tuple) -> None:
    assert isinstance(s.value, Call)
    results = (cg.emit(s.value) or "").split(", ")
    for target, new, t, result in zip(s.targets, s.declares, types.items, results, strict=True):
        if new and is_array(t):
            cg.bind(target, result)  # the fresh array is the variable
            continue
        name = cg.name_of(target)
        if is_array(t):
            _copy(cg, t, name, result)
        else:
            cg.line(f"{declaration(t, name) if new else name} = {bare(result)};")


def _assign_array(cg: CudaEmitter, s: Assign) -> None:
    target, new, value = s.targets[0], s.declares[0], s.value
    if new and isinstance(value, Call) and value.op == "lanes":
        cg.bind(target, cg.array(value))
        return
    name = cg.name_of(target)
    if new:
        cg.declare(value.type, name)
    if not isinstance(value, Call) or (not is_fused(value) and _reads(cg, value, name)):
        result: str | None = cg.array(value)
    else:
        result = cg.emit(value, name)
    if result is not None and result != name:
        _copy(cg, value.type, name, result)


def _reads(cg: CudaEmitter, e: Expr, array: str) -> bool:
    """Whether ``e`` reads the C array: its result must not be written there piece by piece."""
    return any(isinstance(x, VarRef) and cg.name_of(x.name) == array for x in walk_exprs(e))


def _copy(cg: CudaEmitter, t: Type, to: str, source: str) -> None:
    with cg.unrolled(words(t, _dtype(t))):
        cg.line(f"{to}[i] = {source}[i];")


def _dtype(t: Type) -> DType:
    dtype = element_dtype(t)
    assert dtype is not None
    return dtype


def _set_element(cg: CudaEmitter, s: SetElement) -> None:
    dtype = _dtype(s.array.type)
    array = cg.array(s.array)
    at = known(bare(cg.scalar(s.index)))
    value = cg.scalar(s.value)
    per = packing(dtype)
    if per == 1:
        cg.line(f"{array}[{at}] = {bare(value)};")
        return
    mask = (1 << dtype.bits) - 1
    if isinstance(at, int):
        word, shift = f"{array}[{at // per}]", at % per * dtype.bits
        keep, put = f"{0xFFFFFFFF ^ mask << shift:#x}u", f"(unsigned){value} << {shift}"
    else:
        word, shift_text = f"{array}[{paren(at)} / {per}]", f"({paren(at)} % {per} * {dtype.bits})"
        keep, put = f"~({mask:#x}u << {shift_text})", f"(unsigned){value} << {shift_text}"
    cg.line(f"{word} = ({word} & {keep}) | ({put});")


def _do(cg: CudaEmitter, s: Do) -> None:
    primitive = lookup(s.call.op)
    with _store_guard(cg, s.call):
        text = cg.emit(s.call)
        if text is not None and not text.isidentifier() and primitive and primitive.effects(s.call):
            cg.line(f"{bare(text)};")


@contextmanager
def _store_guard(cg: CudaEmitter, call: Call) -> Iterator[None]:
    """Only a tile that exists is stored."""
    if cg.store_guard is None or not writes_global(call):
        yield
        return
    with cg.block(f"if ({cg.store_guard})"):
        yield


# -- control flow ----------------------------------------------------------------------------------


def _for(cg: CudaEmitter, s: For) -> None:
    start = bare(cg.scalar(s.start))
    stop, step = _fixed(cg, s.stop, f"{s.var}_stop"), _fixed(cg, s.step, f"{s.var}_step")
    var = cg.name_of(s.var)
    advance = f"++{var}" if step == "1" else f"{var} += {step}"
    kind = c_type(_dtype(s.start.type))
    # The author says what is unrolled: ptxas would otherwise multiply large bodies.
    cg.line("#pragma unroll" if s.unroll else "#pragma unroll 1")
    with cg.block(f"for ({kind} {var} = {start}; {var} < {stop}; {advance})"):
        emit_block(cg, s.body)


def _fixed(cg: CudaEmitter, e: Expr, stem: str) -> str:
    """A value taken once, before a loop whose body may change what it depends on."""
    text = bare(cg.scalar(e))
    fixed = {let.targets[0] for let in cg.program.lets}
    read = {x.name for x in (e, *walk_exprs(e)) if isinstance(x, VarRef)}
    if isinstance(e, Const) or read <= fixed:
        return text
    name = cg.fresh(stem)
    cg.line(f"const {c_type(_dtype(e.type))} {name} = {text};")
    return name


def _while(cg: CudaEmitter, s: While) -> None:
    if _is_pure(s.cond):
        with cg.block(f"while ({bare(cg.scalar(s.cond))})"):
            emit_block(cg, s.body)
        return
    with cg.block("while (true)"):
        cg.line(f"if (!{paren(cg.scalar(s.cond))}) break;")
        emit_block(cg, s.body)


def _is_pure(e: Expr) -> bool:
    """Whether an expression needs no statements of its own."""
    for x in (e, *walk_exprs(e)):
        primitive = lookup(x.op) if isinstance(x, Call) else None
        if primitive is None or not isinstance(x, Call):
            continue
        if primitive.effects(x) or primitive.convergent:
            return False
    return True


def _if(cg: CudaEmitter, s: If, before: str = "") -> None:
    with cg.block(f"{before}if ({bare(cg.scalar(s.cond))})"):
        emit_block(cg, s.then)
    cg.writer.loc = s.loc
    first = s.orelse[0] if len(s.orelse) == 1 else None
    if isinstance(first, If) and _is_pure(first.cond):
        cg.writer.loc = first.loc
        _if(cg, first, "else ")
    elif s.orelse:
        with cg.block("else"):
            emit_block(cg, s.orelse)


def _tile_loop(cg: CudaEmitter, s: TileLoop) -> None:
    tiles = cg.resource(s.tiles)
    assert isinstance(tiles, Tiles)
    walk = walk_of(cg.program, tiles)
    extents = cg.kernel.extents
    sizes = step_extents(walk, extents)
    names = [cg.name_of(v) for v in s.vars]
    tile, c = cg.fresh("tile"), walk.cluster
    per = f" / {c}" if c > 1 else ""
    head = f"int {tile} = (int)blockIdx.x{per}; {tile} < {group_count(sizes)}"
    cg.line("#pragma unroll 1")
    with cg.block(f"for ({head}; {tile} += (int)gridDim.x{per})"):
        definitions = decode(walk, sizes, tile, names, cg.fresh)
        if c > 1:
            test = f"{names[walk.axis]} < {extents[walk.axis]}"
            definitions.append(Definition(TILE_EXISTS, "bool", test))
            cg.store_guard = TILE_EXISTS
        with cg.writer.headed(definitions):
            emit_block(cg, s.body)
        cg.store_guard = None


def _bracket(cg: CudaEmitter, s: Bracket) -> None:
    with cg.block(""):
        if s.side == "fill":
            slot = emit_acquire(cg, s.pipeline, s)
            cg.bind(s.slot, slot)
            emit_block(cg, s.body)
            cg.writer.loc = s.loc
            emit_commit(cg, s.pipeline, slot, ring_facts(cg.program, s.pipeline).fill(s))
        else:
            slot = emit_wait(cg, s.pipeline)
            cg.bind(s.slot, slot)
            emit_block(cg, s.body)
            cg.writer.loc = s.loc
            emit_release(cg, s.pipeline, slot)
