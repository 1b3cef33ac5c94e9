"""What the rules do not follow in a program, whichever rule would be concerned.

Rules themselves say what they could not decide about a place that they looked at
(:class:`cake.verify.rule.Uncovered`). This is about constructs that no rule looks into.
"""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.program import Barrier, Smem
from cake.verify.context import Context
from cake.verify.footprints import footprints
from cake.verify.rule import Uncovered


def uncovered(ctx: Context) -> Iterator[Uncovered]:
    """Everything that stays open, some of it for the phase simulation to decide."""
    yield from _one_role(ctx)
    for what in _between_roles(ctx):
        yield Uncovered(what, decider="L2")
    for tensor in sorted(_read_back(ctx)):
        yield Uncovered(f"whether loads of {tensor} see what other threads store to it")


def _one_role(ctx: Context) -> Iterator[Uncovered]:
    for h in ctx.hazards:
        if not h.certain and h.site is not None:
            lines = f"{h.site.call.loc.line} and {h.at.loc.line}"
            what = f"whether the accesses to {h.subject} in lines {lines} touch the same bytes"
            # The phase simulation tells units apart, and not the threads of a warp.
            yield Uncovered(what, decider="L2" if h.units else None)
    for loop in ctx.unsettled:
        yield Uncovered(f"the loop in line {loop.loc.line}: what it carries round does not settle")


def _between_roles(ctx: Context) -> Iterator[str]:
    for barrier in ctx.program.find(Barrier):
        yield f"the phases of mbarrier {barrier.name}: its protocol is hand-written"
    for buffer in ctx.program.find(Smem):
        roles = ctx.roles_of(buffer.name)
        if len(roles) > 1 and buffer.name not in ctx.owner:
            yield f"the order of accesses to {buffer.name} by roles {', '.join(sorted(roles))}"
    for a, others in ctx.aliases.items():
        for b in sorted(others):
            if a < b and len(ctx.roles_of(a) | ctx.roles_of(b)) > 1:
                yield f"whether {a} and {b}, on the same bytes, are ever needed together"


def _read_back(ctx: Context) -> set[str]:
    """Tensors that a kernel writes and reads at different places."""
    written: dict[str, set[str]] = {}
    for f in footprints(ctx):
        if f.access.action != "read":
            written.setdefault(f.place.tensor, set()).add(ctx.integers.text(f.place))
    return {
        f.place.tensor
        for f in footprints(ctx)
        if f.access.action == "read"
        and f.access.proxy == "generic"
        and written.get(f.place.tensor, set()) - {ctx.integers.text(f.place)}
    }
