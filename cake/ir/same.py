"""Structural comparison: the path of the first difference."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

from cake.ir.nodes import Node


def same(a: Any, b: Any, path: str = "program") -> str | None:
    """None if ``a`` and ``b`` have the same structure, else the path of the first difference.

    Locations and allowances are ignored. Floats compare by bits, so nan equals nan and 0.0 differs
    from -0.0.
    """
    if type(a) is not type(b):
        return f"{path}: {type(a).__name__} against {type(b).__name__}"
    if isinstance(a, Node):
        for f in fields(a):
            if not f.compare:
                continue
            found = same(getattr(a, f.name), getattr(b, f.name), f"{path}.{f.name}")
            if found is not None:
                return found
        return None
    if isinstance(a, tuple):
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            found = same(x, y, f"{path}[{i}]")
            if found is not None:
                return found
        if len(a) != len(b):
            return f"{path}: {len(a)} items against {len(b)}"
        return None
    if isinstance(a, float):
        equal = a.hex() == b.hex() if not (math.isnan(a) or math.isnan(b)) else a != a and b != b
        return None if equal else f"{path}: {a!r} against {b!r}"
    if is_dataclass(a):
        return None if a == b else f"{path}: {a} against {b}"
    return None if a == b else f"{path}: {a!r} against {b!r}"
