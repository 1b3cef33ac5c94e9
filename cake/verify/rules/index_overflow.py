"""A product of run-time values can exceed 32 bits.

**Rule.** Every i32 product fits into 32 bits for all sizes that the guards admit. Indices are
widened before they meet a stride, so plain tensor accesses are safe; products in the schedule are
not.

**If broken.** The index wraps: silent corruption, or an illegal access, on large inputs only.

**Instead.** `cast(b, i64) * N`, or `require(B * N < 2147483648)`.

**Source.** fla-org/flash-linear-attention#1080; triton-lang/triton#6748; megablocks#185.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.dtypes import I32
from cake.ir.types import DIM_LIMIT, Scalar
from cake.verify.concrete import evaluate
from cake.verify.conditions import divisibility
from cake.verify.context import Context
from cake.verify.integers import INT_LIMIT, rests_on_data
from cake.verify.poly import Poly
from cake.verify.questions import Fits
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "L"], y: Tensor[f32, "B", "N"]):
    b = grid(B)
    r = role(warps=1)
    with r:
        for n in range(lane(), N, 32):
            i = n * B + b  # CK322
            if i < L:
                store(y[b, n], load(x[max(i, 0)]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "L"], y: Tensor[f32, "B", "N"]):
    b = grid(B)
    r = role(warps=1)
    with r:
        for n in range(lane(), N, 32):
            i = cast(n, i64) * cast(B, i64) + cast(b, i64)
            if i < cast(L, i64):
                store(y[b, n], load(x[i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for site in ctx.sites:
        call = site.call
        if call.op not in _NAMES or not isinstance(call.type, Scalar) or call.type.dtype != I32:
            continue
        p = ctx.integers.poly(call)
        if p is None:
            continue
        product, data = call.op == "mul" and p.degree > 1, any(map(rests_on_data, p.atoms))
        if (data and not product) or _fits(ctx, p, site):
            continue
        if product and not data and not _bounded(ctx, site):
            yield RULE.at(
                call.loc,
                "this product of run-time values can exceed 32 bits for admitted sizes",
                facts={"limit": INT_LIMIT - 1},
                helps=("multiply in 64 bits: cast(x, i64)", "or bound the sizes with require(...)"),
            )
        else:
            what = f"whether the {_NAMES[call.op]} in line {call.loc.line} fits into 32 bits"
            yield Uncovered(what, decider="L4", question=Fits(site=site))


def _fits(ctx: Context, p: Poly, site: Site) -> bool:
    low, high = ctx.integers.interval(p)
    if low >= -INT_LIMIT and high < INT_LIMIT:
        return True
    given = ctx.given(site)
    return ctx.integers.proved(INT_LIMIT - 1 - p, given) and ctx.integers.proved(
        p + INT_LIMIT, given
    )


def _bounded(ctx: Context, site: Site) -> bool:
    """Whether guards or conditions may keep a product small in a way that no proof here sees."""
    most = dict.fromkeys(ctx.program.dims, DIM_LIMIT - 1)
    return bool(site.conditions) or any(
        evaluate(g.cond, most) is not True and divisibility(g.cond) is None
        for g in ctx.program.guards
    )


_NAMES = {"add": "sum", "sub": "difference", "mul": "product", "shl": "shift", "neg": "negation"}


RULE = rule(
    code="CK322",
    name="index-overflow",
    gate="program safety",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
