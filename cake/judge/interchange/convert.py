"""Contracts, candidates and verdicts as records of flashinfer-bench; solutions as candidates."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from cake.judge.candidate import Candidate
from cake.judge.interchange.schema import (
    AxisConst,
    AxisVar,
    BuildSpec,
    Correctness,
    Definition,
    DType,
    Environment,
    InterchangeError,
    Performance,
    RandomInput,
    Solution,
    SourceFile,
    TensorSpec,
    Trace,
    TraceEvaluation,
    TraceStatus,
    Workload,
)
from cake.judge.records import encode
from cake.judge.verdict import CaseResult, Status, TimingResult, Verdict, worst
from cake.workloads import Case, Problem, get, problem

_STATUSES: Mapping[Status, TraceStatus] = {
    "passed": "PASSED",
    "incorrect": "INCORRECT_NUMERICAL",
    "refused": "COMPILE_ERROR",
    "build_failed": "COMPILE_ERROR",
    "crashed": "RUNTIME_ERROR",
    "hang": "TIMEOUT",
}
_NAMESPACE = uuid.UUID("6d1f7f6a-2f0e-5b1c-9d0c-0f6e6b1d2c11")
"""Of the identifiers of workloads: equal cases get equal ones."""

_REFERENCE = '''\
"""The float64 reference of CAKE's workload {workload}, rounded once."""

import ml_dtypes
import numpy as np
import torch

from cake.workloads import get, reference_outputs

DTYPE = {dtype!r}
PARAMETERS = {parameters!r}
OUTPUTS = {outputs!r}


def _host(tensor, name):
    array = tensor.detach().cpu()
    wide = array.float() if array.is_floating_point() else array
    return wide.numpy().astype(np.dtype(getattr(ml_dtypes, name, name)))


def run({arguments}):
    arrays = {{{arrays}}}
    shape = {{{shape}, **PARAMETERS}}
    made = reference_outputs(get({workload!r}), shape, DTYPE, arrays)
    back = []
    for name, dtype in OUTPUTS.items():
        wide = made[name].astype(np.float32 if "float" in dtype else made[name].dtype)
        back.append(torch.from_numpy(wide).to({first}.device, getattr(torch, dtype)))
    return back[0] if len(back) == 1 else tuple(back)
