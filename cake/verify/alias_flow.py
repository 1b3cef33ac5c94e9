"""Buffers that share bytes of a pool: a read behind a write to the other one."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake.ir.nodes import Assign, Bracket, Call, RoleBody, Stmt
from cake.ir.program import Pipeline
from cake.ir.types import Slot
from cake.ops.base import Access
from cake.verify.flow import Flow
from cake.verify.integers import Integers
from cake.verify.memory_items import local_view, per_call
from cake.verify.sites import Site


@dataclass(slots=True)
class Overwritten:
    """For each buffer, the calls that may have destroyed its content by writing an alias."""

    by: dict[str, frozenset[int]] = field(default_factory=dict)

    def copy(self) -> Overwritten:
        return Overwritten(dict(self.by))

    def join(self, other: Overwritten) -> None:
        for name, sites in other.by.items():
            self.by[name] = self.by.get(name, frozenset()) | sites


class AliasFlow(Flow[Overwritten]):
    """Follows one role. ``aliases`` maps a buffer to those that share bytes with it.

    ``found`` holds pairs: a read of a buffer, and the write that took its place.
    """

    def __init__(
        self,
        integers: Integers,
        role: RoleBody,
        sites: tuple[Site, ...],
        aliases: dict[str, frozenset[str]],
        rings: dict[str, Pipeline],
    ) -> None:
        super().__init__(integers)
        self.role = role
        self.sites = sites
        self.aliases = aliases
        self.rings = rings
        self.found: dict[tuple[Site, Site, str], None] = {}
        self._of_stmt = per_call(sites)

    def follow(self) -> tuple[tuple[Site, Site, str], ...]:
        """(read, write, buffer) of every loss."""
        if self.aliases:
            self.run(self.role.body, Overwritten())
        return tuple(self.found)

    def statement(self, s: Stmt, state: Overwritten) -> None:
        for i in self._of_stmt.get(id(s), ()):
            for effect in self.sites[i].effects:
                view = local_view(self.sites[i], effect)
                if view is not None and isinstance(effect, Access):
                    self._access(i, view.base, effect, state)
        if isinstance(s, Assign) and isinstance(s.value, Call) and s.value.op == "wait":
            assert isinstance(s.value.type, Slot)
            self._filled(s.value.type.pipeline, state)

    def enter_bracket(self, s: Bracket, state: Overwritten) -> None:
        if s.side == "use":
            self._filled(s.pipeline, state)

    def _filled(self, ring: str, state: Overwritten) -> None:
        """A ring delivers new content of its buffers."""
        for buffer in self.rings[ring].buffers:
            state.by.pop(buffer, None)

    def _access(self, i: int, buffer: str, access: Access, state: Overwritten) -> None:
        if access.action != "write":
            for writer in state.by.get(buffer, ()):
                self.found[self.sites[i], self.sites[writer], buffer] = None
        if access.action != "read":
            state.by.pop(buffer, None)
            for other in self.aliases.get(buffer, ()):
                state.by[other] = frozenset({i})
