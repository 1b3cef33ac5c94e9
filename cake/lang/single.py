"""Which names a body assigns exactly once: with a compile-time value they are constants."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence


def assigned_once(body: Sequence[ast.stmt]) -> set[str]:
    """Names with exactly one assignment in ``body``, nested blocks included."""
    counts: Counter[str] = Counter()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                counts[node.id] += 1
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                counts[node.target.id] += 1
    return {name for name, n in counts.items() if n == 1}
