"""`cake simulate`: a schedule on the CPU, under adversarial orders of completion."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from cake.cli.options import cake_command, extent, schedule_options, settings
from cake.cli.output import Output
from cake.cli.simulation import Run, Setup, compared, execute, order_findings, wrong_results
from cake.cli.sources import Text, chosen, elaborate, programs, read
from cake.cli.status import Status, status_of
from cake.cli.tensors import Arrays, check_guards, check_scalars, check_size, generated, written
from cake.cli.workload import (
    cases_of,
    contract_of,
    dtype_option,
    family_option,
    shape_option,
    usage_errors,
    workload_option,
)
from cake.diag import Diagnostic
from cake.kernels import ScheduleFile, bind, poisoned, temporaries
from cake.simulate import ORDERS, ArithmeticName, Options
from cake.workloads import Comparison, Problem, generate, problem


@cake_command("simulate")
@schedule_options
@workload_option(required=False)
@shape_option
@dtype_option
@family_option
@settings("--dim", kind=extent, wanted="an extent", help="Extent of a dimension: N=256.")
@settings("--scalar", kind=float, wanted="a number", help="Value of a scalar parameter.")
@click.option("--schedule", "name", help="Run only this schedule of the file.")
@click.option(
    "--order",
    type=click.Choice((*ORDERS, "all")),
    default="late",
    show_default=True,
    help="How late asynchronous work completes, and who runs first.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs of each order that draws at random, with seeds from --seed on.",
)
@click.option(
    "--arithmetic",
    type=click.Choice(("float", "ring")),
    default="float",
    show_default=True,
    help="Floats of their types, or exact residues modulo a prime.",
)
@click.option("--concurrent", is_flag=True, help="Run all CTAs together.")
def command(
    out: Output,
    file: str,
    meta: Mapping[str, Any],
    target: str | None,
    workload: str | None,
    shapes: tuple[str, ...],
    dtype: str | None,
    families: tuple[str, ...],
    dim: Mapping[str, int],
    scalar: Mapping[str, float],
    name: str | None,
    order: str,
    seed: int,
    seeds: int,
    arithmetic: ArithmeticName,
    concurrent: bool,
) -> Status:
    """Run a schedule on the CPU and look for faults.

    With --workload, inputs come from the contract and the result is compared with its reference.
    Without, inputs are made from the annotations, for the extents given with --dim. --order all
    runs every order of completion and compares the results bit by bit. In ring arithmetic sums do
    not round: orders, and schedules that compute the same, agree exactly.
    """
    text = read(file)
    instance: Problem | None = None
    inputs: Mapping[str, Any] = {}
    if workload is None:
        setup = _from_annotations(text, meta, target, name, dim, scalar, seed)
    else:
        if name or dim or scalar:
            raise click.UsageError("--schedule, --dim and --scalar do not go with --workload")
        instance = _problem(workload, shapes, dtype)
        inputs = _inputs(instance, families, seed)
        setup = _from_problem(text, meta, target, instance, inputs)
    orders = tuple(ORDERS) if order == "all" else (order,)
    passes = [(o, seed + i) for o in orders for i in range(seeds if ORDERS[o].draws else 1)]
    options = Options(arithmetic=arithmetic, concurrent=concurrent)
    with out.progress("simulating", len(passes)) as advance:
        runs = [execute(setup, *each, options, advance) for each in passes]
    comparison = compared(instance, inputs, runs[0], seed)
    found = [d for run in runs for d in run.findings]
    found += wrong_results(instance, comparison, setup) + order_findings(instance, runs, setup)
    unique = list({(d.fingerprint, d.span): d for d in found}.values())
    _print(out, text, setup, runs, comparison, unique)
    entries = _entries(text, setup, runs, instance, comparison)
    return out.finish(status_of(unique), entries, unique)


def _from_annotations(
    text: Text,
    meta: Mapping[str, Any],
    target: str | None,
    name: str | None,
    dims: Mapping[str, int],
    scalars: Mapping[str, float],
    seed: int,
) -> Setup:
    found = chosen(programs(text, meta, target), name)
    check_scalars(found, scalars)
    arrays = generated(found, dims, seed)
    check_guards(found, dims, scalars)
    return Setup(programs=found, arrays=arrays, scalars=scalars)


def _problem(workload: str, shapes: tuple[str, ...], dtype: str | None) -> Problem:
    contract = contract_of(workload)
    cases = cases_of(contract, shapes, dtype)
    if len(cases) > 1:
        raise click.UsageError("a simulation takes one --shape")
    instance = problem(contract, cases[0].shape, cases[0].dtype)
    check_size(sum(instance.bytes_of(spec.name) for spec in contract.tensors))
    return instance


def _inputs(instance: Problem, families: tuple[str, ...], seed: int) -> Mapping[str, Any]:
    if len(families) > 1:
        raise click.UsageError("a simulation takes one --family")
    shape = {**instance.dims, **instance.parameters}
    family = families[0] if families else "normal"
    with usage_errors():
        return generate(instance.contract, shape, instance.dtype, family, seed)


def _from_problem(
    text: Text,
    meta: Mapping[str, Any],
    target: str | None,
    instance: Problem,
    inputs: Mapping[str, Any],
) -> Setup:
    """The file bound to a problem: the contract's tensors, and temporaries for all others."""
    elaborate(text, meta, target)  # names what is wrong with --meta
    path = Path(text.file)
    file = ScheduleFile(name=path.stem, path=path, target=target, written_for=None, text=text.text)
    with usage_errors():
        bound = bind(file, instance, meta)
    tensors = dict(inputs)
    for spec in instance.contract.tensors:
        if spec.name not in inputs:
            shape, kind = instance.shape_of(spec.name), instance.dtype_of(spec.name)
            tensors[spec.name] = poisoned(shape, kind)
    for t in temporaries(bound.programs, instance):
        tensors[t.name] = poisoned(t.shape, t.dtype)
    return Setup(
        programs=bound.programs,
        arrays=Arrays(tensors=tensors, garbage=frozenset(tensors) - frozenset(inputs)),
        scalars={**instance.dims, **instance.parameters},
        outputs=frozenset(spec.name for spec in instance.contract.outputs) - frozenset(inputs),
    )


