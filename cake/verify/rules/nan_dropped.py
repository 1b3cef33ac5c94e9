"""A floating-point maximum drops NaN.

**Rule.** `max` and `min` of f32 follow PTX: a NaN loses against a number. A contract under which
NaN must reach the result needs a test of its own.

**If broken.** A NaN in the input disappears in a maximum, and with it in a scale or a softmax.

**Instead.** `select(v != v, v, max(a, v))`; or make sure that NaN survives elsewhere, as in a sum
over the same values.

**Source.** PTX ISA, max, `.NaN`; flashinfer-ai/flashinfer#4401 relies on the drop.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.dtypes import F32
from cake.ir.nodes import Call, Expr
from cake.ir.types import element_dtype
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    r = role(warps=1)
    with r:
        top = -inf
        for m in range(M):
            top = max(top, load(x[m, lane()]))  # CK380
        store(y[lane()], top)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    r = role(warps=1)
    with r:
        top = -inf
        for m in range(M):
            v = load(x[m, lane()])
            top = select(v != v, v, max(top, v))
        store(y[lane()], top)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    """Report the first such maximum of a program that never looks for NaN."""
    if any(_looks_for_nan(ctx, s.call) for s in ctx.sites):
        return
    for site in ctx.sites:
        if site.call.op in ("max", "min") and element_dtype(site.call.type) == F32:
            yield RULE.at(
                site.call.loc,
                f"{site.call.op} drops NaN: a NaN operand loses against a number",
                facts={"primitive": site.call.op},
                helps=("if NaN must spread: select(v != v, v, max(a, v))",),
            )
            return


def _looks_for_nan(ctx: Context, call: Call) -> bool:
    return call.op in ("ne", "eq") and _same(ctx, call.args[0], call.args[1])


def _same(ctx: Context, a: Expr | None, b: Expr | None) -> bool:
    return a is not None and b is not None and ctx.integers.text(a) == ctx.integers.text(b)


RULE = rule(
    code="CK380",
    name="nan-dropped",
    gate="data consistency",
    severity=Severity.NOTE,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
