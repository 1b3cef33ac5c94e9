"""From a schedule file and a problem to programs that can run: meta parameters and guards.

Element types of the contract bind the meta parameters of the same name. Where a guard
(``require(D <= DP)``) refuses the defaults, the nearest values that it admits are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from cake.codegen.host import HostText
from cake.codegen.hostexpr import HostExpr
from cake.diag import CakeError, Diagnostic
from cake.ir.dtypes import DTYPES, DType
from cake.ir.program import Program
from cake.kernels.layouts import refused_layouts
from cake.kernels.library import ScheduleFile
from cake.kernels.tensors import misfits
from cake.lang.elaborate import Parsed, parse
from cake.lang.printer import print_expr
from cake.workloads import Problem

MAX_CHANGED = 2
"""Meta parameters that may leave their defaults to meet the guards."""


class Misfit(Exception):
    """A schedule file does not admit a problem; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The programs of a file in launch order, with the meta parameters they were made with."""

    programs: tuple[Program, ...]
    meta: Mapping[str, Any]


def elaborate(file: ScheduleFile, meta: Mapping[str, Any] | None = None) -> Parsed:
    """Parse a schedule file for its target. Nothing of it is executed."""
    return parse(file.text, str(file.path), meta=meta, target=file.target)


def meta_domains(file: ScheduleFile) -> dict[str, tuple[Any, ...]]:
    """The domain of every meta parameter: the values that all schedules of the file admit.

    Raises :class:`CakeError` for a file that has errors with its defaults.
    """
    parsed = elaborate(file)
    if not parsed.ok:
        raise CakeError(parsed.diagnostics, {str(file.path): file.text})
    domains: dict[str, tuple[Any, ...]] = {}
    for program in parsed.programs:
        for m in program.metas:
            shared = domains.get(m.name, m.domain)
            domains[m.name] = tuple(v for v in m.domain if v in shared)
    return domains


def meta_defaults(file: ScheduleFile) -> dict[str, Any]:
    """The default of every meta parameter of a file without errors."""
    return _meta(elaborate(file).programs)


def bound_domains(
    domains: Mapping[str, tuple[Any, ...]], problem: Problem
) -> dict[str, tuple[Any, ...]]:
    """Domains with the element types of the problem filled in.

    Raises :class:`Misfit` if a domain lacks the type.
    """
    out = dict(domains)
    for variable, name in problem.contract.dtypes[problem.dtype].items():
        if not any(isinstance(v, DType) for v in domains.get(variable, ())):
            continue
        if DTYPES[name] not in domains[variable]:
            admitted = ", ".join(map(str, domains[variable]))
            raise Misfit(f"{variable} = {name} is not among {admitted}")
        out[variable] = (DTYPES[name],)
    return out


def launchable(programs: Sequence[Program], problem: Problem) -> str:
    """Why ``programs`` cannot be launched on ``problem``, or the empty text if they can."""
    problems = list(dict.fromkeys(misfits(programs, problem)))
    if not problems:
        problems += [text for p in programs for text in _refusals(p, problem)]
    if not problems:
        problems += [text for p in programs for text in refused_layouts(p, problem)]
    return "; ".join(problems)


def _refusals(program: Program, problem: Problem) -> Iterator[str]:
    """The guards that do not hold."""
    env = {**problem.env(), **problem.dims}
    host = HostText(program)
    for guard in program.guards:
        if not HostExpr(host.of(guard.cond)).evaluate(env):
            sizes = " ".join(f"{name}={value}" for name, value in problem.dims.items())
            yield f"require({print_expr(program, guard.cond)}) does not hold at {sizes}"


def bind(file: ScheduleFile, problem: Problem, given: Mapping[str, Any] | None = None) -> Bound:
    """The programs of ``file`` for ``problem``, with the meta parameters nearest to the defaults.

    ``given`` parameters are kept as they are. Raises :class:`Misfit` with the first reason if no
    values are admitted, and :class:`CakeError` for a file that has errors with its defaults.
    """
    domains = meta_domains(file)
    fixed = {k: v for k, v in bound_domains(domains, problem).items() if len(v) == 1}
    base = {name: values[0] for name, values in fixed.items() if name in domains}
    base |= given or {}
    free = {name: values for name, values in domains.items() if name not in base}
    reason = ""
    defaults: dict[str, Any] = {}
    # Parameters that the refusing guards depend on: any change of such a one changes their text.
    involved: set[str] = set()
    for changes in _nearest(free):
        redundant = any(defaults.get(name) == value for name, value in changes.items())
        if redundant or (len(changes) > 1 and involved.isdisjoint(changes)):
            continue
        parsed = elaborate(file, {**base, **changes})
        refusal = _errors(parsed.diagnostics) or launchable(parsed.programs, problem)
        if not refusal:
            return Bound(programs=parsed.programs, meta=_meta(parsed.programs))
        if not changes:
            reason, defaults = refusal, _meta(parsed.programs)
        elif refusal != reason:
            involved |= changes.keys()
    raise Misfit(reason)


def _errors(diagnostics: Sequence[Diagnostic]) -> str:
    return "; ".join(d.message for d in diagnostics if d.severity == "error")


def _nearest(free: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Changes to the defaults: none, then of one parameter, then of two, in domain order."""
    for count in range(MAX_CHANGED + 1):
        for names in combinations(free, count):
            for values in product(*(free[name] for name in names)):
                yield dict(zip(names, values, strict=True))


def _meta(programs: Sequence[Program]) -> dict[str, Any]:
    return {name: value for p in programs for name, value in p.bindings.items()}
