"""The runner of Python candidates: a module with a function ``run``.

Named in ``Evaluation.plugins`` as ``cake.judge.python_runner``; its name as a runner is ``python``.
``run`` gets the tensors of the contract by name (numpy arrays on the CPU, torch tensors on a GPU)
and writes the outputs in place; parameters and extents that its signature names are passed too.
The module is executed, so the child that runs it is confined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from cake.judge.candidate import BuildError, Candidate
from cake.judge.runners import register
from cake.workloads import Problem

PLUGIN = __name__
RUNNER = "python"


@register(RUNNER)
class PythonRunner:
    """A module that has been executed once, and its ``run``."""

    def __init__(self, candidate: Candidate, problem: Problem) -> None:
        function = _loaded(candidate)
        numbers: dict[str, Any] = {**problem.dims, **problem.parameters}
        wanted = inspect.signature(function).parameters.values()
        open_ended = any(p.kind is p.VAR_KEYWORD for p in wanted)
        names = {p.name for p in wanted}
        self._run = function
        self._numbers = {n: v for n, v in numbers.items() if open_ended or n in names}
        self._tensors = [
            spec.name for spec in problem.contract.tensors if open_ended or spec.name in names
        ]
        required = {
            p.name
            for p in wanted
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        }
        if unknown := sorted(required - {*self._tensors, *self._numbers}):
            known = ", ".join([*(s.name for s in problem.contract.tensors), *numbers])
            raise BuildError(f"run() asks for {', '.join(unknown)}; it may ask for {known}")

    def run(self, tensors: Mapping[str, Any]) -> None:
        self._run(**{name: tensors[name] for name in self._tensors}, **self._numbers)


def _loaded(candidate: Candidate) -> Callable[..., object]:
    path = candidate.path or f"{candidate.entry}.py"
    module = ModuleType(candidate.entry or "candidate")
    try:
        code = compile(candidate.text, path, "exec")
        exec(code, module.__dict__)
    except Exception as error:
        line = getattr(error, "lineno", None)
        where = path if line is None else f"{path}:{line}"
        raise BuildError(f"{where}: {type(error).__name__}: {error}") from error
    function = getattr(module, "run", None)
    if not callable(function):
        raise BuildError(f"{path} defines no function run(...)")
    found: Callable[..., object] = function
    return found
