"""The kernels of a schedule file, one launch after another on the same tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from cake.diag import Diagnostic
from cake.ir.program import Program
from cake.simulate.arithmetic import arithmetic_of
from cake.simulate.codes import INCOMPLETE_OUTPUT
from cake.simulate.errors import Finding
from cake.simulate.global_memory import GlobalTensor
from cake.simulate.origins import writers
from cake.simulate.run import Options, Simulation, launch


def simulate_chain(
    programs: Sequence[Program],
    tensors: Mapping[str, Any],
    scalars: Mapping[str, int | float] | None = None,
    *,
    outputs: Collection[str] = (),
    temporaries: Collection[str] = (),
    options: Options | None = None,
) -> Simulation:
    """Execute programs in launch order on numpy arrays, until one has a finding.

    Args:
        programs: elaborated programs, in launch order.
        tensors: an array for each tensor parameter of any program, written in place.
        scalars: values of the scalar parameters of all programs.
        outputs: tensors that hold garbage at first and are written in whole by the last launch.
        temporaries: tensors that hold garbage at first. Reading garbage is a finding, whichever
            launch should have written it.
        options: how to run each launch.

    Returns:
        The findings of the first program that has some; the counts of all that ran.
    """
    garbage = {*outputs, *temporaries}
    memory = {
        name: GlobalTensor.garbage(name, array) if name in garbage else GlobalTensor(name, array)
        for name, array in tensors.items()
    }
    options = options or Options()
    arithmetic = arithmetic_of(options.arithmetic, programs)
    ctas, steps = 0, 0
    findings: tuple[Diagnostic, ...] = ()
    for number, program in enumerate(programs):
        mine = {t.name: memory[t.name] for t in program.tensors if t.name in memory}
        before = programs[:number]
        result = launch(program, mine, scalars or {}, options, arithmetic, before)
        ctas, steps, findings = ctas + result.ctas, steps + result.steps, result.findings
        if findings:
            break
    else:
        gaps = (memory[name] for name in outputs if not _whole(memory[name]))
        findings = tuple(_gap(tensor, programs) for tensor in gaps)
    return Simulation(findings=findings, ctas=ctas, steps=steps, modulus=arithmetic.modulus)


def _whole(tensor: GlobalTensor) -> bool:
    return tensor.valid is None or bool(tensor.valid.all())


def _gap(tensor: GlobalTensor, programs: Sequence[Program]) -> Diagnostic:
    """An output with elements that no launch has written."""
    missing = ~tensor.valid
    index = tuple(int(i[0]) for i in np.nonzero(missing))
    place = next((p.loc for p in programs[::-1] if _has(p, tensor.name)), programs[-1].loc)
    count = int(missing.sum())
    return Finding(
        INCOMPLETE_OUTPUT,
        f"{count} of {missing.size} elements of {tensor.name} are never written, "
        f"the first at {index}",
        {"tensor": tensor.name, "missing": count, "elements": missing.size, "index": str(index)},
        related=writers(programs, tensor.name),
    ).diagnostic(place)


def _has(program: Program, name: str) -> bool:
    return any(t.name == name for t in program.tensors)
