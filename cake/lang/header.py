"""The decorator and the parameters of a schedule."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from cake.ir.dtypes import F32, I32, I64, DType
from cake.ir.nodes import DimRef, Static
from cake.ir.program import Meta, ScalarParam, TensorParam
from cake.ir.types import Scalar
from cake.lang import codes
from cake.lang.scope import State, static


def parameters(state: State, f: ast.FunctionDef, bindings: Mapping[str, Any]) -> None:
    """Meta parameters first (they may size tensors), then tensors and scalars, then dimensions."""
    a = f.args
    if a.vararg or a.kwarg or a.posonlyargs or a.defaults:
        state.reject(
            codes.BAD_HEADER,
            "tensor and scalar parameters have no default, and there are no *args",
            f,
            helps=("meta parameters stand after `*` with `NAME: meta(...) = default`",),
        )
    for p, default in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        _meta(state, p, default, bindings)
    for name in bindings:
        if all(m.name != name for m in state.metas):
            known = ", ".join(m.name for m in state.metas) or "none"
            state.reject(
                codes.META_DOMAIN, f"there is no meta parameter {name} (known: {known})", f
            )
    for p in a.args:
        _parameter(state, p)
    _dimensions(state)


def _meta(state: State, p: ast.arg, default: ast.expr | None, bindings: Mapping[str, Any]) -> None:
    annotation = p.annotation
    if (
        not isinstance(annotation, ast.Call)
        or not isinstance(annotation.func, ast.Name)
        or annotation.func.id != "meta"
        or default is None
    ):
        state.reject(codes.BAD_HEADER, f"{p.arg}: write {p.arg}: meta(value, ...) = default", p)
    domain = tuple(state.static_value(v, "a meta value") for v in annotation.args)
    value = state.static_value(default, "a meta default")
    if value not in domain:
        state.reject(codes.META_DOMAIN, f"the default {value!r} of {p.arg} is not in its domain", p)
    if p.arg in bindings:
        value = bindings[p.arg]
        if value not in domain:
            listed = ", ".join(map(str, domain))
            state.reject(
                codes.META_DOMAIN,
                f"{p.arg} = {value!r} is outside its domain ({listed})",
                p,
                facts={"name": p.arg},
            )
    loc = state.source.span(p)
    state.used.add(p.arg)
    state.metas.append(Meta(name=p.arg, domain=domain, value=value, loc=loc))
    state.scopes[0][p.arg] = static(value, loc)


def _parameter(state: State, p: ast.arg) -> None:
    loc = state.source.span(p)
    annotation = _chosen(state, p.annotation)
    if state.find(p.arg) is not None:
        state.reject(codes.REDEFINED, f"{p.arg} already names something else", p)
    if isinstance(annotation, ast.Name):
        meaning = state.find(annotation.id)
        if isinstance(meaning, Static) and meaning.value in (I32, I64, F32):
            scalar = ScalarParam(name=p.arg, dtype=meaning.value, loc=loc)
            state.params.append(scalar)
            state.scopes[0][p.arg] = scalar
            state.used.add(p.arg)
            return
    if (
        not isinstance(annotation, ast.Subscript)
        or not isinstance(annotation.value, ast.Name)
        or annotation.value.id != "Tensor"
    ):
        state.reject(
            codes.BAD_HEADER,
            f"{p.arg}: write {p.arg}: Tensor[dtype, dim, ...] or {p.arg}: i32 | i64 | f32",
            p,
        )
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    values = [state.static_value(e, "part of a Tensor annotation") for e in parts]
    dtype, *dims = values
    if not isinstance(dtype, DType) or not 1 <= len(dims) <= 5:
        state.reject(codes.BAD_HEADER, f"{p.arg}: a dtype and 1 to 5 dimensions", annotation)
    shape: list[int | str] = []
    for d, e in zip(dims, parts[1:], strict=True):
        named = isinstance(d, str) and d.isidentifier()
        if not named and (not isinstance(d, int) or isinstance(d, bool) or d < 1):
            state.reject(codes.BAD_HEADER, f"{d!r} is neither a positive int nor a name", e)
        assert isinstance(d, int | str)
        shape.append(d)
    tensor = TensorParam(name=p.arg, dtype=dtype, shape=tuple(shape), loc=loc)
    state.params.append(tensor)
    state.scopes[0][p.arg] = tensor
    state.used.add(p.arg)


def _chosen(state: State, annotation: ast.expr | None) -> ast.expr | None:
    """What ``A if CONDITION else B`` stands for: meta parameters may choose a rank."""
    while isinstance(annotation, ast.IfExp):
        holds = state.static_value(annotation.test, "the condition of an annotation")
        annotation = annotation.body if holds else annotation.orelse
    return annotation


def _dimensions(state: State) -> None:
    for p in state.params:
        if not isinstance(p, TensorParam):
            continue
        for d in p.shape:
            if not isinstance(d, str):
                continue
            old = state.scopes[0].get(d)
            if old is not None and not (isinstance(old, DimRef) and old.name == d):
                state.reject(codes.REDEFINED, f"dimension {d} already names something else", p.loc)
            state.scopes[0][d] = DimRef(name=d, type=Scalar(I32), loc=p.loc)
            state.used.add(d)


def target_name(state: State, f: ast.FunctionDef) -> str:
    node = f.decorator_list[0]
    if isinstance(node, ast.Call) and not node.args:
        keywords = {k.arg: k.value for k in node.keywords}
        value = keywords.get("target")
        if len(keywords) == 1 and isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    state.reject(codes.BAD_HEADER, 'the decorator is @cake.schedule(target="sm_90a")', node)
