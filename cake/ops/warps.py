"""Which warps play which role, and what setmaxnreg does to them.

Warpgroup roles come first, so that each starts on a multiple of four warps. Roles of single warps
follow in declared order. setmaxnreg acts on whole warpgroups: as soon as one role has a register
budget, warps of equal budget share warpgroups of their own, filled up with idle warps.
(PTX ISA, "setmaxnreg", "wgmma.mma_async".)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cake.ir.program import LaunchOptions, Program, Role
from cake.ir.types import WARP
from cake.targets import get

REGISTERS_PER_THREAD_UNIT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePlace:
    """A role on warps [first, first + role.warps) of the CTA."""

    role: Role
    first: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpGroupPlan:
    """Consecutive warps with one register budget: [first, first + warps), idle ones included."""

    first: int
    warps: int
    regs: int | None
    places: tuple[RolePlace, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpPlan:
    """The warps of a CTA.

    ``entry_regs``: registers a thread starts with when the kernel is bounded to ``threads`` and
    ``min_blocks``, which setmaxnreg redistributes.
    """

    groups: tuple[WarpGroupPlan, ...]
    threads: int
    min_blocks: int
    entry_regs: int

    def place(self, role: str) -> RolePlace:
        """Where a role runs (KeyError if there is no such role)."""
        for group in self.groups:
            for place in group.places:
                if place.role.name == role:
                    return place
        raise KeyError(role)


def _groups(program: Program) -> list[WarpGroupPlan]:
    roles = program.role_decls()
    budgets = any(r.regs is not None for r in roles)
    groups: list[WarpGroupPlan] = []
    end = 0
    for role in (r for r in roles if r.warpgroup):
        place = RolePlace(role=role, first=end)
        groups.append(WarpGroupPlan(first=end, warps=role.warps, regs=role.regs, places=(place,)))
        end += role.warps
    shared: dict[int | None, list[Role]] = {}
    for role in (r for r in roles if not r.warpgroup):
        shared.setdefault(role.regs, []).append(role)
    for regs, members in shared.items():
        first, places = end, []
        for role in members:
            places.append(RolePlace(role=role, first=end))
            end += role.warps
        if budgets:
            end = -(-end // 4) * 4
        groups.append(
            WarpGroupPlan(first=first, warps=end - first, regs=regs, places=tuple(places))
        )
    return groups


@lru_cache(maxsize=256)
def warp_plan(program: Program) -> WarpPlan:
    """Lay the roles of a program over warps."""
    groups = _groups(program)
    threads = WARP * sum(g.warps for g in groups)
    min_blocks = next((o.min_blocks for o in program.find(LaunchOptions)), 1)
    target = get(program.target)
    share = target.registers_per_sm // max(1, threads * min_blocks)
    entry = min(target.registers_per_thread_max + 1, share) // REGISTERS_PER_THREAD_UNIT
    return WarpPlan(
        groups=tuple(groups),
        threads=threads,
        min_blocks=min_blocks,
        entry_regs=entry * REGISTERS_PER_THREAD_UNIT,
    )
