"""Integer expressions as a constant plus a sum of terms, to compare slice bounds."""

from __future__ import annotations

from dataclasses import dataclass

from cake.ir.nodes import Call, Const, DimRef, Expr, Static, VarRef


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant + sum(coefficient * term)``; terms are keyed by their text."""

    constant: int
    terms: tuple[tuple[str, int], ...]

    def minus(self, other: Linear) -> int | None:
        """``self - other`` if it is a number."""
        return self.constant - other.constant if self.terms == other.terms else None


def linear(e: Expr) -> Linear | None:
    """Linear form of an integer expression; opaque parts become terms; None if not an integer."""
    found = _collect(e)
    if found is None:
        return None
    constant, terms = found
    return Linear(constant, tuple(sorted((k, v) for k, v in terms.items() if v)))


def _collect(e: Expr) -> tuple[int, dict[str, int]] | None:
    if isinstance(e, Static | Const):
        return (e.value, {}) if isinstance(e.value, int) else None
    if isinstance(e, VarRef | DimRef):
        return 0, {e.name: 1}
    if not isinstance(e, Call):
        return None
    args = [_collect(a) for a in e.args if a is not None]
    if e.op in ("add", "sub") and args[0] is not None and args[1] is not None:
        sign = 1 if e.op == "add" else -1
        (ca, ta), (cb, tb) = args[0], args[1]
        terms = dict(ta)
        for k, v in tb.items():
            terms[k] = terms.get(k, 0) + sign * v
        return ca + sign * cb, terms
    if e.op == "mul" and args[0] is not None and args[1] is not None:
        for scale, rest in ((args[0], args[1]), (args[1], args[0])):
            if not scale[1]:
                return scale[0] * rest[0], {k: scale[0] * v for k, v in rest[1].items()}
    key = _key(e)
    return None if key is None else (0, {key: 1})


def _key(e: Expr) -> str | None:
    """Text of an opaque pure integer expression."""
    if isinstance(e, Static | Const):
        return repr(e.value)
    if isinstance(e, VarRef | DimRef):
        return e.name
    if isinstance(e, Call) and e.op in ("mul", "floordiv", "mod", "add", "sub", "min", "max"):
        parts = [_key(a) for a in e.args if a is not None]
        if all(p is not None for p in parts):
            return f"{e.op}({','.join(p for p in parts if p)})"
    return None
