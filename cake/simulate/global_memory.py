"""Global tensors of the simulator: bounds, and which elements have been written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cake.ops.findings import CONFLICTING_STORE
from cake.simulate.codes import GLOBAL_BOUNDS, UNINITIALISED
from cake.simulate.errors import Finding


@dataclass(slots=True)
class GlobalTensor:
    """A global tensor: ``array`` of the logical shape (any strides), ``valid`` where written.

    ``valid`` is None for inputs, which are valid everywhere.
    """

    name: str
    array: Any
    valid: Any = None

    @classmethod
    def garbage(cls, name: str, array: Any) -> GlobalTensor:
        """A tensor that holds nothing yet."""
        return cls(name, array, np.zeros(array.shape, np.bool_))

    def read(self, coordinates: Sequence[Any], mask: Any, fill: Any) -> Any:
        """Elements; ``fill`` where masked or outside (None: outside is a finding)."""
        coords, ok = self._chosen(coordinates, mask, clip=fill is not None)
        other = np.asarray(0 if fill is None else fill, self.array.dtype)
        if not ok.any():
            return np.full(ok.shape, other)
        if ok.all():
            self._check_valid(coords, "read")
            return self.array[coords]
        values = np.full(ok.shape, other)
        inside = tuple(c[ok] for c in coords)
        self._check_valid(inside, "read")
        values[ok] = self.array[inside]
        return values

    def write(self, coordinates: Sequence[Any], values: Any, mask: Any, *, clip: bool) -> None:
        """Store elements where ``mask``; outside is dropped if ``clip``, else a finding."""
        coords, ok = self._chosen(coordinates, mask, clip=clip)
        chosen = tuple(c[ok] for c in coords)
        given = np.broadcast_to(values, ok.shape)[ok].astype(self.array.dtype)
        self.array[chosen] = given
        check_stored(self.name, self.array[chosen], given)
        if self.valid is not None:
            self.valid[chosen] = True

    def update(
        self,
        coordinates: Sequence[Any],
        values: Any,
        op: Callable[[Any, Any], Any],
        mask: Any,
        *,
        clip: bool,
    ) -> Any:
        """Atomic read-modify-write in index order; returns the old values."""
        values = np.asarray(values)
        spread = np.broadcast_arrays(*coordinates, values)
        coords, ok = self._chosen(spread[:-1], mask, clip=clip)
        given = np.broadcast_to(values, ok.shape)[ok]
        chosen = tuple(c[ok] for c in coords)
        self._check_valid(chosen, "updated")
        before = np.zeros(given.shape, self.array.dtype)
        for turn in turns(np.ravel_multi_index(chosen, self.array.shape) if ok.any() else ()):
            place = tuple(c[turn] for c in chosen)
            before[turn] = self.array[place]
            self.array[place] = op(before[turn], given[turn])
        old = np.zeros(ok.shape, self.array.dtype)
        old[ok] = before
        return old

    def _chosen(self, coordinates: Sequence[Any], mask: Any, *, clip: bool) -> tuple[Any, Any]:
        """Coordinates of one shape, and which of them are accessed."""
        spread = np.broadcast_arrays(*coordinates, mask)
        coords, want = tuple(spread[:-1]), spread[-1].astype(np.bool_)
        ok = want
        for c, extent in zip(coords, self.array.shape, strict=True):
            ok = ok & (c >= 0) & (c < extent)
        if not clip and (bad := want & ~ok).any():
            self._outside(coords, bad)
        return coords, ok

    def _check_valid(self, coords: Sequence[Any], action: str) -> None:
        if self.valid is None or self.valid[tuple(coords)].all():
            return
        bad = ~self.valid[tuple(coords)]
        first = tuple(int(c[bad][0]) for c in coords)
        finding = Finding(
            UNINITIALISED,
            f"{self.name} is {action} at {first}, where nothing was written",
            {"tensor": self.name, "index": str(first)},
        )
        finding.unwritten = self.name
        finding.arrived = lambda: bool(self.valid[tuple(coords)].all())
        raise finding

    def _outside(self, coords: Sequence[Any], bad: Any) -> NoReturn:
        first = tuple(int(c[bad][0]) for c in coords)
        shape = tuple(self.array.shape)
        raise Finding(
            GLOBAL_BOUNDS,
            f"{self.name} has shape {shape}, accessed at {first}",
            {"tensor": self.name, "index": str(first), "shape": str(shape)},
        )


def check_stored(name: str, stored: Any, given: Any) -> None:
    """A finding if a store did not leave what it gave: then an element was given two values."""
    if stored.tobytes() != given.tobytes():
        raise Finding(
            CONFLICTING_STORE,
            f"one store gives different values to one element of {name}",
            {"memory": name},
        )


def turns(places: Any) -> Iterator[Any]:
    """Indices into ``places`` such that no turn has a place twice and equal places keep their
    order: what a sequence of atomic updates does, several places at a time."""
    places = np.asarray(places)
    by_place = np.argsort(places, kind="stable")
    first = np.flatnonzero(np.diff(places[by_place], prepend=-1))
    # How many equal places come before each.
    before = np.arange(len(by_place)) - np.repeat(first, np.diff([*first, len(by_place)]))
    for turn in range(int(before.max(initial=-1)) + 1):
        yield by_place[before == turn]