def _print(
    out: Output,
    text: Text,
    setup: Setup,
    runs: Sequence[Run],
    comparison: Comparison | None,
    found: Sequence[Diagnostic],
) -> None:
    out.findings(found, text.sources)
    out.table(
        ("order", "schedules", "CTAs", "findings"),
        [
            (r.label, " ".join(p.name for p in setup.programs), r.result.ctas, len(r.findings))
            for r in runs
        ],
    )
    results = _results(setup, runs[0])
    out.table(
        ("tensor", "shape", "dtype", "least", "greatest", "sha256"),
        [tuple(row.values()) for row in results],
    )
    if (modulus := runs[0].result.modulus) is not None:
        out.line(f"floats are residues modulo {modulus}: not compared with the reference")
    for result in comparison.tensors if comparison else ():
        verdict = "agrees with the reference" if result.ok else "is wrong"
        right = f"{result.checked - result.wrong} of {result.checked} elements right"
        out.line(f"{result.tensor} {verdict}: {right}, at most {result.max_ulp:.3g} ulp off")
    out.heading(f"{text.file}: {status_of(found).word}")


def _results(setup: Setup, run: Run) -> list[dict[str, Any]]:
    """What is in the tensors that the programs write, if they ran to their end."""
    if run.findings:
        return []
    names = dict.fromkeys(t.name for p in setup.programs for t in p.tensors if t.name in written(p))
    rows = []
    for name in names:
        array = run.tensors[name]
        wide = array.astype(np.float64) if array.size else np.zeros(1)
        rows.append(
            {
                "tensor": name,
                "shape": "x".join(map(str, array.shape)),
                "dtype": str(array.dtype),
                "least": f"{wide.min():.6g}",
                "greatest": f"{wide.max():.6g}",
                "sha256": hashlib.sha256(array.tobytes()).hexdigest()[:16],
            }
        )
    return rows


def _entries(
    text: Text,
    setup: Setup,
    runs: Sequence[Run],
    instance: Problem | None,
    comparison: Comparison | None,
) -> dict[str, Any]:
    case = instance and {
        "workload": instance.contract.name,
        "shape": {**instance.dims, **instance.parameters},
        "dtype": instance.dtype,
    }
    return {
        "file": text.file,
        "schedules": [p.name for p in setup.programs],
        "meta": {k: str(v) for p in setup.programs for k, v in p.bindings.items()},
        "problem": case,
        "runs": [
            {
                "order": r.order,
                "seed": r.seed,
                "ctas": r.result.ctas,
                "steps": r.result.steps,
                "findings": len(r.findings),
            }
            for r in runs
        ],
        "modulus": runs[0].result.modulus,
        "results": _results(setup, runs[0]),
        "comparison": comparison
        and {
            "ok": comparison.ok,
            "tensors": [
                {
                    "tensor": t.tensor,
                    "ok": t.ok,
                    "checked": t.checked,
                    "wrong": t.wrong,
                    "max_ulp": str(t.max_ulp),
                    "detail": t.detail,
                }
                for t in comparison.tensors
            ],
        },
    }
