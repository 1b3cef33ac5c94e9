"""Binding arguments to primitives, and the context in which typing rules run."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from cake.diag import Span
from cake.ir.dtypes import BOOL, I32, I64, DType
from cake.ir.nodes import Call, Const, Expr, ResourceRef, Static, TensorRef, View
from cake.ir.program import ResourceDecl
from cake.ir.types import Scalar, StaticType, Type, Void, element_dtype
from cake.lang import codes
from cake.lang.scope import State, constant, default_dtype, widen
from cake.ops.base import REQUIRED, Param, Primitive, Typed
from cake.ops.check import describe
from cake.targets import get as get_target
from cake.targets import names as target_names
from cake.targets.model import Target


@dataclass(slots=True)
class Typing:
    """The :class:`cake.ops.base.TypingContext` of one call."""

    state: State
    name: str
    loc: Span

    @property
    def target(self) -> Target:
        return self.state.target

    @property
    def unit_threads(self) -> int:
        return self.state.unit_threads

    def resource(self, name: str) -> ResourceDecl:
        return self.state.resources[name]

    def fail(
        self,
        message: str,
        at: Expr | None = None,
        *,
        code: str = codes.TYPE_ERROR,
        helps: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        self.state.reject(
            code,
            f"{self.name}: {message}",
            self.loc if at is None else at.loc,
            helps=helps,
            facts={"primitive": self.name, **(facts or {})},
        )

    def coerce(self, e: Expr, dtype: DType) -> Expr:
        if isinstance(e, Static | Const) and not isinstance(e.type, Scalar):
            return self._number(e, dtype)
        found = element_dtype(e.type)
        if found == dtype:
            return e
        if found == I32 and dtype == I64 and isinstance(e.type, Scalar):
            return widen(e, dtype)
        got = e.type if found is None else found
        self.fail(f"expected {dtype}, got {got}", e, helps=(f"cast(..., {dtype}) converts",))

    def _number(self, e: Static | Const, dtype: DType) -> Expr:
        value = e.value
        if isinstance(value, bool) != (dtype == BOOL) or not isinstance(value, int | float):
            self.fail(f"expected {dtype}, got compile-time {value!r}", e)
        if dtype.is_float:
            return constant(float(value), dtype, e.loc)
        if isinstance(value, float):
            self.fail(f"expected {dtype}, got the float {value!r}", e)
        low = -(2 ** (dtype.bits - 1)) if dtype.kind == "int" else 0
        high = 2 ** (dtype.bits - (dtype.kind == "int")) - 1
        if dtype != BOOL and not low <= value <= high:
            self.fail(f"{value} does not fit in {dtype}", e, facts={"value": value})
        return constant(value, dtype, e.loc)


def signature(p: Primitive) -> str:
    """How a primitive is called, for help lines."""
    parts = []
    star = False
    for q in p.params:
        if q.keyword_only and not star:
            parts.append("*")
            star = True
        default = "" if q.default is REQUIRED else f"={q.default!r}"
        parts.append(q.name + default)
    return f"{p.name}({', '.join(parts)})"


def call_primitive(
    state: State,
    primitive: Primitive,
    positional: Sequence[Expr],
    keywords: Mapping[str, Expr],
    node: ast.AST,
) -> Call:
    """Bind, check the target and the unit, and type a call."""
    loc = state.source.span(node)
    args = _bind(state, primitive, positional, keywords, loc)
    _admit(state, primitive, loc)
    typing = Typing(state, primitive.name, loc)
    call = Call(op=primitive.name, args=args, type=Void(), loc=loc)
    result: Type | Typed = primitive.typing(typing, call)
    if isinstance(result, Typed):
        return Call(op=primitive.name, args=result.args, type=result.type, loc=loc)
    return Call(op=primitive.name, args=_default_numbers(primitive, args), type=result, loc=loc)


def _default_numbers(p: Primitive, args: tuple[Expr | None, ...]) -> tuple[Expr | None, ...]:
    """Numbers that the typing rule left untyped take their default element type."""
    out: list[Expr | None] = []
    for param, a in zip(p.params, args, strict=True):
        if param.kind == "value" and isinstance(a, Static) and isinstance(a.type, StaticType):
            dtype = default_dtype(a.value)
            out.append(a if dtype is None else constant(a.value, dtype, a.loc))
        else:
            out.append(a)
    return tuple(out)


def _bind(
    state: State,
    primitive: Primitive,
    positional: Sequence[Expr],
    keywords: Mapping[str, Expr],
    loc: Span,
) -> tuple[Expr | None, ...]:
    takes = [p for p in primitive.params if not p.keyword_only]
    hint = (signature(primitive),)
    if len(positional) > len(takes):
        state.reject(
            codes.BAD_ARGUMENTS,
            f"{primitive.name} takes {len(takes)} positional arguments, got {len(positional)}",
            positional[len(takes)].loc,
            helps=hint,
        )
    given: dict[str, Expr] = {p.name: e for p, e in zip(takes, positional, strict=False)}
    for name, e in keywords.items():
        if name in given:
            state.reject(codes.BAD_ARGUMENTS, f"{name} is given twice", e.loc, helps=hint)
        if all(p.name != name for p in primitive.params):
            near = difflib.get_close_matches(name, [p.name for p in primitive.params], 1)
            extra = (f"did you mean {near[0]}?",) if near else ()
            state.reject(
                codes.BAD_ARGUMENTS,
                f"{primitive.name} has no parameter {name}",
                e.loc,
                helps=extra + hint,
            )
        given[name] = e
    out: list[Expr | None] = []
    for p in primitive.params:
        operand = given.get(p.name)
        if operand is None and p.default is REQUIRED:
            state.reject(codes.BAD_ARGUMENTS, f"{primitive.name} needs {p.name}", loc, helps=hint)
        if operand is None or _is_default(operand, p):
            out.append(None)
        else:
            out.append(_checked(state, primitive, p, operand))
    return tuple(out)


def _is_default(e: Expr, p: Param) -> bool:
    """An operand equal to the default is left out: one spelling for one thing."""
    return (
        isinstance(e, Static)
        and p.default is not REQUIRED
        and type(e.value) is type(p.default)
        and e.value == p.default
    )


def _checked(state: State, primitive: Primitive, p: Param, e: Expr) -> Expr:
    where = f"{primitive.name}: {p.name}"
    if p.kind == "static" and not isinstance(e, Static):
        state.reject(codes.NOT_STATIC, f"{where} must be known at compile time", e.loc)
    if p.kind == "place" and not isinstance(e, View | TensorRef):
        state.reject(
            codes.TYPE_ERROR,
            f"{where} must be a shared-memory view or a place in a tensor, got {e.type}",
            e.loc,
        )
    # A tensor's name is a reference too, but tensors are parameters: nothing declares them.
    declared = isinstance(e, ResourceRef) and e.name in state.resources
    if p.kind == "resource" and not declared:
        state.reject(
            codes.TYPE_ERROR, f"{where} must be a declared resource, got {describe(e)}", e.loc
        )
    if p.kind == "value" and isinstance(e, View | TensorRef) and primitive.name in _REGISTER_ONLY:
        state.reject(
            codes.TYPE_ERROR,
            f"{where} must be a value in registers, got {e.type}",
            e.loc,
            helps=("read memory with load(...)",),
        )
    return e


_REGISTER_ONLY = frozenset(
    {"add", "sub", "mul", "div", "min", "max", "fma", "lt", "le", "gt", "ge", "eq", "ne", "select"}
)


def _admit(state: State, primitive: Primitive, loc: Span) -> None:
    need = primitive.requires
    if need is not None and not getattr(state.target, need):
        have = [n for n in target_names() if getattr(get_target(n), need)]
        state.reject(
            codes.UNSUPPORTED_TARGET,
            f"{primitive.name} does not exist on {state.target.name}",
            loc,
            helps=(f"targets that have it: {', '.join(have)}",),
            facts={"primitive": primitive.name, "target": state.target.name, "capability": need},
        )
    if state.unit_threads == 0:
        if not primitive.outside_roles:
            state.reject(
                codes.WRONG_PLACE,
                f"{primitive.name} stands outside a role",
                loc,
                helps=("move it into the body of a role: `with role_name:`",),
            )
        return
    unit = "warpgroup" if state.unit_threads == 128 else "warp"
    if unit not in primitive.units:
        other = "warpgroups" if unit == "warp" else "warps"
        state.reject(
            codes.WRONG_UNIT,
            f"{primitive.name} cannot run in a {unit}",
            loc,
            helps=(f"declare the role as role({other}=n)",),
            facts={"primitive": primitive.name, "unit": unit},
        )


__all__ = ["Typing", "call_primitive", "signature"]
