"""Through what roles tell each other that they have come to a place: barriers and rings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake.ir.nodes import Bracket, Call, Expr, ResourceRef
from cake.ops.base import SyncEffect
from cake.ops.rings import ring_step
from cake.verify.conditions import constant
from cake.verify.sites import Site

_HARDWARE = frozenset({"cta", "cluster"})
_NAMED = frozenset({"named", "mbarrier"})
_RING = {
    "acquire": ("empty", False),
    "commit": ("full", True),
    "wait": ("full", False),
    "release": ("empty", True),
}


@dataclass(frozen=True, slots=True)
class Channel:
    """``kind`` is "cta", "cluster", "named", "mbarrier", or the side of a ring, "full" or "empty".

    ``slot`` is None if it is computed, and for rings.
    """

    kind: str
    name: str = ""
    slot: int | None = None

    def meets(self, other: Channel) -> bool:
        """Whether a signal through one may be awaited through the other."""
        same = self.kind == other.kind and self.name == other.name
        return same and (None in (self.slot, other.slot) or self.slot == other.slot)


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal is given, awaited, or both. ``engine``: an engine gives it for the thread."""

    channel: Channel
    gives: bool
    takes: bool
    engine: bool = False


def signals(site: Site) -> Iterator[Signal]:
    """What a call signals to other roles, or waits for."""
    call = site.call
    name, engine = _name(call), SyncEffect("commit", "tcgen05") in site.effects
    step = ring_step(call)
    if step is not None:
        side, gives = _RING[step]
        yield Signal(Channel(side, name), gives, not gives, engine)
        return
    for effect in site.effects:
        if not isinstance(effect, SyncEffect) or effect.what not in _HARDWARE | _NAMED:
            continue
        channel = Channel(effect.what)
        if effect.what in _NAMED:
            channel = Channel(effect.what, name, constant(_slot(call)))
        yield Signal(channel, effect.action != "wait", effect.action != "arrive", engine)


def enters(s: Bracket) -> Channel:
    """What a bracket waits for at its beginning."""
    return Channel("empty" if s.side == "fill" else "full", s.pipeline)


def leaves(s: Bracket) -> Channel:
    """What a bracket signals at its end."""
    return Channel("full" if s.side == "fill" else "empty", s.pipeline)


def _name(call: Call) -> str:
    ref = call.args[0] if call.args else None
    return ref.name if isinstance(ref, ResourceRef) else ""


def _slot(call: Call) -> Expr | None:
    return call.args[1] if len(call.args) > 1 else None
