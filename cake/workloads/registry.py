"""The workloads that exist: every package below this one that has a ``contract`` module."""

from __future__ import annotations

import difflib
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path

from cake.workloads.contract import Contract


class UnknownWorkloadError(KeyError):
    """No workload has that name; the message lists those that exist."""

    def __str__(self) -> str:
        return str(self.args[0])


@cache
def names() -> tuple[str, ...]:
    """The names of all workloads, sorted."""
    root = Path(str(files("cake.workloads")))
    return tuple(sorted(path.parent.name for path in root.glob("*/contract.py")))


@cache
def get(name: str) -> Contract:
    """The contract called ``name``. Raises :class:`UnknownWorkloadError`."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        listed = ", ".join(names())
        raise UnknownWorkloadError(f"no workload is called `{name}`{hint} (there are {listed})")
    contract: Contract = import_module(f"cake.workloads.{name}.contract").CONTRACT
    return contract
