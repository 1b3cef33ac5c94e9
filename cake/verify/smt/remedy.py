"""What would keep an access inside: a comparison without equality."""

from __future__ import annotations

from collections.abc import Iterator

from cake.diag import Edit, Fix, Span
from cake.ir.nodes import Call, DimRef, Expr, child_exprs
from cake.verify.context import Context
from cake.verify.questions import Inside
from cake.verify.smt.decide import inside
from cake.verify.smt.search import Open
from cake.verify.smt.terms import STRICT

SYMBOLS = {"le": "<=", "ge": ">="}


def strict_comparison(ctx: Context, q: Inside, effort: int) -> Fix | None:
    """The edit of one comparison in the mask or a condition after which the access is proved to
    stay inside; None if there is none."""
    roots = [c for c, _ in q.site.conditions] + ([] if q.mask is None else [q.mask])
    for e in dict.fromkeys(c for root in roots for c in _comparisons(ctx, root)):
        operator = _operator(e)
        try:
            proved = operator is not None and inside(ctx, q, effort, strict={id(e)}) is True
        except Open:
            proved = False
        if operator is not None and proved:
            span, spaced = operator
            symbol = SYMBOLS[e.op]
            strict = f" {symbol[0]} " if spaced else symbol[0]
            return Fix(
                message=f"{symbol[0]} instead of {symbol}",
                applicability="unsafe",
                edits=(Edit(span=span, replacement=strict),),
            )
    return None


def _comparisons(ctx: Context, e: Expr) -> Iterator[Call]:
    """Comparisons with equality in a condition, those of names that are assigned once included."""
    e = ctx.integers.meanings.get(id(e), e)
    if isinstance(e, Call) and e.op in STRICT:
        yield e
    elif isinstance(e, Call):
        for part in child_exprs(e):
            yield from _comparisons(ctx, part)


def _operator(e: Call) -> tuple[Span, bool] | None:
    """Where the operator stands between its operands, and whether spaces are round it; None if
    something else, such as a parenthesis, is there too."""
    left, right = e.args[:2]
    assert left is not None
    assert right is not None
    # A dimension's own place is the parameter that declares it.
    first = e.loc.col + len(left.name) if isinstance(left, DimRef) else left.loc.end_col
    last = e.loc.end_col - len(right.name) if isinstance(right, DimRef) else right.loc.col
    # An operand that a helper was given stands elsewhere.
    here = all(
        isinstance(x, DimRef) or (x.loc.line, x.loc.end_line) == (e.loc.line, e.loc.end_line)
        for x in (left, right)
    )
    if not here or not e.loc.col < first < last < e.loc.end_col or last - first not in (2, 4):
        return None
    span = Span(file=e.loc.file, line=e.loc.line, col=first, end_line=e.loc.line, end_col=last)
    return span, last - first == 4
