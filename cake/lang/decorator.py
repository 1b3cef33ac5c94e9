"""``@cake.schedule`` and ``@cake.inline`` on functions of a normal Python module."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cake.ir.program import Program
from cake.lang.elaborate import Parsed, parse


class _Source:
    """A function's text and the place it has in its file; the function is never called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.file = inspect.getsourcefile(function) or "<text>"
        lines, self.first_line = inspect.getsourcelines(function)
        self.lines = textwrap.dedent("".join(lines)).splitlines()
        self._function = function

    def globals(self) -> Iterator[tuple[str, Any]]:
        """What the names of the text mean where the function stands."""
        closure = inspect.getclosurevars(self._function).nonlocals
        known = {**self._function.__globals__, **closure}
        for node in ast.walk(ast.parse("\n".join(self.lines))):
            if isinstance(node, ast.Name) and node.id in known:
                yield node.id, known[node.id]


class Inline(_Source):
    """A helper that schedules expand at their calls; never called itself."""


class Schedule(_Source):
    """A schedule taken from a function's source; the function is never called.

    It sees what its module knows when it is parsed: helpers marked ``@cake.inline``, which may be
    imported from other modules, and constants (numbers, texts).
    """

    def __init__(self, function: Callable[..., Any], target: str) -> None:
        super().__init__(function)
        self.target = target

    def parse(self, meta: Mapping[str, Any] | None = None) -> Parsed:
        """Elaborate with the given meta parameters."""
        helpers, constants = self._surroundings()
        return parse(self._text(helpers), self.file, meta=meta, constants=constants)

    def program(self, **meta: Any) -> Program:
        """The typed program; raises CakeError with every diagnostic if there are errors."""
        return self.parse(meta).program(self.name)

    def _surroundings(self) -> tuple[list[Inline], dict[str, Any]]:
        """Helpers and constants that the schedule and its helpers name, however indirectly."""
        helpers: list[Inline] = []
        constants: dict[str, Any] = {}
        pending: list[_Source] = [self]
        while pending:
            for name, value in pending.pop().globals():
                if isinstance(value, Inline) and value not in helpers:
                    helpers.append(value)
                    pending.append(value)
                elif isinstance(value, bool | int | float | str):
                    constants[name] = value
        return helpers, constants

    def _text(self, helpers: list[Inline]) -> str:
        """The schedule and its helpers, each on its own lines of the file, for exact places.

        Helpers of another file stand behind the end.
        """
        here = [h for h in helpers if h.file == self.file]
        end = max(s.first_line + len(s.lines) for s in (self, *here))
        lines = [""] * (end - 1)
        for source in (self, *here):
            start = source.first_line - 1
            lines[start : start + len(source.lines)] = source.lines
        for helper in helpers:
            if helper not in here:
                lines += helper.lines
        return "\n".join(lines) + "\n"


def schedule(*, target: str) -> Callable[[Callable[..., Any]], Schedule]:
    """Mark a function as a schedule for ``target``; its source is parsed, never executed."""
    return lambda function: Schedule(function, target)


def inline(function: Callable[..., Any]) -> Inline:
    """Mark a function as a helper that schedules expand at their calls."""
    return Inline(function)
