"""Elaboration of statements inside roles."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cake.diag import Related, Span
from cake.ir.dtypes import DTYPES, I32, I64, DType
from cake.ir.nodes import (
    Assign,
    Bracket,
    Call,
    Const,
    Do,
    Element,
    Expr,
    For,
    If,
    Node,
    SetElement,
    Static,
    Stmt,
    TileLoop,
    While,
)
from cake.ir.program import Pipeline, Tiles
from cake.ir.types import (
    RegArray,
    Resource,
    Scalar,
    Slot,
    SmemView,
    TensorPlace,
    TmemView,
    Tuple,
    Type,
    Void,
)
from cake.lang import codes
from cake.lang.calls import Typing
from cake.lang.expressions import apply, call, expression
from cake.lang.scope import Poison, Rejected, State, Variable, constant, default_dtype


def statements(state: State, body: Sequence[ast.stmt]) -> None:
    """Elaborate a block into ``state.block``; a rejected statement does not stop the next."""
    for node in body:
        try:
            _statement(state, node)
        except Rejected:
            _poison(state, node)


def _poison(state: State, node: ast.stmt) -> None:
    """Names a rejected assignment would have defined: their uses are not errors of their own."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    for target in targets:
        for n in ast.walk(target):
            if isinstance(n, ast.Name) and state.find(n.id) is None:
                state.bind(n.id, Poison())


def _statement(state: State, node: ast.stmt) -> None:
    handlers: dict[type[ast.stmt], Callable[[State, Any], None]] = {
        ast.Assign: _assign,
        ast.AugAssign: _augmented,
        ast.Expr: _expression_statement,
        ast.For: _for,
        ast.While: _while,
        ast.If: _if,
        ast.With: _with,
        ast.Pass: lambda s, n: None,
    }
    handler = handlers.get(type(node))
    if handler is None:
        state.reject(
            codes.NOT_IN_LANGUAGE,
            f"`{type(node).__name__.lower()}` is not part of the language",
            node,
            helps=(_INSTEAD.get(type(node).__name__, "see the grammar page"),),
        )
    handler(state, node)


_INSTEAD = {
    "Return": "a role has no result; an inline helper returns in its last statement",
    "Break": "put the condition into `while cond:`",
    "Continue": "put the rest of the body under `if`",
    "Try": "there are no exceptions in a kernel",
    "Raise": "there are no exceptions in a kernel",
    "Assert": "use require(...) over dimensions",
    "Import": "a schedule cannot import; nothing of the file is executed",
    "ImportFrom": "a schedule cannot import; nothing of the file is executed",
    "FunctionDef": "define helpers at module level with @cake.inline",
    "AnnAssign": "types are inferred; write name = value",
    "Delete": "names live to the end of their block",
    "Global": "there are no globals",
    "Match": "use if / else",
}


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


# -- assignment ------------------------------------------------------------------------------------


