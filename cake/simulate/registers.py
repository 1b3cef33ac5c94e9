"""What the register arrays of a unit hold: data, nothing yet, or what an instruction owns."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.diag import Related, Span
from cake.simulate.codes import IN_FLIGHT, UNWRITTEN_REGISTER
from cake.simulate.engine import Operation
from cake.simulate.errors import Finding


class RegisterState:
    """Arrays are told apart by identity, because ``lanes`` gives one array two names.

    Every entry holds its array, so that an identity is not used again while it is here.
    """

    def __init__(self) -> None:
        self._unwritten: dict[int, tuple[Any, Any, Span | None]] = {}
        self._owned: dict[int, tuple[Any, list[Operation]]] = {}
        self._lent: dict[int, tuple[Any, list[Operation]]] = {}

    @property
    def watched(self) -> bool:
        """Is there an array that is not plain data?"""
        return bool(self._unwritten or self._owned or self._lent)

    def fresh(self, array: Any, place: Span | None = None) -> Any:
        """A new array, made at ``place``, that nothing has been written to."""
        self._unwritten[id(array)] = (array, np.ones(array.shape, np.bool_), place)
        return array

    def own(self, array: Any, op: Operation) -> None:
        """An operation reads and writes the array until it is known to be complete."""
        self._unwritten.pop(id(array), None)
        self._owned.setdefault(id(array), (array, []))[1].append(op)

    def lend(self, array: Any, op: Operation) -> None:
        """An operation reads the array until it is known to be complete."""
        self._lent.setdefault(id(array), (array, []))[1].append(op)

    def check_read(self, name: str, array: Any, where: Any) -> None:
        """A finding if elements ``where`` (an index of the array) hold nothing or are in flight."""
        op = _user(self._owned, array)
        if op is not None:
            raise _in_flight(name, f"is read while {op.kind} owns it", op)
        self.check_written(name, array, where)

    def check_written(self, name: str, array: Any, where: Any) -> None:
        """A finding if elements ``where`` hold nothing."""
        if id(array) in self._unwritten:
            _, nothing, place = self._unwritten[id(array)]
            if np.any(nothing[where]):
                message = f"{name} is read where no register has been written"
                made = Related(span=place, message="made here without a fill") if place else None
                related = () if made is None else (made,)
                raise Finding(UNWRITTEN_REGISTER, message, {"variable": name}, related=related)

    def write(self, name: str, array: Any, where: Any) -> None:
        """Elements ``where`` are written; a finding if an operation uses the array."""
        for table, doing in ((self._owned, "owns"), (self._lent, "reads")):
            op = _user(table, array)
            if op is not None:
                raise _in_flight(name, f"is written while {op.kind} {doing} it", op)
        if id(array) in self._unwritten:
            nothing = self._unwritten[id(array)][1]
            nothing[where] = False
            if not nothing.any():
                del self._unwritten[id(array)]


def _in_flight(name: str, what: str, op: Operation) -> Finding:
    """A finding about a variable that an operation uses, with the place that started it."""
    related: tuple[Related, ...] = ()
    if op.place is not None:
        related = (Related(span=op.place.loc, message=f"{op.kind} is started here"),)
    return Finding(IN_FLIGHT, f"{name} {what}", {"variable": name}, related=related)


def _user(table: dict[int, tuple[Any, list[Operation]]], array: Any) -> Operation | None:
    """An operation in flight that uses the array, if any. Forgets those that have ended."""
    entry = table.get(id(array))
    if entry is None:
        return None
    entry[1][:] = [op for op in entry[1] if not op.known]
    if not entry[1]:
        del table[id(array)]
        return None
    return entry[1][0]
