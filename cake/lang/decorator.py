"""``@cake.schedule`` and ``@cake.inline`` on functions of a normal Python module."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from cake.diag import CakeError
from cake.ir.program import Program
from cake.lang.elaborate import Parsed, parse


class Schedule:
    """A schedule taken from a function's source; the function is never called.

    Helpers marked ``@cake.inline`` and constants must stand in the same module: the whole module's
    source is parsed, and the schedule is chosen by name.
    """

    def __init__(self, function: Callable[..., Any], target: str) -> None:
        self.name = function.__name__
        self.target = target
        self.__doc__ = function.__doc__
        self.file = inspect.getsourcefile(function) or "<text>"
        self._lines, self._first = inspect.getsourcelines(function)
        self._module = sys.modules.get(function.__module__)

    def parse(self, meta: Mapping[str, Any] | None = None) -> Parsed:
        """Elaborate with the given meta parameters."""
        import textwrap

        text = self._helpers() + textwrap.dedent("".join(self._lines))
        offset = self._first - 1 - self._helpers().count("\n")
        return parse(text, self.file, meta=meta, line_offset=offset)

    def program(self, **meta: Any) -> Program:
        """The typed program; raises CakeError with every diagnostic if there are errors."""
        parsed = self.parse(meta)
        if not parsed.ok:
            raise CakeError(parsed.diagnostics)
        return parsed.program(self.name)

    def _helpers(self) -> str:
        """Source of the module's inline helpers, in front of the schedule."""
        found = (
            value.source
            for value in vars(self._module or object).values()
            if isinstance(value, Inline)
        )
        return "".join(found)


class Inline:
    """A helper that schedules expand at their calls; never called itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        import textwrap

        self.name = function.__name__
        self.source = textwrap.dedent(inspect.getsource(function))


def schedule(*, target: str) -> Callable[[Callable[..., Any]], Schedule]:
    """Mark a function as a schedule for ``target``; its source is parsed, never executed."""
    return lambda function: Schedule(function, target)


def inline(function: Callable[..., Any]) -> Inline:
    """Mark a function as a helper that schedules expand at their calls."""
    return Inline(function)