def _assign(state: State, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        state.reject(codes.NOT_IN_LANGUAGE, "a = b = ... is not part of the language", node)
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        _set_element(state, target, expression(state, node.value), node)
        return
    names = _target_names(state, target)
    if isinstance(node.value, ast.Tuple) and len(names) > 1:
        _parallel(state, names, node.value, node)
        return
    value = _value(state, node.value)
    if len(names) == 1 and isinstance(value, Static) and _constant(state, names[0], value):
        return
    _store(state, names, value, node)


def _parallel(state: State, names: list[str], value: ast.Tuple, node: ast.Assign) -> None:
    """``a, b = x, y``: one assignment a name; allowed when no value reads an earlier target."""
    if len(value.elts) != len(names):
        state.reject(codes.TYPE_ERROR, f"{len(names)} names, {len(value.elts)} values", node)
    for i, element in enumerate(value.elts):
        read = {n.id for n in ast.walk(element) if isinstance(n, ast.Name)}
        if read & set(names[:i]):
            state.reject(
                codes.NOT_IN_LANGUAGE,
                f"{names[i]} would read a name of the same assignment after its change",
                node,
                helps=("write the assignments one by one, with a temporary",),
            )
    for name, element in zip(names, value.elts, strict=True):
        e = _value(state, element)
        if not (isinstance(e, Static) and _constant(state, name, e)):
            _store(state, [name], e, node)


def _value(state: State, node: ast.expr) -> Expr:
    """The right side of an assignment; ``var(dtype, value)`` declares a typed number."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "var"
        and state.find("var") is None
    ):
        return _var(state, node)
    return expression(state, node)


def _var(state: State, node: ast.Call) -> Expr:
    operands = [expression(state, a) for a in node.args]
    if len(operands) != 2 or node.keywords:
        state.reject(codes.BAD_ARGUMENTS, "var takes a dtype and a value", node)
    kind, value = operands
    if not isinstance(kind, Static) or not isinstance(kind.value, DType):
        state.reject(codes.TYPE_ERROR, "var: the first argument is a dtype", node.args[0])
    return Typing(state, "var", state.source.span(node)).coerce(value, kind.value)


def _constant(state: State, name: str, value: Static) -> bool:
    """Bind a compile-time constant, if the name is assigned only once."""
    if name not in state.single[-1] and default_dtype(value.value) is not None:
        return False
    _check_free(state, name, value.loc)
    state.bind(name, value)
    return True


def _target_names(state: State, target: ast.expr) -> list[str]:
    items = target.elts if isinstance(target, ast.Tuple) else [target]
    names = []
    for item in items:
        if not isinstance(item, ast.Name):
            state.reject(
                codes.NOT_IN_LANGUAGE,
                "only names and register elements can be assigned",
                item,
                helps=("write memory with store(place, value)",),
            )
        names.append(item.id)
    return names


def _check_free(state: State, name: str, at: Span) -> None:
    meaning = state.find(name)
    if meaning is None or isinstance(meaning, Variable | Static | Poison):
        if name in DTYPES:
            state.reject(codes.REDEFINED, f"{name} is an element type", at)
        return
    related = (
        (Related(span=meaning.loc, message="defined here"),) if isinstance(meaning, Node) else ()
    )
    state.reject(codes.REDEFINED, f"{name} already names something else", at, related=related)


def _store(state: State, names: list[str], value: Expr, node: ast.Assign | ast.AugAssign) -> None:
    loc = state.source.span(node)
    value = _materialise(state, value, node)
    types = value.type.items if isinstance(value.type, Tuple) else (value.type,)
    if len(types) != len(names):
        state.reject(codes.TYPE_ERROR, f"{len(names)} names, {len(types)} results", node)
    targets, declares = [], []
    for name, t in zip(names, types, strict=True):
        old = state.find(name)
        if isinstance(old, Variable):
            _check_same(state, name, old, t, node)
            targets.append(old.ir_name)
            declares.append(False)
        else:
            _check_free(state, name, loc)
            targets.append(declare(state, name, t, loc))
            declares.append(True)
    if len(names) == 1 and not declares[0]:
        old = state.find(names[0])
        if isinstance(old, Variable) and isinstance(value, Const) and value.type != old.type:
            value = Const(value=value.value, type=Scalar(_dtype(old.type)), loc=value.loc)
    state.emit(Assign(targets=tuple(targets), declares=tuple(declares), value=value, loc=loc))


def _dtype(t: Type) -> DType:
    assert isinstance(t, Scalar)
    return t.dtype


def _materialise(state: State, value: Expr, node: ast.AST) -> Expr:
    """A right side that can be held in a variable."""
    if isinstance(value, Static):
        dtype = default_dtype(value.value)
        if dtype is None:
            state.reject(codes.TYPE_ERROR, f"{value.value!r} cannot be held in a variable", node)
        return constant(value.value, dtype, value.loc)
    t = value.type
    if isinstance(t, SmemView | TmemView | TensorPlace | Resource | Void):
        helps = ("read memory with load(...)",) if not isinstance(t, Resource | Void) else ()
        state.reject(codes.TYPE_ERROR, f"{t} cannot be held in a variable", node, helps=helps)
    return value


def declare(state: State, name: str, t: Type, loc: Span) -> str:
    """Bind a new variable; scalars assigned per thread elsewhere become per thread here."""
    key = (loc.line, loc.col)
    if isinstance(t, Scalar) and not t.varying and (key in state.per_thread or state.varying_depth):
        t = Scalar(t.dtype, key in state.per_thread)
    ir_name = state.fresh(name)
    state.bind(name, Variable(ir_name, t, key))
    return ir_name


def _check_same(state: State, name: str, old: Variable, new: Type, node: ast.AST) -> None:
    t = old.type
    if isinstance(t, Scalar) and isinstance(new, Scalar) and t.dtype == new.dtype:
        if not t.varying and (new.varying or _diverges(state, name)):
            state.per_thread.add(old.declared)
        return
    if t != new:
        state.reject(
            codes.TYPE_CHANGED,
            f"{name} is {t} and cannot become {new}",
            node,
            helps=("cast the value, or use another name",),
            facts={"name": name},
        )


def _diverges(state: State, name: str) -> bool:
    """Is the assignment under per-thread control flow that the declaration is outside of?"""
    return state.varying_depth > 0 and name not in state.scopes[-1]


def _augmented(state: State, node: ast.AugAssign) -> None:
    from cake.lang.fold import BINARY

    op = BINARY.get(type(node.op).__name__)
    if op is None:
        state.reject(codes.NOT_IN_LANGUAGE, f"operator {type(node.op).__name__}=", node)
    if isinstance(node.target, ast.Attribute):
        state.reject(codes.NOT_IN_LANGUAGE, "attributes cannot be assigned", node)
    load = _as_load(node.target)
    value = apply(state, op, [expression(state, load), expression(state, node.value)], node)
    if isinstance(node.target, ast.Subscript):
        _set_element(state, node.target, value, node)
    elif isinstance(node.target, ast.Name):
        _store(state, [node.target.id], value, node)


def _as_load(target: ast.Name | ast.Subscript | ast.Attribute) -> ast.expr:
    copy: ast.expr
    if isinstance(target, ast.Name):
        copy = ast.Name(id=target.id, ctx=ast.Load())
    elif isinstance(target, ast.Subscript):
        copy = ast.Subscript(value=target.value, slice=target.slice, ctx=ast.Load())
    else:
        copy = target
    return ast.copy_location(copy, target)


def _set_element(state: State, target: ast.Subscript, value: Expr, node: ast.stmt) -> None:
    e = expression(state, _as_load(target))
    if not isinstance(e, Element):
        state.reject(
            codes.BAD_SUBSCRIPT,
            "only elements of register arrays can be assigned",
            target,
            helps=("write memory with store(place, value)",),
        )
    base = e.base.type
    assert isinstance(base, RegArray)
    typing = Typing(state, "element assignment", state.source.span(node))
    value = typing.coerce(value, base.dtype)
    if not isinstance(value.type, Scalar):
        state.reject(codes.TYPE_ERROR, f"an element takes a scalar, got {value.type}", node)
    loc = state.source.span(node)
    state.emit(SetElement(array=e.base, index=e.index, value=value, loc=loc))


def _expression_statement(state: State, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return
    if not isinstance(node.value, ast.Call):
        state.reject(codes.NOT_IN_LANGUAGE, "an expression without effect", node)
    value = call(state, node.value)
    if isinstance(value, Call):
        state.emit(Do(call=value, loc=state.source.span(node)))
    elif not isinstance(value, Static):
        state.reject(codes.NOT_IN_LANGUAGE, "an expression without effect", node)


# -- control flow ----------------------------------------------------------------------------------


def _varying(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.varying


def _condition(state: State, node: ast.expr) -> Expr:
    cond = expression(state, node)
    if isinstance(cond, Static) or (
        isinstance(cond.type, Scalar) and cond.type.dtype.name == "bool"
    ):
        return cond
    state.reject(
        codes.TYPE_ERROR, f"a condition must be bool, got {cond.type}", node, helps=("compare it",)
    )


def _if(state: State, node: ast.If) -> None:
    cond = _condition(state, node.test)
    if isinstance(cond, Static):
        state.scopes.append({})
        try:
            statements(state, node.body if cond.value else node.orelse)
        finally:
            _leak(state)
        return
    with nested(state, _varying(cond)) as then:
        statements(state, node.body)
    with nested(state, _varying(cond)) as orelse:
        statements(state, node.orelse)
    loc = state.source.span(node)
    state.emit(If(cond=cond, then=tuple(then), orelse=tuple(orelse), loc=loc))


def _leak(state: State) -> None:
    """A compile-time branch is no block of its own: its names live on."""
    inner = state.scopes.pop()
    state.scopes[-1].update(inner)


def _while(state: State, node: ast.While) -> None:
    if node.orelse:
        state.reject(codes.NOT_IN_LANGUAGE, "while ... else is not part of the language", node)
    cond = _condition(state, node.test)
    if isinstance(cond, Static):
        state.reject(codes.NOT_IN_LANGUAGE, "a while loop needs a run-time condition", node.test)
    with nested(state, _varying(cond)) as body:
        statements(state, node.body)
    state.emit(While(cond=cond, body=tuple(body), loc=state.source.span(node)))


def _for(state: State, node: ast.For) -> None:
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
    bounds = [expression(state, a) for a in it.args]
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
            statements(state, node.body)
        finally:
            state.scopes.pop()


def _range_for(state: State, node: ast.For, it: ast.Call) -> None:
    unroll = False
    for k in it.keywords:
        flag = expression(state, k.value)
        if k.arg != "unroll" or not isinstance(flag, Static) or not isinstance(flag.value, bool):
            state.reject(codes.BAD_ARGUMENTS, "range takes unroll=True or False", it)
        unroll = flag.value
    bounds = [expression(state, a) for a in it.args]
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
        statements(state, node.body)
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
    names = _target_names(state, node.target)
    if len(names) != len(tiles.extents):
        state.reject(
            codes.BAD_ARGUMENTS,
            f"{tiles.name} has {len(tiles.extents)} coordinates, got {len(names)} names",
            node.target,
        )
    loc = state.source.span(node.target)
    with nested(state) as body:
        variables = tuple(declare(state, n, Scalar(I32), loc) for n in names)
        statements(state, node.body)
    state.emit(
        TileLoop(vars=variables, tiles=tiles.name, body=tuple(body), loc=state.source.span(node))
    )


def _with(state: State, node: ast.With) -> None:
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
        statements(state, node.body)
    state.emit(
        Bracket(
            pipeline=ring.name,
            side="fill" if e.func.attr == "fill" else "use",
            slot=slot,
            body=tuple(body),
            loc=state.source.span(node),
        )
    )
