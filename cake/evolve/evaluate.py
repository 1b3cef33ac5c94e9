"""What is found out about one candidate, in a worker: screening, and the evaluation without a GPU.

Screening is cheap: elaborate, check the guards, estimate. The evaluation verifies, simulates at
reduced shapes against the reference, builds a cubin and estimates again with its registers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from cake.codegen.cache import KernelCache
from cake.codegen.compile import compile_program
from cake.cost import DoesNotFit, ScheduleEstimate, estimate_schedule
from cake.diag import CakeError, Diagnostic, Severity, to_json
from cake.evolve.findings import DOES_NOT_FIT, WRONG_RESULT
from cake.evolve.setting import FAMILIES, ORDERS, Setting, simulation_cases
from cake.evolve.space import Point
from cake.ir.program import Program
from cake.kernels import elaborate, launchable, poisoned, simulate_schedule
from cake.lang.printer import digest
from cake.verify import verify
from cake.workloads import Case, compare, generate, problem

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A point after screening.

    ``status``: ``invalid`` (language, types, ``require``), ``unfit`` (guards at the shape, or the
    SM) or ``estimated``. ``digest`` names the canonical program; ``estimate`` holds its kernels.
    """

    variant: str
    meta: Mapping[str, Any]
    status: str
    reason: str = ""
    digest: str | None = None
    seconds: float | None = None
    bound: str | None = None
    estimate: Json | None = None
    findings: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """An evaluated candidate.

    ``status``: ``passed``, or the stage that failed: ``rejected`` (verifier), ``simulation``
    (finding of the simulator), ``incorrect``, ``build_failed``. ``seconds`` is the estimate with
    the built registers. ``spill_bytes`` are stored and loaded by a thread of all kernels.
    ``stages`` are wall seconds.
    """

    status: str
    detail: str = ""
    seconds: float | None = None
    bound: str | None = None
    estimate: Json | None = None
    registers: Mapping[str, int] = field(default_factory=dict)
    spill_bytes: int = 0
    uncovered: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    findings: tuple[Json, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict)


class _Failed(Exception):
    """A stage of the evaluation ended it."""

    def __init__(self, status: str, findings: Sequence[Diagnostic]) -> None:
        super().__init__(status)
        self.status = status
        self.findings = tuple(findings)


def screen(setting: Setting, point: Point) -> Screened:
    """Elaborate a point, check it against the problem, and estimate it."""
    variant = setting.variant(point.variant)

    def result(status: str, **rest: Any) -> Screened:
        return Screened(variant=point.variant, meta=point.meta, status=status, **rest)

    parsed = elaborate(variant.file, variant.meta(point.meta))
    if not parsed.ok:
        errors = [d for d in parsed.diagnostics if d.severity is Severity.ERROR]
        return result("invalid", reason=errors[0].message, findings=tuple(map(to_json, errors)))
    reason = launchable(parsed.programs, setting.problem)
    if not reason:
        try:
            found = estimate_schedule(parsed.programs, setting.numbers, part=setting.part)
        except DoesNotFit as limit:
            reason = str(limit)
    if reason:
        finding = Diagnostic.of(DOES_NOT_FIT, reason, parsed.programs[0].loc)
        return result("unfit", reason=reason, findings=(to_json(finding),))
    return result(
        "estimated",
        digest=identity(parsed.programs),
        seconds=found.seconds,
        bound=found.bound,
        estimate=estimate_json(found),
    )


def identity(programs: Sequence[Program]) -> str:
    """The canonical digest of a schedule: of each of its programs, in order."""
    return "-".join(digest(p) for p in programs)


def estimate_json(found: ScheduleEstimate) -> Json:
    """An estimate without its call sites, as plain JSON values."""
    kernels = []
    for k in found.kernels:
        data = {name: getattr(k, name) for name in k.__slots__ if name != "sites"}
        data["resources"] = [asdict(r) for r in k.resources]
        data["occupancy"] = asdict(k.occupancy)
        data["assumptions"] = list(k.assumptions)
        kernels.append(data)
    return {"seconds": found.seconds, "bound": found.bound, "kernels": kernels}


def examine(setting: Setting, point: Point) -> Examined:
    """Evaluate a point that the screening has estimated."""
    return _Examination(setting, point).run()


def confirm(setting: Setting, point: Point) -> Examined:
    """Simulate a point on every input family of the contract, at the small shape."""
    examination = _Examination(setting, point)
    families = tuple(f.name for f in setting.contract.families)
    return examination.only_simulate(families, ORDERS[:1])


