"""What the register arrays of a unit hold: data, nothing yet, or what an instruction owns."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.simulate.codes import IN_FLIGHT, UNWRITTEN_REGISTER
from cake.simulate.engine import Operation
from cake.simulate.errors import Finding


class RegisterState:
    """Arrays are told apart by identity, because ``lanes`` gives one array two names.

    Every entry holds its array, so that an identity is not used again while it is here.
    """

    def __init__(self) -> None:
        self._unwritten: dict[int, tuple[Any, Any]] = {}
        self._owned: dict[int, tuple[Any, list[Operation]]] = {}
        self._lent: dict[int, tuple[Any, list[Operation]]] = {}

    @property
    def watched(self) -> bool:
        """Is there an array that is not plain data?"""
        return bool(self._unwritten or self._owned or self._lent)

    def fresh(self, array: Any) -> Any:
        """A new array that nothing has been written to."""
        self._unwritten[id(array)] = (array, np.ones(array.shape, np.bool_))
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
        user = _user(self._owned, array)
        if user is not None:
            raise Finding(IN_FLIGHT, f"{name} is read while {user} owns it", {"variable": name})
        self.check_written(name, array, where)

    def check_written(self, name: str, array: Any, where: Any) -> None:
        """A finding if elements ``where`` hold nothing."""
        if id(array) in self._unwritten:
            nothing = self._unwritten[id(array)][1]
            if np.any(nothing[where]):
                message = f"{name} is read where no register has been written"
                raise Finding(UNWRITTEN_REGISTER, message, {"variable": name})

    def write(self, name: str, array: Any, where: Any) -> None:
        """Elements ``where`` are written; a finding if an operation uses the array."""
        for table, doing in ((self._owned, "owns"), (self._lent, "reads")):
            user = _user(table, array)
            if user is not None:
                message = f"{name} is written while {user} {doing} it"
                raise Finding(IN_FLIGHT, message, {"variable": name})
        if id(array) in self._unwritten:
            nothing = self._unwritten[id(array)][1]
            nothing[where] = False
            if not nothing.any():
                del self._unwritten[id(array)]


def _user(table: dict[int, tuple[Any, list[Operation]]], array: Any) -> str | None:
    """What kind of operation in flight uses the array, if any. Forgets those that have ended."""
    entry = table.get(id(array))
    if entry is None:
        return None
    entry[1][:] = [op for op in entry[1] if not op.known]
    if not entry[1]:
        del table[id(array)]
        return None
    return entry[1][0].kind
