"""The arguments of a declaration."""

from __future__ import annotations

import ast
from typing import Any

from cake.ir.program import ResourceDecl
from cake.lang import codes
from cake.lang.scope import State


class Arguments:
    """The arguments of a declaration, taken one by one; leftovers are errors."""

    def __init__(self, state: State, node: ast.Call, callee: str) -> None:
        self.state = state
        self.node = node
        self.callee = callee
        self.keywords: dict[str, ast.expr] = {}
        for k in node.keywords:
            if k.arg is None:
                state.reject(codes.NOT_IN_LANGUAGE, "** is not part of the language", k.value)
            self.keywords[k.arg] = k.value

    def static(self, name: str, default: Any = ..., kinds: tuple[type, ...] = (int,)) -> Any:
        """A compile-time keyword argument."""
        node = self.keywords.pop(name, None)
        if node is None:
            if default is ...:
                self.state.reject(codes.BAD_ARGUMENTS, f"{self.callee} needs {name}=", self.node)
            return default
        value = self.state.static_value(node, f"{self.callee}: {name}")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join(k.__name__ for k in kinds)
            self.state.reject(
                codes.BAD_RESOURCE, f"{self.callee}: {name} must be {wanted}, got {value!r}", node
            )
        return value

    def name(self, name: str, kind: type[ResourceDecl], default: Any = ...) -> Any:
        """A keyword argument that names a declared resource."""
        node = self.keywords.pop(name, None)
        if node is None:
            if default is ...:
                self.state.reject(codes.BAD_ARGUMENTS, f"{self.callee} needs {name}=", self.node)
            return default
        return self.resource(node, kind, f"{self.callee}: {name}")

    def resource(self, node: ast.expr, kind: type[ResourceDecl], what: str) -> Any:
        """The resource that ``node`` names."""
        meaning = self.state.find(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(meaning, kind):
            self.state.reject(
                codes.BAD_RESOURCE, f"{what} must name a declared {kind.__name__.lower()}", node
            )
        return meaning

    def done(self) -> None:
        """Reject arguments nobody asked for."""
        for name, node in self.keywords.items():
            self.state.reject(codes.BAD_ARGUMENTS, f"{self.callee} has no parameter {name}", node)
