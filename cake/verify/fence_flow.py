"""Fences of tcgen05 work: which loads a signal may overtake, and which work a wait may not hold.

Tensor memory has an order of its own. A thread's loads come before a signal that it gives only
behind `tcgen05.fence::before_thread_sync`, and its work after a wait only behind
`tcgen05.fence::after_thread_sync`. `tcgen05.commit` includes the former. (PTX ISA, "tcgen05
Memory Consistency Model Canonical Patterns".)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cake.ir.nodes import Bracket, Call, RoleBody, Stmt
from cake.ops.base import SyncEffect
from cake.verify.channels import Channel, enters, leaves, signals
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.meetings import REACHES, Visits, meetings
from cake.verify.memory_items import per_call
from cake.verify.sites import Site
from cake.verify.tensor_memory import Deed, all_deeds, deeds

Place = Call | Bracket


@dataclass(frozen=True, slots=True)
class End:
    """One end of a channel: a place of a role that signals or waits."""

    role: str
    place: Place
    channel: Channel


@dataclass(frozen=True, slots=True)
class Work:
    """An earlier deed, as a later signal finds it: ``complete``, then ``fenced``, and ``told``
    through a barrier that every role takes part in."""

    deed: Deed
    complete: bool = False
    fenced: bool = False
    told: bool = False


@dataclass(slots=True)
class Order:
    """Work so far, waits so far, and those of them that no fence has followed."""

    work: frozenset[Work] = frozenset()
    waits: frozenset[End] = frozenset()
    open: frozenset[End] = frozenset()

    def copy(self) -> Order:
        return replace(self)

    def join(self, other: Order) -> None:
        self.work |= other.work
        self.waits |= other.waits
        self.open |= other.open


@dataclass(slots=True)
class Facts:
    """``given``: what may precede each signal. ``taken``, ``unfenced``: the waits, and those
    without a fence since, that may precede each deed."""

    given: dict[End, frozenset[Work]] = field(default_factory=dict)
    taken: dict[Deed, frozenset[End]] = field(default_factory=dict)
    unfenced: dict[Deed, frozenset[End]] = field(default_factory=dict)


class FenceFlow(Flow[Order]):
    """Follows one role and adds to ``facts``."""

    def __init__(self, ctx: Context, role: RoleBody, facts: Facts) -> None:
        super().__init__(ctx.integers)
        self.facts = facts
        self._role = role.role
        self._sites = ctx.sites_of(role)
        self._of_stmt = per_call(self._sites)
        self.run(role.body, Order())

    def statement(self, s: Stmt, state: Order) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self._sites[i]
            if SyncEffect("drain", "tcgen05") in site.effects:
                state.work = frozenset(replace(w, complete=True) for w in state.work)
            if SyncEffect("fence", "tcgen05") in site.effects:
                _fence(site, state)
            for deed in deeds(site):
                self._deed(deed, state)
            for signal in signals(site):
                if signal.gives:
                    self._give(End(self._role, site.call, signal.channel), state, signal.engine)
                if signal.takes:
                    self._take(End(self._role, site.call, signal.channel), state)

    def enter_bracket(self, s: Bracket, state: Order) -> None:
        self._take(End(self._role, s, enters(s)), state)

    def leave_bracket(self, s: Bracket, state: Order) -> None:
        self._give(End(self._role, s, leaves(s)), state, False)

    def _deed(self, deed: Deed, state: Order) -> None:
        for known, now in ((self.facts.taken, state.waits), (self.facts.unfenced, state.open)):
            known[deed] = known.get(deed, frozenset()) | now
        if deed.uses:
            # What an engine does is complete, and ordered, where its commit arrives.
            work = Work(deed, complete=deed.action == "product", fenced=deed.action == "product")
            state.work = frozenset(w for w in state.work if w.deed != deed) | {work}

    def _give(self, end: End, state: Order, engine: bool) -> None:
        if engine:
            state.work = frozenset(replace(w, fenced=True) for w in state.work)
        fresh = frozenset(w for w in state.work if not w.told)
        self.facts.given[end] = self.facts.given.get(end, frozenset()) | fresh
        if end.channel.kind in REACHES:
            state.work = frozenset(replace(w, told=True) for w in state.work)

    def _take(self, end: End, state: Order) -> None:
        state.waits |= {end}
        state.open |= {end}


def _fence(site: Site, state: Order) -> None:
    """Both fences have one effect; their names tell them apart."""
    if site.call.op == "tcgen05_fence_before":
        state.work = frozenset(replace(w, fenced=w.fenced or w.complete) for w in state.work)
    else:
        state.open = frozenset()


@dataclass(frozen=True, slots=True)
class Handover:
    """``work`` of one role, the signal behind it, the wait of another role, and its ``deed``."""

    work: Work
    signal: End
    wait: End
    deed: Deed


def handovers(ctx: Context, *, fenced: bool) -> Iterator[Handover]:
    """Work on tiles that one role does after another, by way of a signal without a fence: behind
    the earlier work, or (``fenced``) before the later."""
    if not all_deeds(ctx):
        return
    facts, before = Facts(), meetings(ctx)
    for role in ctx.program.roles:
        FenceFlow(ctx, role, facts)
    for deed, waits in (facts.unfenced if fenced else facts.taken).items():
        for wait in waits:
            for signal, works in facts.given.items():
                if signal.role == wait.role or not _meet(signal, wait, before):
                    continue
                for work in works:
                    if work.deed.tiles == deed.tiles and (fenced or not work.fenced):
                        yield Handover(work, signal, wait, deed)


def _meet(signal: End, wait: End, before: dict[int, Visits]) -> bool:
    kind = signal.channel.kind
    if not signal.channel.meets(wait.channel):
        return False
    return kind not in REACHES or before[id(signal.place)].may_meet(before[id(wait.place)], kind)
