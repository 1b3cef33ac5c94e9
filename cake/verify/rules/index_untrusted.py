"""An index that comes from a tensor reaches an address with no comparison on it.

**Rule.** An index loaded from an input tensor (a page table, routing, labels) is compared with the
size of what it indexes, or limited with `min` and `max`, before it is part of an address.

**If broken.** One wrong number in the input, of an upstream kernel perhaps, and the kernel reads or
overwrites memory of others, far from the cause.

**Instead.** `k = max(min(load(ids[n]), K - 1), 0)`, or `mask=` with both bounds. Where the contract
bounds the numbers, accept this finding and say so.

**Source.** vllm-project/vllm#49896.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic, Severity
from cake.ir.nodes import Call, Expr, TensorRef, View
from cake.verify.conditions import written_tensors
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, "N"], x: Tensor[f32, "K", 32], y: Tensor[f32, "N", 32]):
    n = grid(N)
    r = role(warps=1)
    with r:
        k = load(ids[n])
        store(y[n, lane()], load(x[k, lane()]))  # CK337
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, "N"], x: Tensor[f32, "K", 32], y: Tensor[f32, "N", 32]):
    require(K > 0)
    n = grid(N)
    r = role(warps=1)
    with r:
        k = max(min(load(ids[n]), K - 1), 0)
        store(y[n, lane()], load(x[k, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    written = set(written_tensors(ctx.program))
    for site in ctx.sites:
        for index, what in _indices(site):
            source = _source(ctx, site, index, written)
            if source is not None:
                yield RULE.at(
                    site.call.loc,
                    f"an index of {what} comes from {source.tensor}, and nothing compares it",
                    related=[(source.loc, "loaded here")],
                    facts={"tensor": what, "from": source.tensor},
                    helps=("limit it with min and max, or accept this with the reason",),
                )
                break


def _indices(site: Site) -> Iterator[tuple[Expr, str]]:
    """The indices of a call's accesses, with what they index."""
    for space in ("global", "smem"):
        for _, place in site.accesses(space):
            if isinstance(place, TensorRef):
                yield from ((e, place.tensor) for e in place.index)
            elif isinstance(place, View):
                yield from ((e, place.base) for e in place.offsets)


def _source(ctx: Context, site: Site, index: Expr, written: set[str]) -> TensorRef | None:
    """The input that an index is computed from, if no condition on it leads here."""
    p = ctx.integers.poly(index)
    for key in () if p is None else sorted(p.atoms):
        origin = ctx.integers.origins.get(key)
        place = origin.args[0] if isinstance(origin, Call) and origin.args else None
        if not isinstance(place, TensorRef) or place.tensor in written:
            continue
        known = ctx.integers.atoms.get(key)
        given = ctx.given(site, ctx.mask_of(site))
        if not known.lows and not known.highs and not any(key in g.atoms for g in given):
            return place
    return None


RULE = rule(
    code="CK337",
    name="index-untrusted",
    gate="program safety",
    severity=Severity.WARNING,
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
