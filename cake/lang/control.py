"""Control flow: branches, loops, brackets of rings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

from cake.ir.dtypes import I32, I64
from cake.ir.nodes import Bracket, Const, Expr, For, If, Static, Stmt, TileLoop, While
from cake.ir.program import Pipeline, Tiles
from cake.ir.types import Scalar, Slot
from cake.lang import codes
from cake.lang.assignment import declare, target_names
from cake.lang.calls import Typing
from cake.lang.scope import Poison, Rejected, State, constant


@contextmanager
def nested(state: State, varying: bool = False) -> Iterator[list[Stmt]]:
    """A block of its own: new scope, new statement list."""
    outer, block = state.block, list[Stmt]()
    state.block = block
    state.scopes.append({})
    state.varying_depth += varying
    try:
        yield block
    finally:
        state.varying_depth -= varying
        state.scopes.pop()
        state.block = outer


def _varying(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.varying


def _condition(state: State, node: ast.expr) -> Expr:
    cond = state.expression(node)
    if isinstance(cond, Static) or (
        isinstance(cond.type, Scalar) and cond.type.dtype.name == "bool"
    ):
        return cond
    state.reject(
        codes.TYPE_ERROR, f"a condition must be bool, got {cond.type}", node, helps=("compare it",)
    )


def if_(state: State, node: ast.If) -> None:
    cond = _condition(state, node.test)
    if isinstance(cond, Static):
        state.scopes.append({})
        try:
            state.execute(state, node.body if cond.value else node.orelse)
        finally:
            _leak(state)
        return
    with nested(state, _varying(cond)) as then:
        state.execute(state, node.body)
    with nested(state, _varying(cond)) as orelse:
        state.execute(state, node.orelse)
    loc = state.source.span(node)
    state.emit(If(cond=cond, then=tuple(then), orelse=tuple(orelse), loc=loc))


def _leak(state: State) -> None:
    """A compile-time branch is no block of its own: its names live on."""
    inner = state.scopes.pop()
    state.scopes[-1].update(inner)


def while_(state: State, node: ast.While) -> None:
    if node.orelse:
        state.reject(codes.NOT_IN_LANGUAGE, "while ... else is not part of the language", node)
    cond = _condition(state, node.test)
    if isinstance(cond, Static):
        state.reject(codes.NOT_IN_LANGUAGE, "a while loop needs a run-time condition", node.test)
    with nested(state, _varying(cond)) as body:
        state.execute(state, node.body)
    state.emit(While(cond=cond, body=tuple(body), loc=state.source.span(node)))


def for_(state: State, node: ast.For) -> None:
    if node.orelse:
        state.reject(codes.NOT_IN_LANGUAGE, "for ... else is not part of the language", node)
    it = node.iter
    if isinstance(it, ast.Name):
        meaning = state.find(it.id)
        if isinstance(meaning, Tiles):
            _tile_loop(state, node, meaning)
            return
    if isinstance(it, ast.Call) and isinstance(it.func, ast.Name):
        if it.func.id == "static_range":
            _static_for(state, node, it)
            return
        if it.func.id == "range":
            _range_for(state, node, it)
            return
    state.reject(
        codes.NOT_IN_LANGUAGE,
        "a for loop runs over range(...), static_range(...) or a persistent tile set",
        it,
    )


def _static_for(state: State, node: ast.For, it: ast.Call) -> None:
    bounds = [state.expression(a) for a in it.args]
    if not all(isinstance(b, Static) and isinstance(b.value, int) for b in bounds):
        state.reject(
            codes.NOT_STATIC,
            "static_range takes compile-time ints",
            it,
            helps=("use range(...) for a run-time loop",),
        )
    if not isinstance(node.target, ast.Name) or not 1 <= len(bounds) <= 3:
        state.reject(
            codes.BAD_ARGUMENTS, "static_range(stop), (start, stop) or (start, stop, step)", it
        )
    for i in range(*(b.value for b in bounds if isinstance(b, Static))):
        state.scopes.append({})
        loc = state.source.span(node.target)
        try:
            state.bind(node.target.id, Static(value=i, type=bounds[0].type, loc=loc))
            state.execute(state, node.body)
        finally:
            state.scopes.pop()


def _range_for(state: State, node: ast.For, it: ast.Call) -> None:
    unroll = False
    for k in it.keywords:
        flag = state.expression(k.value)
        if k.arg != "unroll" or not isinstance(flag, Static) or not isinstance(flag.value, bool):
            state.reject(codes.BAD_ARGUMENTS, "range takes unroll=True or False", it)
        unroll = flag.value
    bounds = [state.expression(a) for a in it.args]
    if not isinstance(node.target, ast.Name) or not 1 <= len(bounds) <= 3:
        state.reject(codes.BAD_ARGUMENTS, "range(stop), (start, stop) or (start, stop, step)", it)
    loc = state.source.span(it)
    if len(bounds) == 1:
        bounds.insert(0, constant(0, I32, loc))
    if len(bounds) == 2:
        bounds.append(constant(1, I32, loc))
    wide = any(isinstance(b.type, Scalar) and b.type.dtype == I64 for b in bounds)
    typing = Typing(state, "range", loc)
    start, stop, step = (typing.coerce(b, I64 if wide else I32) for b in bounds)
    _check_step(state, step)
    if unroll and not all(isinstance(b, Const) for b in (start, stop, step)):
        state.reject(codes.NOT_STATIC, "an unrolled range needs compile-time bounds", it)
    varying = any(_varying(b) for b in (start, stop, step))
    with nested(state, varying) as body:
        var = declare(
            state,
            node.target.id,
            Scalar(I64 if wide else I32, varying),
            state.source.span(node.target),
        )
        state.execute(state, node.body)
    state.emit(
        For(
            var=var,
            start=start,
            stop=stop,
            step=step,
            unroll=unroll,
            body=tuple(body),
            loc=state.source.span(node),
        )
    )


def _check_step(state: State, step: Expr) -> None:
    if isinstance(step, Const) and step.value <= 0:
        state.reject(
            codes.BAD_ARGUMENTS,
            f"the step of a range is positive, got {step.value}",
            step.loc,
            helps=("run the loop upwards and compute the index",),
        )


def _tile_loop(state: State, node: ast.For, tiles: Tiles) -> None:
    names = target_names(state, node.target)
    if len(names) != len(tiles.extents):
        state.reject(
            codes.BAD_ARGUMENTS,
            f"{tiles.name} has {len(tiles.extents)} coordinates, got {len(names)} names",
            node.target,
        )
    loc = state.source.span(node.target)
    with nested(state) as body:
        variables = tuple(declare(state, n, Scalar(I32), loc) for n in names)
        state.execute(state, node.body)
    state.emit(
        TileLoop(vars=variables, tiles=tiles.name, body=tuple(body), loc=state.source.span(node))
    )


def with_(state: State, node: ast.With) -> None:
    """``with ring.fill() as s`` and ``with ring.use() as s``."""
    if len(node.items) != 1:
        state.reject(codes.NOT_IN_LANGUAGE, "one item in a with statement", node)
    item = node.items[0]
    e = item.context_expr
    if (
        not isinstance(e, ast.Call)
        or not isinstance(e.func, ast.Attribute)
        or e.func.attr not in ("fill", "use")
        or not isinstance(e.func.value, ast.Name)
    ):
        state.reject(
            codes.NOT_IN_LANGUAGE,
            "inside a role, `with` opens a ring: with ring.fill() as s, with ring.use() as s",
            e,
        )
    ring = state.find(e.func.value.id)
    if isinstance(ring, Poison):
        raise Rejected
    if not isinstance(ring, Pipeline):
        state.reject(codes.TYPE_ERROR, f"{e.func.value.id} is not a pipeline", e.func.value)
    if not isinstance(item.optional_vars, ast.Name):
        state.reject(codes.BAD_ARGUMENTS, "name the slot: `with ring.fill() as s:`", e)
    loc = state.source.span(item.optional_vars)
    with nested(state) as body:
        slot = declare(state, item.optional_vars.id, Slot(ring.name), loc)
        state.execute(state, node.body)
    state.emit(
        Bracket(
            pipeline=ring.name,
            side="fill" if e.func.attr == "fill" else "use",
            slot=slot,
            body=tuple(body),
            loc=state.source.span(node),
        )
    )
