"""What rules ask of the solver (L4) where interval analysis cannot decide, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cake.ir.nodes import Expr
from cake.verify.poly import Poly
from cake.verify.sites import Site

if TYPE_CHECKING:
    from cake.verify.footprints import Footprint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inside:
    """Whether ``0 <= index <= room`` wherever a call executes.

    ``what`` names the index for a message ("axis 0 of y"), ``extent`` counts the elements from the
    index on that the call touches, ``mask`` is the call's per-thread condition.
    """

    site: Site
    space: Literal["global", "smem"]
    what: str
    index: Expr
    room: Poly
    extent: int
    mask: Expr | None

    @property
    def conditional(self) -> bool:
        """Whether a mask or a condition is meant to keep the access inside."""
        return self.mask is not None or bool(self.site.conditions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fits:
    """Whether the value of a call, i32 arithmetic, fits into 32 bits wherever it is computed."""

    site: Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Apart:
    """Whether two CTAs, or one CTA in two of its tiles, store to different elements of a tensor:
    one by ``first``, the other by ``second`` (which may be the same store)."""

    first: Footprint
    second: Footprint


Question = Inside | Fits | Apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A confirmed counterexample: sizes, coordinates and loop variables by name, and the value
    that leaves its limits."""

    shown: Mapping[str, int]
    value: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """Two threads that store to one element: what each is at, and the element's coordinates."""

    first: Mapping[str, int]
    second: Mapping[str, int]
    element: tuple[int, ...]


Answer = Witness | Meeting | bool
"""A counterexample: refuted. True: proved. False: neither."""
