"""Figures that carry their source.

A figure is a field annotated with a ``Unit``. A data file writes
``smem_per_sm=fact(228 * KIB, CC_TABLE)``; the finished object holds the plain int, and
``obj.source("smem_per_sm")`` says where it comes from. A figure whose source is the same for every
target names it in its annotation: ``warp_size: Annotated[Count, CC_TABLE] = 32``.
A figure without a source is a ``TypeError`` at construction, so that none can slip in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Literal, TypeVar, cast, get_type_hints

T = TypeVar("T")

SourceKind = Literal["manual", "datasheet", "measured", "probe", "derived", "unknown"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure comes from.

    ``manual``: an architecture or ISA manual. ``datasheet``: a vendor's product figure.
    ``measured``: a stated measurement on a device. ``probe``: what ptxas accepts, repeated by a
    test. ``derived``: arithmetic on the sources that ``text`` names. ``unknown``: none was found,
    and the figure is None.
    """

    kind: SourceKind
    text: str

    def __str__(self) -> str:
        return f"{self.text} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks an annotation as a figure; ``symbol`` is its unit, empty for a plain count."""

    symbol: str = ""


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value on its way into a ``Cited`` object, with its source."""

    value: T
    source: Source


def fact(value: T, source: Source) -> T:
    """A figure with its own source.

    Typed as the bare value, as ``dataclasses.field`` is, because ``Cited`` unwraps it.
    """
    return cast(T, Fact(value, source))


@dataclass(frozen=True, slots=True)
class Figure:
    """A field's annotation: its unit and, where it is the same for every target, its source."""

    unit: str
    source: Source | None


# By class: resolving the annotations costs more than building the objects.
_FIGURES: dict[type[Any], Mapping[str, Figure]] = {}


def _figures(cls: type[Any]) -> Mapping[str, Figure]:
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, Figure] = {}
    for item in fields(cls):
        extras = getattr(hints[item.name], "__metadata__", ())
        for unit in extras:
            if isinstance(unit, Unit):
                source = next((s for s in extras if isinstance(s, Source)), None)
                found[item.name] = Figure(unit=unit.symbol, source=source)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """Base of the target's sections: every figure has a source, or construction fails.

    Compared by figures, never by sources.
    """

    sources: Mapping[str, Source] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = dict(self.sources)
        for name, figure in self.figures().items():
            value = getattr(self, name)
            if isinstance(value, Fact):
                object.__setattr__(self, name, value.value)
                found[name] = value.source
            elif figure.source is not None:
                found.setdefault(name, figure.source)
            elif name not in found:
                raise TypeError(
                    f"{type(self).__name__}.{name} = {value!r} has no source; "
                    "write fact(value, source)"
                )
        object.__setattr__(self, "sources", found)

    def figures(self) -> Mapping[str, Figure]:
        """The figures of this object, by field name, in order."""
        cls = type(self)
        if cls not in _FIGURES:
            _FIGURES[cls] = _figures(cls)
        return _FIGURES[cls]

    def source(self, path: str) -> Source:
        """The source of a figure; ``path`` descends into sections: ``"rates.sfu_lanes"``.

        Raises ``KeyError`` for a name that is no figure of this object.
        """
        head, _, rest = path.partition(".")
        section = getattr(self, head, None) if rest else None
        if isinstance(section, Cited):
            return section.source(rest)
        if rest or head not in self.sources:
            known = ", ".join(self.figures())
            raise KeyError(f"{type(self).__name__} has no figure {path!r}; figures: {known}")
        return self.sources[head]
