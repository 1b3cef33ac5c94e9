"""From a schedule file and a problem to programs that can run: meta parameters and guards.

Element types of the contract bind the meta parameters of the same name. Where a guard
(``require(D <= DP)``) refuses the defaults, the nearest values that it admits are taken.
"""

from __future__ import annotations

import ast
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
from cake.kernels.tensors import contract_tensors, misfits
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


def bound_domains(file: ScheduleFile, problem: Problem) -> dict[str, tuple[Any, ...]]:
    """The domains of a file's meta parameters, with what the problem decides filled in.

    Element types are bound by name. Of parameters that choose the axes of a tensor
    (``Tensor[T, "K", "N"] if KN else Tensor[T, "N", "K"]``) those values stay with which all
    tensors fit. Raises :class:`Misfit` if a domain lacks a type or the tensors fit with no values,
    and :class:`CakeError` as :func:`meta_domains` does.
    """
    domains = meta_domains(file)
    out = dict(domains)
    for variable, name in problem.contract.dtypes[problem.dtype].items():
        if not _are_types(domains.get(variable, ())):
            continue
        if DTYPES[name] not in domains[variable]:
            admitted = ", ".join(map(str, domains[variable]))
            raise Misfit(f"{variable} = {name} is not among {admitted}")
        out[variable] = (DTYPES[name],)
    types = {name: values[0] for name, values in out.items() if _are_types(values)}
    choosing = _choosing_axes(file, problem, domains)
    fitting, reasons = [], []
    for values in product(*(domains[name] for name in choosing)):
        parsed = elaborate(file, {**types, **dict(zip(choosing, values, strict=True))})
        reason = _errors(parsed.diagnostics) or "; ".join(_misfits(parsed.programs, problem))
        if reason:
            reasons.append(reason)
        else:
            fitting.append(values)
    if not fitting:
        raise Misfit(reasons[0])
    for i, name in enumerate(choosing):
        out[name] = tuple(dict.fromkeys(values[i] for values in fitting))
    return out


def _are_types(domain: Sequence[Any]) -> bool:
    return any(isinstance(value, DType) for value in domain)


def _choosing_axes(
    file: ScheduleFile, problem: Problem, domains: Mapping[str, tuple[Any, ...]]
) -> list[str]:
    """The parameters, element types apart, in annotations of the contract's tensors."""
    functions = (n for n in ast.walk(ast.parse(file.text)) if isinstance(n, ast.FunctionDef))
    named: set[str] = set()
    for parameter in (p for f in functions for p in f.args.args):
        if parameter.annotation and parameter.arg in contract_tensors(problem):
            parts = ast.walk(parameter.annotation)
            named |= {part.id for part in parts if isinstance(part, ast.Name)}
    return [name for name, domain in domains.items() if name in named and not _are_types(domain)]


def launchable(programs: Sequence[Program], problem: Problem) -> str:
    """Why ``programs`` cannot be launched on ``problem``, or the empty text if they can."""
    problems = _misfits(programs, problem)
    if not problems:
        problems += [text for p in programs for text in _refusals(p, problem)]
    if not problems:
        problems += [text for p in programs for text in refused_layouts(p, problem)]
    return "; ".join(problems)


def _misfits(programs: Sequence[Program], problem: Problem) -> list[str]:
    return list(dict.fromkeys(misfits(programs, problem)))


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
    domains = bound_domains(file, problem)
    base = {name: values[0] for name, values in domains.items() if len(values) == 1}
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
        elif len(changes) == 1 and refusal != reason:
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
