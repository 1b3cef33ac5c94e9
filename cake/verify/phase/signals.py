"""Events of rings, mbarriers and hardware barriers.

Waits and arrivals belong to every warp of a unit, announcements of bytes to the thread that issues.
The figures of rings are those that emitter and simulator take: :func:`cake.ops.rings.ring_facts`.
"""

from __future__ import annotations

from cake.diag import Span
from cake.ir.nodes import Bracket, Call
from cake.ir.program import PAIR, Pipeline, Program
from cake.ops import pairs
from cake.ops.base import SyncEffect, operand, static
from cake.ops.ring_fills import Fill
from cake.verify.phase import events as ev
from cake.verify.phase.events import BarrierKind
from cake.verify.phase.outline import Act
from cake.verify.phase.scalars import Compiler
from cake.verify.phase.unit import WARP, Beyond, NoSlot, Unit, known, reference
from cake.verify.phase.wiring import Wiring


class Signals:
    """Lists the events by which units signal each other."""

    def __init__(self, program: Program, compiler: Compiler, wiring: Wiring) -> None:
        self.program = program
        self.compiler = compiler
        self.wiring = wiring

    # -- rings -------------------------------------------------------------------------------------

    def acquire(self, unit: Unit, ring: str, site: Call | Bracket) -> int:
        """Wait for a free slot, announce the bytes of the fill; returns the stage."""
        fill = self._fill(ring, site)
        if fill.bytes is None:
            raise Beyond(f"the bytes of a fill of ring {ring}: {fill.why}")
        stage, parity = self._step(unit, ring, "fill")
        unit.all(ev.Wait(site.loc, self.ring("empty", ring, stage, unit.rank), parity ^ 1))
        full = self.full(ring, stage, unit.rank)
        if fill.bytes:
            unit.one(ev.Expect(site.loc, full, fill.bytes))
        if fill.early:
            _arrive(unit, site.loc, full)
        return stage

    def commit(self, unit: Unit, ring: str, stage: int, site: Call | Bracket) -> None:
        """End a fill."""
        facts = self.wiring.rings[ring]
        fill = self._fill(ring, site)
        if fill.early:
            return
        full = self.full(ring, stage, unit.rank)
        if facts.arrival == "threads":
            for part, events in zip(unit.parts, unit.lists, strict=True):
                events.append(ev.ArriveWhenDone(site.loc, full, part.threads, "cp_async"))
            return
        if facts.drain:
            unit.all(ev.Drain(site.loc, "cp_async", None))
        if facts.fence:
            unit.all(ev.Fence(site.loc))
        _arrive(unit, site.loc, full)

    def wait(self, unit: Unit, ring: str, place: Span) -> int:
        """Wait for a full slot; returns the stage. In a pair only the leader waits."""
        stage, parity = self._step(unit, ring, "use")
        if self._leads(unit, ring):
            unit.all(ev.Wait(place, self.ring("full", ring, stage, unit.rank), parity))
        return stage

    def release(self, unit: Unit, ring: str, stage: int, place: Span) -> None:
        """Hand a slot back, to every CTA of the cluster if the ring is theirs together."""
        if not self._leads(unit, ring):
            return
        for rank in self.wiring.ranks if self._pipeline(ring).clustered else (unit.rank,):
            _arrive(unit, place, self.ring("empty", ring, stage, rank))

    def _pipeline(self, ring: str) -> Pipeline:
        declared = self.program.resource(ring)
        assert isinstance(declared, Pipeline)
        return declared

    def _leads(self, unit: Unit, ring: str) -> bool:
        """Whether this CTA uses the ring itself, not the other one of a pair for it."""
        return not self._pipeline(ring).pair or unit.rank == pairs.LEADER

    def full(self, ring: str, stage: int, rank: int) -> int:
        """The number of the full barrier that counts the fills of CTA ``rank``."""
        home = pairs.home(self._pipeline(ring))
        return self.ring("full", ring, stage, rank if home is None else home)

    def ring(self, side: BarrierKind, ring: str, stage: int, rank: int) -> int:
        """The number of a ring's barrier."""
        number = self.wiring.number(side, ring, stage, rank)
        if number is None:
            raise Beyond(f"slot {stage} of ring {ring}")
        return number

    def _fill(self, ring: str, site: Call | Bracket) -> Fill:
        facts = self.wiring.rings[ring]
        try:
            if isinstance(site, Call) and site.op == "commit":
                return facts.fill_ended_by(site)
            return facts.fill(site)
        except KeyError:
            raise Beyond(f"a fill of ring {ring} in line {site.loc.line}") from None

    def _step(self, unit: Unit, ring: str, side: str) -> tuple[int, int]:
        step = unit.steps.get((ring, side), 0)
        unit.steps[ring, side] = step + 1
        stages = self.wiring.rings[ring].stages
        return step % stages, step // stages % 2

    # -- mbarriers ---------------------------------------------------------------------------------

    def slot(self, unit: Unit, call: Call) -> int:
        """The slot that a call's second operand means."""
        e = call.args[1]
        return 0 if e is None else known(self.compiler, unit, e, f"the slot of {call.op}")

    def mbarrier(self, unit: Unit, call: Call, name: str, slot: int, rank: int) -> int:
        """The number of a raw mbarrier of a CTA."""
        number = self.wiring.number("mbarrier", name, slot, rank)
        if number is None:
            raise NoSlot(unit, call.loc, name, slot)
        return number

    def arrive(self, unit: Unit, act: Act) -> None:
        """``arrive``, here or at a peer's barrier."""
        peer, call = operand(act.call, "peer"), act.call
        rank = unit.rank if peer is None else known(self.compiler, unit, peer, "the peer")
        if rank not in self.wiring.ranks:
            return  # A CTA without a tile waits for nothing.
        barrier = self.mbarrier(unit, call, reference(call), self.slot(unit, call), rank)
        _arrive(unit, call.loc, barrier, int(static(call, "count")))

    def expect(self, unit: Unit, act: Act) -> None:
        """``expect_tx``."""
        call = act.call
        barrier = self.mbarrier(unit, call, reference(call), self.slot(unit, call), unit.rank)
        unit.one(ev.Expect(act.call.loc, barrier, int(static(act.call, "bytes"))))

    def barrier_wait(self, unit: Unit, act: Act) -> None:
        """``barrier_wait``."""
        call = act.call
        barrier = self.mbarrier(unit, call, reference(call), self.slot(unit, call), unit.rank)
        parity = act.call.args[2]
        assert parity is not None
        bit = known(self.compiler, unit, parity, "the parity") & 1
        unit.all(ev.Wait(act.call.loc, barrier, bit))

    def tcgen05_commit(self, unit: Unit, act: Act) -> None:
        """``tcgen05_commit``, to a ring's slot or to an mbarrier; in both CTAs of a pair."""
        slot, name = self.slot(unit, act.call), reference(act.call)
        for rank in product_ranks(self.program, unit):
            if SyncEffect("arrive", "pipeline") in act.effects:
                barrier = self.ring("empty", name, slot, rank)
            else:
                barrier = self.mbarrier(unit, act.call, name, slot, rank)
            unit.one(ev.ArriveWhenDone(act.call.loc, barrier, 1, "tcgen05"))

    # -- hardware barriers -------------------------------------------------------------------------

    def hardware(self, unit: Unit, call: Call, effect: SyncEffect) -> None:
        """Arrive at a hardware barrier, wait for it, or both."""
        barrier = self._hardware(unit, call, effect.what)
        if barrier is None:
            return
        if effect.action != "wait":
            for part, events in zip(unit.parts, unit.lists, strict=True):
                events.append(ev.Meet(call.loc, barrier, part.threads))
        if effect.action != "arrive":
            unit.all(ev.Await(call.loc, barrier))

    def _hardware(self, unit: Unit, call: Call, what: str) -> int | None:
        """The barrier that is meant; None for the meeting of a single warp with itself."""
        if what == "cluster":
            return self.wiring.cluster()
        name, slot = what, -1
        if what == "unit":
            if len(unit.parts) == 1:
                return None
            name, slot = f"unit {unit.role}", unit.index
        elif what == "role":
            name = f"role {unit.role}"
        elif what == "named":
            name, slot = reference(call), self.slot(unit, call)
        elif what != "cta":
            raise Beyond(f"{call.op}: a barrier of {what}")
        number = self.wiring.number("hardware", name, slot, unit.rank)
        if number is None:
            raise NoSlot(unit, call.loc, name, slot)
        return number


def product_ranks(program: Program, unit: Unit) -> tuple[int, ...]:
    """The CTAs that take part in a product which this unit's warp issues; none if it issues none.

    The leader of a pair issues for both.
    """
    if pairs.group(program) == 1:
        return (unit.rank,)
    return tuple(range(PAIR)) if unit.rank == pairs.LEADER else ()


def _arrive(unit: Unit, place: Span, barrier: int, count: int = 1) -> None:
    """Every warp of a unit arrives."""
    for part, events in zip(unit.parts, unit.lists, strict=True):
        events.append(ev.Arrive(place, barrier, count * (part.threads // WARP)))
