"""Compilation targets: one file of facts per architecture.

>>> from cake.targets import get
>>> get("sm_90a").smem_per_cta
232448
>>> str(get("sm_90a").source("named_barriers"))
'PTX ISA 9.0, barrier (manual)'
"""

from __future__ import annotations

from difflib import get_close_matches

from cake.targets import sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_120a
from cake.targets.cited import Source
from cake.targets.model import Target

__all__ = ["Source", "Target", "UnknownTarget", "get", "names"]

_TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET
    for module in (sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_103a, sm_120a)
}


class UnknownTarget(ValueError):
    """No such target; ``name`` is what was asked for, ``known`` what there is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = names()
        close = get_close_matches(name, self.known, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        super().__init__(f"unknown target {name!r}{hint}; known targets: {', '.join(self.known)}")


def names() -> tuple[str, ...]:
    """The names of all targets, by architecture."""
    return tuple(_TARGETS)


def get(name: str) -> Target:
    """The target of that exact name.

    Targets are exact: ``sm_90`` is not ``sm_90a``. Raises ``UnknownTarget``.
    """
    try:
        return _TARGETS[name]
    except KeyError:
        raise UnknownTarget(name) from None
