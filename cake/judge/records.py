"""Frozen dataclasses to plain JSON values and back, with every type checked on the way in.

Known are dataclasses, ``tuple[X, ...]``, ``Mapping[str, X]``, unions, ``Literal``, ``int``,
``float``, ``str``, ``bool`` and ``Any``. JSON has no NaN and no infinities: they travel as text.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_NUMBERS = ("nan", "inf", "-inf")


class RecordError(ValueError):
    """A JSON value does not have the form of the record that is expected."""


def encode(value: Any) -> Any:
    """``value`` as a JSON value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def decode(kind: type[T], value: Any) -> T:
    """``value`` as an instance of the dataclass ``kind``; raises :class:`RecordError` that names
    the offending entry."""
    return cast("T", _decode(kind, value, kind.__name__))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    origin = get_origin(kind)
    if origin is Literal:
        if value in get_args(kind):
            return value
    elif origin in (Union, types.UnionType):
        return _decode_union(kind, value, where)
    elif origin is tuple and isinstance(value, list):
        item = get_args(kind)[0]
        return tuple(_decode(item, part, f"{where}[{at}]") for at, part in enumerate(value))
    elif isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        item = get_args(kind)[1]
        return {key: _decode(item, part, f"{where}.{key}") for key, part in value.items()}
    elif kind is float and (type(value) in (int, float) or value in _NUMBERS):
        return float(value)
    elif type(value) is kind:
        return value
    shown = repr(value)[:80]
    raise RecordError(f"{where}: {shown} is not {getattr(kind, '__name__', kind)}")


def _decode_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise RecordError(f"{where}: {repr(value)[:80]} is not an object")
    hints = _hints(kind)
    wrong = (value.keys() - hints.keys()) | (_required(kind) - value.keys())
    if wrong:
        differ = ", ".join(sorted(map(str, wrong)))
        raise RecordError(f"{where}: missing or unknown entries: {differ}")
    return kind(**{name: _decode(hints[name], value[name], f"{where}.{name}") for name in value})


@cache
def _required(kind: type) -> frozenset[str]:
    """Entries without a default: a record of an older version lacks those that were added since."""
    missing = dataclasses.MISSING
    return frozenset(
        f.name
        for f in dataclasses.fields(kind)
        if f.default is missing and f.default_factory is missing
    )


def _decode_union(kind: Any, value: Any, where: str) -> Any:
    for option in get_args(kind):
        if option is types.NoneType:
            if value is None:
                return None
            continue
        try:
            return _decode(option, value, where)
        except RecordError:
            continue
    raise RecordError(f"{where}: {repr(value)[:80]} is not {kind}")
