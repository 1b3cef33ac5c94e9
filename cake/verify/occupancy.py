"""How many CTAs of a kernel an SM has room for, registers aside."""

from __future__ import annotations

from collections.abc import Iterator

from cake.verify.context import Context


def needs(ctx: Context) -> Iterator[tuple[str, int, int]]:
    """What a CTA takes of each resource of an SM, and how much the SM has of it."""
    t = ctx.target
    unit = t.smem_unit
    smem = -(-(ctx.layout.bytes + t.smem_reserved_per_cta) // unit) * unit
    yield "bytes of shared memory", smem, t.smem_per_sm
    yield "warps", ctx.plan.threads // t.warp_size, t.warps_per_sm
    yield "CTAs", 1, t.ctas_per_sm


def most_resident(ctx: Context) -> int:
    """The most CTAs that an SM runs at a time; registers may lower it."""
    return min(limit // wanted for _, wanted, limit in needs(ctx) if wanted)
