"""How many slots of a ring a role surely holds at a point of its body."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake.ir.nodes import Bracket, Call, ResourceRef, RoleBody, Stmt, walk_exprs
from cake.ops.rings import ring_step
from cake.verify.flow import Flow
from cake.verify.integers import Integers

_TAKES = frozenset({"acquire", "wait"})


@dataclass(slots=True)
class Slots:
    """At least so many slots of each ring are held. Paths that join keep the smaller number."""

    held: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Slots:
        return Slots(dict(self.held))

    def join(self, other: Slots) -> None:
        self.held = {
            ring: min(n, other.held.get(ring, 0))
            for ring, n in self.held.items()
            if other.held.get(ring, 0)
        }


class RingFlow(Flow[Slots]):
    """``before`` maps a ring and each place that takes a slot to the slots held already there.

    Rounds of a loop lower the numbers, so the last one counts.
    """

    def __init__(self, integers: Integers, role: RoleBody) -> None:
        super().__init__(integers)
        self.role = role
        self.before: dict[tuple[str, Stmt | Call], int] = {}

    def follow(self) -> dict[tuple[str, Stmt | Call], int]:
        """Run the role from start to end."""
        self.run(self.role.body, Slots())
        return self.before

    def statement(self, s: Stmt, state: Slots) -> None:
        for ring, call in _ring_calls(s):
            if call.op in _TAKES:
                self._take(ring, call, state)
            else:
                self._give(ring, state)

    def enter_bracket(self, s: Bracket, state: Slots) -> None:
        self._take(s.pipeline, s, state)

    def leave_bracket(self, s: Bracket, state: Slots) -> None:
        self._give(s.pipeline, state)

    def _take(self, ring: str, place: Stmt | Call, state: Slots) -> None:
        held = state.held.get(ring, 0)
        self.before[ring, place] = held
        state.held[ring] = held + 1

    def _give(self, ring: str, state: Slots) -> None:
        state.held[ring] = max(0, state.held.get(ring, 0) - 1)


def _ring_calls(s: Stmt) -> Iterator[tuple[str, Call]]:
    for e in reversed(tuple(walk_exprs(s))):
        if isinstance(e, Call) and ring_step(e) is not None:
            ref = e.args[0]
            if isinstance(ref, ResourceRef):
                yield ref.name, e
