"""Values of meta parameters as JSON, and in the text of a schedule file."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from cake.ir.dtypes import DTYPES, DType

MetaJson = bool | int | float | str


def encode_meta(meta: Mapping[str, Any]) -> dict[str, MetaJson]:
    """Meta parameters as plain JSON values: element types by their names."""
    return {name: v.name if isinstance(v, DType) else v for name, v in meta.items()}


def decode_meta(
    meta: Mapping[str, MetaJson], domains: Mapping[str, tuple[Any, ...]]
) -> dict[str, Any]:
    """The values that :func:`encode_meta` wrote; names of types become types where the domain
    holds types. A parameter without a domain keeps its value, for the elaborator to reject."""
    return {
        name: DTYPES.get(v, v)
        if isinstance(v, str) and any(isinstance(d, DType) for d in domains.get(name, ()))
        else v
        for name, v in meta.items()
    }


def with_meta(text: str, meta: Mapping[str, Any], target: str | None = None) -> str:
    """The text of a schedule file with other defaults of its meta parameters.

    Everything else stays as its author wrote it, comments included. ``target`` replaces that of
    the decorators. Raises ``SyntaxError`` for text that is not Python.
    """
    encoded = text.encode()
    # Last place first, so that earlier places keep their offsets.
    for start, end, new in sorted(_replacements(text, meta, target), reverse=True):
        encoded = encoded[:start] + new.encode() + encoded[end:]
    return encoded.decode()


def _replacements(
    text: str, meta: Mapping[str, Any], target: str | None
) -> list[tuple[int, int, str]]:
    """Byte ranges of the text, and what to put there."""
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def place(node: ast.expr, new: str) -> tuple[int, int, str]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        return start, starts[node.end_lineno - 1] + node.end_col_offset, new

    found = []
    for function in ast.parse(text).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for p, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            if p.arg in meta and default is not None:
                found.append(place(default, _literal(meta[p.arg])))
        for decorator in function.decorator_list if target else ():
            for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
                if keyword.arg == "target":
                    found.append(place(keyword.value, f'"{target}"'))
    return found


def _literal(value: Any) -> str:
    """A meta value as an author writes it."""
    return value.name if isinstance(value, DType) else repr(value)
