"""Which warps play which role."""

from __future__ import annotations

from cake.lang.elaborate import parse
from cake.ops.warps import WarpPlan, warp_plan


def plan(*roles: str, options: str = "") -> WarpPlan:
    names = [r.split(" ")[0] for r in roles]
    lines = ['@cake.schedule(target="sm_90a")', 'def k(x: Tensor[f32, "N"]):', *roles, options]
    lines += [line for n in names for line in (f"with {n}:", "    v = lane()")]
    text = "\n".join(line if i < 2 else f"    {line}" for i, line in enumerate(lines))
    return warp_plan(parse(text).program())


def firsts(p: WarpPlan) -> dict[str, int]:
    return {place.role.name: place.first for g in p.groups for place in g.places}


def test_warpgroups_come_first() -> None:
    p = plan("load = role(warps=1)", "math = role(warpgroups=2)", "save = role(warps=2)")
    assert firsts(p) == {"math": 0, "load": 8, "save": 9}
    assert p.threads == 11 * 32
    assert p.place("save").first == 9


def test_register_budgets_take_whole_warpgroups() -> None:
    p = plan(
        "load = role(warps=1, regs=24)",
        "save = role(warps=1, regs=24)",
        "math = role(warpgroups=2, regs=240)",
        "other = role(warps=2, regs=40)",
    )
    assert firsts(p) == {"math": 0, "load": 8, "save": 9, "other": 12}
    assert [(g.first, g.warps, g.regs) for g in p.groups] == [(0, 8, 240), (8, 4, 24), (12, 4, 40)]
    assert p.threads == 512


def test_entry_registers_follow_the_launch_bounds() -> None:
    assert plan("math = role(warpgroups=2)", "load = role(warpgroups=1)").entry_regs == 168
    assert plan("math = role(warpgroups=5)").entry_regs == 96
    assert plan("math = role(warps=4)").entry_regs == 256
    assert plan("math = role(warps=4)", options="launch(min_blocks=4)").entry_regs == 128
