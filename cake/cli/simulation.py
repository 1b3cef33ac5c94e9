"""Running schedules on the CPU for `cake simulate`: launches in order, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cake.cli.findings import ORDER_DEPENDENT, SIMULATED_WRONG
from cake.cli.output import Advance
from cake.cli.tensors import Arrays, written
from cake.diag import Diagnostic, Fact, Severity
from cake.ir.program import Program, ScalarParam
from cake.simulate import simulate
from cake.workloads import Comparison, Problem, compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Programs in launch order with everything that they run on."""

    programs: tuple[Program, ...]
    arrays: Arrays
    scalars: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass through all programs; ``tensors`` are those left behind."""

    order: str
    ctas: int
    steps: int
    findings: tuple[Diagnostic, ...]
    tensors: Mapping[str, Any]


def execute(setup: Setup, order: str, seed: int, advance: Advance) -> Run:
    """All programs in launch order, on copies; the first one with a finding is the last."""
    tensors = {name: array.copy() for name, array in setup.arrays.tensors.items()}
    garbage = set(setup.arrays.garbage)
    ctas, steps = 0, 0
    findings: tuple[Diagnostic, ...] = ()
    for program in setup.programs:
        advance(f"{program.name}, order {order}", steps=0)
        names = {t.name for t in program.tensors}
        result = simulate(
            program,
            {name: tensors[name] for name in names},
            _scalars(program, setup.scalars),
            outputs=garbage & names,
            order=order,
            seed=seed,
        )
        advance()
        garbage -= written(program)
        ctas, steps, findings = ctas + result.ctas, steps + result.steps, result.findings
        if findings:
            break
    return Run(order=order, ctas=ctas, steps=steps, findings=findings, tensors=tensors)


def _scalars(program: Program, values: Mapping[str, Any]) -> dict[str, Any]:
    return {q.name: values[q.name] for q in program.params if isinstance(q, ScalarParam)}


def compared(
    instance: Problem | None, inputs: Mapping[str, Any], run: Run, seed: int
) -> Comparison | None:
    if instance is None or run.findings:
        return None
    outputs = {spec.name: run.tensors[spec.name] for spec in instance.contract.outputs}
    shape = {**instance.dims, **instance.parameters}
    return compare(instance.contract, shape, instance.dtype, inputs, outputs, seed=seed)


def wrong_results(
    instance: Problem | None, comparison: Comparison | None, setup: Setup
) -> list[Diagnostic]:
    if instance is None or comparison is None or comparison.ok:
        return []
    found = []
    for result in comparison.tensors:
        if not result.ok:
            writers = [p for p in setup.programs if result.tensor in written(p)]
            place = (writers or list(setup.programs))[-1].loc
            message = f"{result.tensor} differs from {instance.contract.name}: {result.detail}"
            facts: dict[str, Fact] = {
                "tensor": result.tensor,
                "wrong": result.wrong,
                "checked": result.checked,
            }
            found.append(Diagnostic.of(SIMULATED_WRONG, message, place, facts=facts))
    return found


def order_findings(instance: Problem | None, runs: Sequence[Run], setup: Setup) -> list[Diagnostic]:
    """Tensors whose bits differ between orders; only a bitwise contract makes that an error."""
    clean = [run for run in runs if not run.findings]
    found = []
    for name in sorted(set().union(*(written(p) for p in setup.programs)) if clean else ()):
        first = clean[0].tensors[name].tobytes()
        other = next((r for r in clean if r.tensors[name].tobytes() != first), None)
        if other is None:
            continue
        message = f"{name} has other bits in order {other.order} than in order {clean[0].order}"
        place = next(p.loc for p in setup.programs if name in written(p))
        finding = Diagnostic.of(ORDER_DEPENDENT, message, place, facts={"tensor": name})
        bitwise = instance is not None and instance.contract.determinism == "bitwise"
        found.append(finding if bitwise else replace(finding, severity=Severity.WARNING))
    return found
