"""Runner factories by name. They are looked up in the child process only.

A package that can build candidates registers its factory when it is imported; the judge's
caller names the modules to import (``Evaluation.plugins``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from cake.judge.candidate import Runner, RunnerFactory

_FACTORIES: dict[str, RunnerFactory] = {}


class UnknownRunnerError(LookupError):
    """No factory is registered under that name."""


def register(name: str) -> Callable[[RunnerFactory], RunnerFactory]:
    """Decorate a factory to make it known as ``name``. Raises ``ValueError`` if it is taken."""

    def add(factory: RunnerFactory) -> RunnerFactory:
        if name in _FACTORIES:
            raise ValueError(f"the runner `{name}` is registered already")
        _FACTORIES[name] = factory
        return factory

    return add


def reset_of(runner: Runner) -> Callable[[], object]:
    """What clears the memory that the runner keeps; nothing for one that keeps none."""
    reset: Callable[[], object] = getattr(runner, "reset", _nothing)
    return reset


def bind_of(runner: Runner) -> Callable[[Mapping[str, Any]], Callable[[], object]]:
    """What makes the call that is timed out of tensors: the runner's own ``bind``, where it has
    work that is done once for the same tensors, else its ``run`` on them."""

    def run(tensors: Mapping[str, Any]) -> Callable[[], object]:
        return lambda: runner.run(tensors)

    bind: Callable[[Mapping[str, Any]], Callable[[], object]] = getattr(runner, "bind", run)
    return bind


def _nothing() -> None:
    """Nothing to clear."""


def load_plugins(modules: Iterable[str]) -> None:
    """Import ``modules``, so that they register their factories."""
    for module in modules:
        import_module(module)


def find(name: str) -> RunnerFactory:
    """The factory called ``name``; raises :class:`UnknownRunnerError`."""
    if name not in _FACTORIES:
        known = ", ".join(sorted(_FACTORIES)) or "none"
        raise UnknownRunnerError(f"no runner is called `{name}`; registered are {known}")
    return _FACTORIES[name]
