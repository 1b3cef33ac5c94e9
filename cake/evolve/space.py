"""The search space: structural variants times the domains of their meta parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from random import Random
from typing import Any

from cake.diag import CakeError
from cake.evolve.findings import NO_CANDIDATES, error
from cake.ir.dtypes import DTYPES, DType
from cake.kernels import Misfit, ScheduleFile, available, encode_meta
from cake.kernels.binding import bound_domains, meta_defaults
from cake.kernels.meta_text import MetaJson
from cake.workloads import Problem

MAX_POINTS = 4096
"""Points of all variants together; a larger space is sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A schedule file with the domains that a problem leaves of its meta parameters.

    Domains hold JSON values (:func:`cake.kernels.encode_meta`), so that a variant can be stored;
    ``typed`` names the parameters whose values are element types, ``defaults`` has the values that
    the author chose.
    """

    name: str
    target: str
    written_for: str | None
    path: str
    text: str
    domains: Mapping[str, tuple[MetaJson, ...]]
    typed: tuple[str, ...]
    defaults: Mapping[str, MetaJson]

    @property
    def file(self) -> ScheduleFile:
        return ScheduleFile(
            name=self.name,
            path=Path(self.path),
            target=self.target,
            written_for=self.written_for,
            text=self.text,
        )

    def meta(self, values: Mapping[str, MetaJson]) -> dict[str, Any]:
        """The values of a point as the elaborator takes them."""
        return {n: DTYPES[str(v)] if n in self.typed else v for n, v in values.items()}

    def distance(self, values: Mapping[str, MetaJson]) -> int:
        """Steps in the domains from the author's choice to ``values``."""
        return sum(
            abs(domain.index(values[n]) - domain.index(self.defaults[n]))
            for n, domain in self.domains.items()
            if self.defaults[n] in domain
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place in the space: a variant and a value for each of its meta parameters."""

    variant: str
    meta: Mapping[str, MetaJson]

    @property
    def key(self) -> str:
        """Canonical text of the point."""
        return f"{self.variant} {json.dumps(self.meta, sort_keys=True)}"


def variants_of(files: Sequence[ScheduleFile], problem: Problem) -> tuple[Variant, ...]:
    """The files that the problem's element types fit, as variants with distinct names.

    Raises :class:`CakeError` (``no-candidates``) if none is left, and with the diagnostics of a
    file that has errors.
    """
    found: dict[str, Variant] = {}
    reasons = []
    for file in files:
        try:
            left = bound_domains(file, problem)
        except Misfit as reason:
            reasons.append(f"{file.path}: {reason}")
            continue
        name, again = file.name, 2
        while name in found:
            name, again = f"{file.name}_{again}", again + 1
        assert file.target is not None
        found[name] = Variant(
            name=name,
            target=file.target,
            written_for=file.written_for,
            path=str(file.path),
            text=file.text,
            domains={n: tuple(encode_meta({n: v})[n] for v in left[n]) for n in left},
            typed=tuple(n for n, d in left.items() if any(isinstance(v, DType) for v in d)),
            defaults=encode_meta(meta_defaults(file)),
        )
    if not found:
        raise _nothing(problem, reasons)
    return tuple(found.values())


def _nothing(problem: Problem, reasons: Sequence[str]) -> CakeError:
    workload = problem.contract.name
    targets = ", ".join(available(workload)) or "none"
    return error(
        NO_CANDIDATES,
        f"no schedule serves {workload} with {problem.dtype}"
        + "".join(f"; {reason}" for reason in reasons),
        helps=(f"targets with shipped schedules: {targets}", "or name a schedule file of your own"),
    )


def points_of(variants: Sequence[Variant], seed: int) -> list[Point]:
    """Every point of every variant, or a seeded sample of ``MAX_POINTS`` in equal shares."""
    share = MAX_POINTS // len(variants)
    found: list[Point] = []
    for v in variants:
        size = prod(len(d) for d in v.domains.values())
        chosen = range(size)
        if size > share:
            chosen = sorted(Random(f"{seed} {v.name}").sample(range(size), share))  # type: ignore[assignment]
        found += (Point(variant=v.name, meta=_at(v.domains, index)) for index in chosen)
    return found


def _at(domains: Mapping[str, tuple[MetaJson, ...]], index: int) -> dict[str, MetaJson]:
    """Values of point ``index``; the last parameter varies fastest."""
    values: dict[str, MetaJson] = {}
    for name in reversed(tuple(domains)):
        index, position = divmod(index, len(domains[name]))
        values[name] = domains[name][position]
    return {name: values[name] for name in domains}


def neighbours(point: Point, domains: Mapping[str, tuple[MetaJson, ...]]) -> Iterator[Point]:
    """Points one step away in the domain of one parameter."""
    for name, values in domains.items():
        at = values.index(point.meta[name])
        for other in (at - 1, at + 1):
            if 0 <= other < len(values):
                yield Point(variant=point.variant, meta={**point.meta, name: values[other]})