class _Examination:
    """The stages of one evaluation and what they leave behind."""

    def __init__(self, setting: Setting, point: Point) -> None:
        self.setting = setting
        variant = setting.variant(point.variant)
        parsed = elaborate(variant.file, variant.meta(point.meta))
        if not parsed.ok:
            raise CakeError(parsed.diagnostics, {variant.path: variant.text})
        self.programs = parsed.programs
        self.findings: list[Diagnostic] = []
        self.uncovered: list[str] = []
        self.cases: tuple[Case, ...] = ()
        self.registers: dict[str, int] = {}
        self.spill_bytes = 0
        self.stages: dict[str, float] = {}

    def run(self) -> Examined:
        try:
            with self._stage("verify"):
                self._verify()
            with self._stage("simulate"):
                self._simulate(FAMILIES, ORDERS)
            with self._stage("build"):
                self._build()
        except _Failed as failure:
            return self._result(failure)
        found = estimate_schedule(
            self.programs,
            self.setting.numbers,
            part=self.setting.part,
            built_registers=self.registers,
        )
        return self._result(None, found)

    def only_simulate(self, families: Sequence[str], orders: Sequence[str]) -> Examined:
        try:
            with self._stage("simulate"):
                self._simulate(families, orders)
        except _Failed as failure:
            return self._result(failure)
        return self._result(None)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.stages[name] = time.monotonic() - start

    def _verify(self) -> None:
        for p in self.programs:
            verdict = verify(p)
            self.findings += verdict.diagnostics
            self.uncovered += verdict.uncovered
            if not verdict.ok:
                raise _Failed("rejected", ())

    def _simulate(self, families: Sequence[str], orders: Sequence[str]) -> None:
        self.cases = simulation_cases(self.programs, self.setting)
        for case in self.cases:
            for family in families:
                for order in orders:
                    self._simulate_one(case, family, order)

    def _simulate_one(self, case: Case, family: str, order: str) -> None:
        setting = self.setting
        contract, seed = setting.contract, setting.seed
        instance = problem(contract, case.shape, case.dtype)
        inputs = generate(contract, case.shape, case.dtype, family, seed)
        tensors = {
            spec.name: inputs[spec.name].copy()
            if spec.is_input
            else poisoned(instance.shape_of(spec.name), instance.dtype_of(spec.name))
            for spec in contract.tensors
        }
        findings = simulate_schedule(self.programs, instance, tensors, order=order, seed=seed)
        if findings:
            raise _Failed("simulation", findings)
        outputs = {spec.name: tensors[spec.name] for spec in contract.outputs}
        result = compare(contract, case.shape, case.dtype, inputs, outputs)
        if not result.ok:
            where = f"{case.label()}, inputs {family}, order {order}"
            place = self.programs[-1].loc
            finding = Diagnostic.of(WRONG_RESULT, f"{where}: {result.detail}", place)
            raise _Failed("incorrect", (finding,))

    def _build(self) -> None:
        cache = KernelCache(warn=self.findings.append)
        for p in self.programs:
            try:
                compiled = compile_program(p, cache=cache)
            except CakeError as refused:
                raise _Failed("build_failed", refused.diagnostics) from None
            self.findings += compiled.diagnostics
            facts = compiled.build.facts.entry(compiled.abi.name)
            if facts is not None:
                self.registers[p.name] = facts.registers
                self.spill_bytes += facts.spill_store_bytes + facts.spill_load_bytes
            if any(d.severity is Severity.ERROR for d in compiled.diagnostics):
                raise _Failed("build_failed", ())

    def _result(self, failure: _Failed | None, found: ScheduleEstimate | None = None) -> Examined:
        findings = [*self.findings, *(failure.findings if failure else ())]
        errors = [d.message for d in findings if d.severity is Severity.ERROR]
        return Examined(
            status=failure.status if failure else "passed",
            detail=errors[0] if failure and errors else "",
            seconds=found.seconds if found else None,
            bound=found.bound if found else None,
            estimate=estimate_json(found) if found else None,
            registers=self.registers,
            spill_bytes=self.spill_bytes,
            uncovered=tuple(dict.fromkeys(self.uncovered)),
            cases=tuple(case.label() for case in self.cases),
            findings=tuple(map(to_json, dict.fromkeys(findings))),
            stages=self.stages,
        )
