"""Every class of the self-test: the modules of this package that define one."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from cake.judge.selftest.twins import IntegrityClass

_OTHERS = frozenset({"__init__", "catalogue", "sources", "twins"})


@cache
def classes() -> tuple[IntegrityClass, ...]:
    """All classes, those without a GPU first, by name."""
    stems = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    found = [
        import_module(f"cake.judge.selftest.{stem}").CLASS for stem in stems if stem not in _OTHERS
    ]
    return tuple(sorted(found, key=lambda each: (each.device == "cuda", each.name)))