'''


def definition_of(workload: str, case: Case) -> Definition:
    """The contract of ``workload`` with the types, layouts and parameters of ``case``. Extents stay
    open, but for those that no input has (the k of a search). A tensor that is read and written
    becomes ``NAME_in`` and ``NAME_out``.

    Raises :class:`cake.workloads.ContractError` for a case that the contract does not admit.
    """
    instance = problem(get(workload), case.shape, case.dtype)
    inputs, outputs = _inputs(instance), _outputs(instance)
    bound = _bound(inputs)
    fixed = {axis: value for axis, value in instance.dims.items() if axis not in bound}
    suffix = "".join(f"_{value}" for value in instance.parameters.values())
    suffix += "".join(f"_{axis}{value}" for axis, value in fixed.items())
    return Definition(
        name=f"{workload}_{case.dtype}{suffix}".replace(".", "p").replace("-", "m"),
        op_type=workload,
        axes={
            d.name: AxisConst(value=fixed[d.name], description=d.description)
            if d.name in fixed
            else AxisVar(description=d.description)
            for d in instance.contract.dimensions
            if d.name in instance.dims
        },
        inputs=inputs,
        outputs=outputs,
        reference=_reference(instance, inputs, outputs),
        description=instance.contract.mathematics,
        constraints=tuple(
            text
            for text in instance.contract.constraints
            if not any(name in text for name in instance.parameters)
        ),
    )


def _inputs(instance: Problem) -> dict[str, TensorSpec]:
    return {
        f"{spec.name}_in" if spec.is_output else spec.name: _tensor(instance, spec.name)
        for spec in instance.contract.inputs
    }


def _outputs(instance: Problem) -> dict[str, TensorSpec]:
    return {
        f"{spec.name}_out" if spec.is_input else spec.name: _tensor(instance, spec.name)
        for spec in instance.contract.outputs
    }


def _tensor(instance: Problem, name: str) -> TensorSpec:
    return TensorSpec(
        shape=instance.axes_of(name),
        dtype=cast("DType", instance.dtype_of(name).name),
        description=instance.contract.tensor(name).description,
    )


def _bound(inputs: Mapping[str, TensorSpec]) -> dict[str, str]:
    """The axes that inputs have, each with the expression that reads its extent."""
    found: dict[str, str] = {}
    for name, spec in inputs.items():
        for place, axis in enumerate(spec.shape or ()):
            found.setdefault(axis, f"{name}.shape[{place}]")
    return found


def _reference(
    instance: Problem, inputs: Mapping[str, TensorSpec], outputs: Mapping[str, TensorSpec]
) -> str:
    """Python that computes the reference from torch tensors; it needs CAKE and torch."""
    bound = {axis: str(value) for axis, value in instance.dims.items()} | _bound(inputs)
    names = [spec.name for spec in instance.contract.inputs]
    arrays = ", ".join(
        f"{ours!r}: _host({theirs}, {inputs[theirs].dtype!r})"
        for ours, theirs in zip(names, inputs, strict=True)
    )
    made = [spec.name for spec in instance.contract.outputs]
    dtypes = {ours: outputs[name].dtype for ours, name in zip(made, outputs, strict=True)}
    return _REFERENCE.format(
        workload=instance.contract.name,
        dtype=instance.dtype,
        parameters=dict(instance.parameters),
        outputs=dtypes,
        arguments=", ".join(inputs),
        arrays=arrays,
        shape=", ".join(f"{axis!r}: {text}" for axis, text in bound.items()),
        first=next(iter(inputs)),
    )


def workload_of(workload: str, case: Case) -> Workload:
    """``case`` as a workload with random inputs."""
    instance = problem(get(workload), case.shape, case.dtype)
    inputs = _inputs(instance)
    return Workload(
        axes={axis: n for axis, n in instance.dims.items() if axis in _bound(inputs)},
        inputs={name: RandomInput() for name in inputs},
        uuid=str(uuid.uuid5(_NAMESPACE, f"{workload} {case.label()}")),
    )


def solution_of(
    candidate: Candidate, definition: Definition, *, author: str, hardware: str
) -> Solution:
    """A Python candidate as a solution that gets its outputs as last arguments.

    Raises :class:`InterchangeError` for other candidates: the schema has no schedules, and its CUDA
    solutions bring host code that ours do not have.
    """
    if candidate.runner != "python":
        raise InterchangeError(f"a candidate of the runner `{candidate.runner}` is no solution")
    names = [*definition.inputs, *definition.outputs]
    keywords = ", ".join(f"{name}={name}" for name in names)
    main = f"from candidate import run as kernel\n\n\ndef run({', '.join(names)}):\n"
    return Solution(
        name=f"{candidate.entry}_{candidate.digest()[:8]}",
        definition=definition.name,
        author=author,
        spec=BuildSpec(language="python", target_hardware=(hardware,), entry_point="main.py::run"),
        sources=(
            SourceFile(path="main.py", content=f"{main}    kernel({keywords})\n"),
            SourceFile(path="candidate.py", content=candidate.text),
        ),
    )


def candidate_of(solution: Solution, definition: Definition) -> Candidate:
    """A solution of one Python file as a candidate; it is judged in a confined child.

    Raises :class:`InterchangeError` for other languages and for several files.
    """
    if solution.spec.language not in ("python", "triton"):
        raise InterchangeError(f"{solution.name}: {solution.spec.language} is not run here")
    if len(solution.sources) != 1:
        raise InterchangeError(f"{solution.name}: {len(solution.sources)} files; one is run here")
    inputs, outputs = list(definition.inputs), list(definition.outputs)
    entry = solution.spec.entry_point.split("::")[1]
    if solution.spec.destination_passing_style:
        body = f"    _entry({', '.join([*inputs, *outputs])})\n"
    else:
        body = f"    _made = _entry({', '.join(inputs)})\n"
        body += "    _made = _made if isinstance(_made, (tuple, list)) else (_made,)\n"
        body += "".join(f"    {n}[...] = _made[{i}]\n" for i, n in enumerate(outputs))
    adapter = f"\n\n_entry = {entry}\n\n\ndef run({', '.join([*inputs, *outputs])}):\n{body}"
    return Candidate(
        runner="python", entry=solution.name, text=solution.sources[0].content + adapter
    )


def trace_of(
    verdict: Verdict,
    case: Case,
    definition: Definition,
    solution: str,
    when: datetime | None = None,
) -> Trace:
    """What a verdict says about one case.

    Raises :class:`InterchangeError` for a case that is not in it, and for one that passed and was
    not timed beside a baseline: the schema has no place for that.
    """
    results = [result for result in verdict.results if result.case == case]
    timing = next((t for t in verdict.timings if t.case == case), None)
    if not results:
        raise InterchangeError(f"the verdict does not speak of {case.label()}")
    parts: list[CaseResult | TimingResult] = [*results, *([timing] if timing else [])]
    status = _STATUSES[worst([part.status for part in parts])]
    performance = None
    if status == "PASSED":
        if timing is None or timing.baseline is None:
            raise InterchangeError(f"{case.label()} passed, but has no time beside a baseline")
        performance = Performance(
            latency_ms=timing.candidate.median,
            reference_latency_ms=timing.baseline.median,
            speedup_factor=timing.speedup or 0.0,
        )
    environment = dict(verdict.environment)
    return Trace(
        definition=definition.name,
        workload=workload_of(verdict.workload, case),
        solution=solution,
        evaluation=TraceEvaluation(
            status=status,
            environment=Environment(
                hardware=environment.pop("device", verdict.device) or verdict.device,
                libs=environment,
            ),
            timestamp=(when or datetime.now(UTC)).isoformat(timespec="seconds"),
            log=verdict.output,
            correctness=_correctness(results, timing)
            if status in ("PASSED", "INCORRECT_NUMERICAL")
            else None,
            performance=performance,
        ),
    )


def _correctness(results: list[CaseResult], timing: TimingResult | None) -> Correctness:
    """The greatest errors over all families; every comparison is in ``extra``."""
    absolute = relative = 0.0
    for result in results:
        for tensor in result.comparison.tensors if result.comparison else ():
            if tensor.worst is not None:
                error = abs(tensor.worst.got - tensor.worst.expected)
                size = abs(tensor.worst.expected)
                absolute = max(absolute, error)
                relative = max(relative, error / size if size else error)
    extra: dict[str, Any] = {"cake": {"results": encode(tuple(results))}}
    if timing is not None:
        extra["cake"]["timing"] = encode(timing)
    return Correctness(max_relative_error=relative, max_absolute_error=absolute, extra=extra)
