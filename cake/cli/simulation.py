"""Running schedules on the CPU for `cake simulate`: launches in order, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cake.cli.findings import ORDER_DEPENDENT, SIMULATED_WRONG
from cake.cli.output import Advance
from cake.cli.tensors import Arrays, written
from cake.diag import Diagnostic, Fact, Severity
from cake.ir.program import Program
from cake.simulate import ORDERS, Options, Simulation, simulate_chain, writers
from cake.workloads import Comparison, Problem, compare


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Programs in launch order with everything that they run on.

    ``outputs`` are those of the contract, which the programs write in whole.
    """

    programs: tuple[Program, ...]
    arrays: Arrays
    scalars: Mapping[str, Any]
    outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass through all programs; ``tensors`` are those left behind."""

    order: str
    seed: int
    result: Simulation
    tensors: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The order, with the seed if it draws."""
        return f"{self.order}, seed {self.seed}" if ORDERS[self.order].draws else self.order

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        return self.result.findings


def execute(setup: Setup, order: str, seed: int, options: Options, advance: Advance) -> Run:
    """All programs in launch order, on copies; the first one with a finding is the last."""
    advance(f"order {order}", steps=0)
    tensors = {name: array.copy() for name, array in setup.arrays.tensors.items()}
    result = simulate_chain(
        setup.programs,
        tensors,
        setup.scalars,
        outputs=setup.outputs,
        temporaries=setup.arrays.garbage - setup.outputs,
        options=replace(options, order=order, seed=seed),
    )
    advance()
    return Run(order=order, seed=seed, result=result, tensors=tensors)


def compared(
    instance: Problem | None, inputs: Mapping[str, Any], run: Run, seed: int
) -> Comparison | None:
    """The outputs against the reference; ring arithmetic has none."""
    if instance is None or run.findings or run.result.modulus is not None:
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
    """Tensors whose bits differ between orders.

    That is an error if the contract asks for bits, or if the arithmetic was exact: then the order
    of sums is no explanation.
    """
    clean = [run for run in runs if not run.findings]
    found = []
    for name in sorted(set().union(*(written(p) for p in setup.programs)) if clean else ()):
        first = clean[0].tensors[name].tobytes()
        other = next((r for r in clean if r.tensors[name].tobytes() != first), None)
        if other is None:
            continue
        message = f"{name} has other bits in order {other.label} than in order {clean[0].label}"
        exact = other.result.modulus is not None
        place = next(p.loc for p in setup.programs if name in written(p))
        finding = Diagnostic.of(
            ORDER_DEPENDENT,
            f"{message}, although sums are exact" if exact else message,
            place,
            related=writers(setup.programs, name),
            facts={"tensor": name},
            helps=() if exact else ("--arithmetic ring tells rounding from a fault",),
        )
        bitwise = instance is not None and instance.contract.determinism == "bitwise"
        severe = exact or bitwise
        found.append(finding if severe else replace(finding, severity=Severity.WARNING))
    return found
