"""What the memory flow remembers of an access, and when a later one endangers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from cake.ir.nodes import Call, Expr, Stmt, View
from cake.ir.types import ColVector, Fragment, RowVector, Scalar
from cake.ops.base import Access, Completion, SyncEffect
from cake.verify.integers import Integers
from cake.verify.regions import Region, SlotId
from cake.verify.sites import Site, varying_condition

UNIT, SOME, ROLE = 1, 2, 3
"""Reach of a barrier: the threads of a unit, units that are not told here, or all of the role."""
OLDEST = 9
"""Groups and slots older than this are not told apart."""

HazardKind = Literal[
    "read-in-flight",
    "read-unsynced",
    "write-in-flight",
    "write-unsynced",
    "unfenced",
    "fenced-late",
    "release-in-flight",
    "release-unfenced",
    "use-after-release",
    "register-in-flight",
    "register-lost",
    "store-left",
    "never-fenced",
    "units-collide",
]


@dataclass(frozen=True, slots=True)
class Hazard:
    """A later statement meets an earlier access that is not settled.

    ``at`` is the later place, ``site`` the earlier access, ``subject`` the buffer, variable or
    ring. ``certain`` is False where the two may not touch the same bytes. ``units``: different
    units collide, not threads of one. ``age``: groups committed since the access (0: its own group
    is still open). ``completes`` and ``action`` are those of the earlier access.
    """

    kind: HazardKind
    at: Call | Stmt
    site: Site | None
    subject: str
    certain: bool = True
    units: bool = False
    age: int = 0
    completes: Completion = "now"
    action: Literal["read", "write", "atomic"] = "write"


@dataclass(frozen=True, slots=True)
class Item:
    """An access to shared memory that is not settled yet.

    ``each``: every thread accesses elements of its own choice, not all threads a tile together;
    ``own`` is then a key, and two accesses of one key meet only in one thread. ``masked``: not
    every thread takes part. ``synced`` is the reach of the widest barrier since the access was
    complete, ``ordered`` since it was also fenced for the async proxy.
    """

    index: int
    action: Literal["read", "write", "atomic"]
    proxy: str
    completes: Completion
    region: Region
    own: tuple[str, ...] | None
    each: bool
    masked: bool
    drained: bool
    age: int = 0
    fenced: bool = False
    synced: int = 0
    ordered: int = 0

    def older(self, group: str) -> Item:
        """After a commit of ``group``."""
        if self.drained or self.completes != group:
            return self
        return replace(self, age=min(self.age + 1, OLDEST))

    def after_drain(self, group: str, pending: int) -> Item:
        """After a wait that leaves ``pending`` groups; an open group is not waited for."""
        done = self.completes == group and self.age > pending
        return replace(self, drained=True) if done else self

    def after_barrier(self, reach: int) -> Item:
        """After a barrier of that reach."""
        if not self.drained:
            return self
        ordered = max(self.ordered, reach) if self.fenced else self.ordered
        if (ordered, max(self.synced, reach)) == (self.ordered, self.synced):
            return self
        return replace(self, synced=max(self.synced, reach), ordered=ordered)

    def settled(self, reach: int, asynchronous: frozenset[str]) -> bool:
        """Whether nothing later can collide with the access, all units having passed a barrier."""
        if not self.drained or self.synced < reach:
            return False
        plain = self.proxy == "async" or self.region.buffer not in asynchronous
        return plain or self.ordered >= reach


@dataclass(slots=True)
class Memory:
    """What may be unsettled at a point of a role, which slots its variables hold, and which of
    those have been handed back."""

    items: set[Item] = field(default_factory=set)
    slots: dict[str, frozenset[SlotId]] = field(default_factory=dict)
    released: set[SlotId] = field(default_factory=set)

    def copy(self) -> Memory:
        return Memory(set(self.items), dict(self.slots), set(self.released))

    def join(self, other: Memory) -> None:
        # A slot that no variable of its path holds any more may mean another one on the other path.
        self.released = self._alive() | other._alive()
        self.items |= other.items
        for name, ids in other.slots.items():
            self.slots[name] = self.slots.get(name, frozenset()) | ids

    def _alive(self) -> set[SlotId]:
        """Slots that were handed back and that some variable still holds."""
        return {slot for ids in self.slots.values() for slot in ids} & self.released


def danger(old: Item, new: Item, reach: int) -> HazardKind | None:
    """What is wrong if ``new`` touches the bytes of ``old``; one of them writes.

    ``reach`` is what a barrier between them must have.
    """
    if old.action == "atomic" and new.action == "atomic":
        return None
    if not old.drained:
        return "write-in-flight" if new.action != "read" else "read-in-flight"
    if new.proxy == "async" and old.proxy == "generic":
        if new.action != "read":
            return None if old.synced >= reach else "write-unsynced"
        if not old.fenced:
            return "unfenced"
        return None if old.ordered >= reach else "fenced-late"
    if old.synced >= reach:
        return None
    return "write-unsynced" if new.action != "read" else "read-unsynced"


def views(site: Site) -> Iterator[tuple[Access, View]]:
    """The shared-memory accesses of a call in this CTA."""
    for effect in site.effects:
        view = local_view(site, effect)
        if isinstance(effect, Access) and view is not None:
            yield effect, view


def local_view(site: Site, effect: Access | SyncEffect) -> View | None:
    """The view of this CTA's shared memory that an effect accesses, if it does."""
    if not isinstance(effect, Access) or effect.space != "smem":
        return None
    names = [p.name for p in site.primitive.params]
    if "peer" in names and site.call.args[names.index("peer")] is not None:
        return None
    view = site.call.args[effect.operand]
    return view if isinstance(view, View) else None


def by_each_thread(site: Site) -> bool:
    """Whether every thread accesses elements of its own choice, not all threads a tile together."""
    operands = (site.call, *(a for a in site.call.args if a is not None))
    shared = any(isinstance(e.type, Fragment | RowVector | ColVector) for e in operands)
    return not site.primitive.convergent and not shared


def is_masked(site: Site) -> bool:
    """Whether some threads of the unit may not take part in an access."""
    names = [p.name for p in site.primitive.params]
    mask = site.call.args[names.index("mask")] if "mask" in names else None
    return mask is not None or varying_condition(site.around) is not None


def own_key(site: Site, view: View, integers: Integers) -> tuple[str, ...] | None:
    """Key of the elements that a thread accesses for itself; None if threads share them."""
    varying = any(_varying(e) for e in view.offsets)
    if not by_each_thread(site) or (not varying and is_masked(site)):
        return None
    stage = () if view.stage is None else (view.stage,)
    return tuple(str(integers.poly(e) or integers.text(e)) for e in (*stage, *view.offsets))


def _varying(e: Expr) -> bool:
    return isinstance(e.type, Scalar) and e.type.varying


def per_call(sites: tuple[Site, ...]) -> dict[int, list[int]]:
    """Numbers of the sites of each statement, by the statement's identity."""
    found: dict[int, list[int]] = {}
    for i, site in enumerate(sites):
        found.setdefault(id(site.stmt), []).append(i)
    return found
