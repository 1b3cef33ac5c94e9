"""Which values an index takes in the threads or units that come to an access, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cake.ir.nodes import Call, Expr
from cake.ir.types import WARP
from cake.verify.concrete import evaluate
from cake.verify.conditions import COMPARISONS, conjuncts
from cake.verify.context import Context
from cake.verify.integers import THREAD, unit_key
from cake.verify.poly import Poly
from cake.verify.sites import Site


def reach_of_threads(ctx: Context, site: Site, p: Poly) -> tuple[int, int] | None:
    """The values between which ``p`` runs in the threads for which all conditions hold.

    None if ``p`` or a condition depends on more than the thread, or no thread meets them all.
    """
    facts: list[Poly] = []
    mask = ctx.mask_of(site)
    for cond, holds in (*site.conditions, *(() if mask is None else ((mask, True),))):
        for part in conjuncts(ctx.integers.meanings.get(id(cond), cond)) if holds else (cond,):
            found = ctx.integers.facts(part, holds) if _exact(ctx, part, holds) else []
            if not found:
                return None
            facts += found
    values: list[int] = []
    for threads in _threads(ctx, site):
        tables = [ctx.integers.atoms.evaluate(f, threads) for f in (p, *facts)]
        if any(t is None for t in tables):
            return None
        count = ctx.roles[site.role.role].unit_threads
        index, *kept = (np.broadcast_to(t, count) for t in tables)
        meets = np.logical_and.reduce([k >= 0 for k in kept], axis=0)
        values += index[np.broadcast_to(meets, count)].tolist()
    return (min(values), max(values)) if values else None


def reach_of_units(ctx: Context, site: Site, index: Expr) -> tuple[int, int] | None:
    """The values between which an index runs in the units of a role; None if more decides it."""
    name = site.role.unit
    units = range(ctx.roles[site.role.role].units)
    found = [evaluate(index, {} if name is None else {name: u}) for u in units]
    known = [v for v in found if isinstance(v, int)]
    return (min(known), max(known)) if len(known) == len(found) else None


def _exact(ctx: Context, cond: Expr, holds: bool) -> bool:
    """Whether the facts of a comparison say all that it says."""
    cond = ctx.integers.meanings.get(id(cond), cond)
    compares = isinstance(cond, Call) and cond.op in COMPARISONS
    return compares and (holds or (isinstance(cond, Call) and cond.op != "eq"))


def _threads(ctx: Context, site: Site) -> Iterator[dict[str, Any]]:
    """For each unit of the role, the values of the atoms that tell threads apart."""
    role = ctx.roles[site.role.role]
    index = np.arange(role.unit_threads)
    for unit in range(role.units):
        yield {
            f"{THREAD}lane{WARP}": index % WARP,
            f"{THREAD}warp{role.unit_threads // WARP}": index // WARP,
            f"{THREAD}thread{role.unit_threads}": index,
            unit_key(role.name): np.full_like(index, unit),
        }
