"""Threads meet at an element of shared memory that data choose, without a barrier between.

**Rule.** Where an index is loaded from a tensor, some data make it the element that another thread
accesses: between a write and a read or write of it stands a barrier, whatever the data usually are.

**If broken.** For some inputs the reader sees old values, or the last writer wins.

**Instead.** Write, barrier, read; or `reduce_add` and `atomic_add`, which may meet.

**Source.** PTX ISA, Memory Consistency Model: data races; NVIDIA/cuCollections#337.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import Expr, If
from cake.ir.types import Scalar
from cake.verify.context import Context
from cake.verify.free_data import FreeData
from cake.verify.memory_items import by_each_thread, views
from cake.verify.rule import rule
from cake.verify.sites import Site, controls

BAD = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, 128], y: Tensor[i32, 128]):
    count = smem(i32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(count[i], 0)
        cta_sync()
        k = bitand(load(ids[i]), 127)
        reduce_add(count[k], 1)
        store(y[i], load(count[127 - i]))  # CK355
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, 128], y: Tensor[i32, 128]):
    count = smem(i32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(count[i], 0)
        cta_sync()
        k = bitand(load(ids[i]), 127)
        reduce_add(count[k], 1)
        cta_sync()
        store(y[i], load(count[127 - i]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    sites = {id(site.call): site for site in ctx.sites}
    seen: set[tuple[int, int]] = set()
    for h in ctx.hazards:
        new, old = sites.get(id(h.at)), h.site
        if h.certain or h.kind not in ("read-unsynced", "write-unsynced") or not (old and new):
            continue
        key = (id(old), id(new))
        if key not in seen and old is not new and _meet(ctx, old, new, h.subject):
            seen.add(key)
            yield RULE.at(
                new.call.loc,
                f"data may make this the element of {h.subject} that another thread accesses in"
                f" line {old.call.loc.line}, and no barrier stands between",
                related=[(old.call.loc, f"{h.subject} is accessed here")],
                facts={"buffer": h.subject},
                helps=("put a barrier between the two",),
            )


def _meet(ctx: Context, a: Site, b: Site, buffer: str) -> bool:
    """Whether data can make two threads meet: at least one index is chosen by data alone."""
    free = FreeData(ctx, a.role)
    if not all(_by_all(ctx, site, free) for site in (a, b)):
        return False
    indices = [_index(site, buffer) for site in (a, b)]
    ranges = [None if e is None else free.range(e) for e in indices]
    if None in indices or ranges == [None, None]:
        return False
    polys = [None if e is None else ctx.integers.poly(e) for e in indices]
    plain = [None if p is None else ctx.reach(p) for p in polys]
    first, second = (r or p for r, p in zip(ranges, plain, strict=True))
    if first is None or second is None:
        return False
    return first[0] <= second[1] and second[0] <= first[1]


def _by_all(ctx: Context, site: Site, free: FreeData) -> bool:
    """Whether all threads of a unit may make an access, each its own.

    A condition or mask that only says which data are an index at all leaves that to the data.
    """
    differing = ctx.across_units(site.role.role)
    for a in site.around:
        if isinstance(a.stmt, If) and a.branch and free.usual(a.stmt.cond):
            continue
        for e in controls(a.stmt):
            varying = not isinstance(e.type, Scalar) or e.type.varying
            if varying or differing.differs(e):
                return False
    mask = ctx.mask_of(site)
    return (mask is None or free.usual(mask)) and by_each_thread(site)


def _index(site: Site, buffer: str) -> Expr | None:
    """The index of an access to a buffer of one axis and no stages."""
    for _, view in views(site):
        if view.base == buffer and view.stage is None and len(view.offsets) == 1:
            return view.offsets[0]
    return None


RULE = rule(
    code="CK355",
    name="data-index-unsynced",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
