"""Comparison of outputs with the reference, by the tolerances of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt

import numpy as np

from cake.workloads.contract import Contract, ContractError, Shape, TensorSpec, Tolerance
from cake.workloads.errors import ElementErrors, element_errors
from cake.workloads.expected import Array, Expected, Ints
from cake.workloads.problem import Problem, problem
from cake.workloads.reference import evaluate, row_order, rows_first

# Rows beside the edges of common tiles: a random sample of a large problem may miss them.
EDGE_ROWS = (0, 1, 15, 16, 63, 64, 127, 128, 255, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The worst element of an output: where it is and by how much it is off.

    ``error_ulps`` and ``allowed_ulps`` count spacings of the output's dtype at the expected
    value (of f32 at the score, for an argmin; ones, for an integer).
    """

    index: tuple[int, ...]
    expected: float
    got: float
    error_ulps: float
    allowed_ulps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorResult:
    """The comparison of one output: ``wrong`` of ``checked`` elements are outside the tolerance;
    ``worst`` is the element that exceeds it most, or comes nearest to it."""

    tensor: str
    ok: bool
    checked: int
    wrong: int
    rel_l2: float
    rel_l2_limit: float
    max_ulp: float
    worst: Mismatch | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The comparison of all outputs; ``rows_checked`` of ``rows`` were looked at."""

    ok: bool
    rows: int
    rows_checked: int
    tensors: tuple[TensorResult, ...]

    @property
    def detail(self) -> str:
        """One line per wrong output; empty when all are right."""
        return "\n".join(f"{t.tensor}: {t.detail}" for t in self.tensors if not t.ok)


def compare(
    contract: Contract,
    shape: Shape,
    dtype: str,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    *,
    max_rows: int | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare ``outputs`` with the float64 reference on ``inputs``.

    At most ``max_rows`` rows are looked at (all if ``None``): some at the edges of tiles, the
    others drawn with ``seed``. Raises :class:`ContractError` if an array is missing or has
    another shape or dtype than the problem; the values are never a reason to raise.
    """
    instance = problem(contract, shape, dtype)
    for spec in contract.tensors:
        if spec.is_input:
            _check_array(instance, spec.name, inputs)
        if spec.is_output:
            _check_array(instance, spec.name, outputs)
    rows = choose_rows(instance.rows, max_rows, seed)
    tallies = {spec.name: _Tally(instance, spec) for spec in contract.outputs}
    flat = {name: rows_first(instance, name, outputs[name]) for name in tallies}
    for chunk, expected in evaluate(instance, inputs, rows):
        for name, tally in tallies.items():
            tally.add(chunk, expected[name], flat[name][chunk])
    results = tuple(tally.result() for tally in tallies.values())
    return Comparison(
        ok=all(result.ok for result in results),
        rows=instance.rows,
        rows_checked=len(rows),
        tensors=results,
    )


def choose_rows(rows: int, max_rows: int | None, seed: int) -> Ints:
    """Sorted row numbers to look at: all, or tile edges first and a random sample."""
    if max_rows is None or rows <= max_rows:
        return np.arange(rows)
    wanted = dict.fromkeys(
        r for edge in EDGE_ROWS for r in (edge, rows - 1 - edge) if 0 <= r < rows
    )
    chosen = np.array(list(wanted)[:max_rows], dtype=np.int64)
    sample = np.random.default_rng(seed).choice(rows, max_rows, replace=False)
    rest = np.setdiff1d(sample, chosen)[: max_rows - len(chosen)]
    return np.sort(np.concatenate([chosen, rest]))


def _check_array(instance: Problem, name: str, arrays: Mapping[str, Array]) -> None:
    where = f"{instance.contract.name}: `{name}`"
    if name not in arrays:
        raise ContractError(f"{where} is missing; given were {', '.join(arrays) or 'no arrays'}")
    array, dtype, shape = arrays[name], instance.dtype_of(name), instance.shape_of(name)
    if array.shape != shape or array.dtype != dtype:
        raise ContractError(
            f"{where} is {array.dtype} {array.shape}, the problem wants {dtype} {shape}"
        )


@dataclass(slots=True)
class _Tally:
    """Running figures of one output over the chunks."""

    instance: Problem
    spec: TensorSpec
    checked: int = 0
    wrong: int = 0
    max_ulp: float = 0.0
    worst: Mismatch | None = None
    worst_excess: float = -inf
    squares: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("error", "value", "unit", "bound"), 0.0)
    )

    @property
    def tolerance(self) -> Tolerance:
        assert self.spec.tolerance is not None  # the contract demands one of every output
        return self.spec.tolerance

    def add(self, rows: Ints, expected: Expected, got: Array) -> None:
        """Count the elements of one chunk; ``got`` has one row per number in ``rows``."""
        if got.size == 0:
            return
        dtype = self.instance.dtype_of(self.spec.name)
        errors = element_errors(expected, got, dtype, self.tolerance)
        self.checked += errors.error.size
        self.wrong += int(np.count_nonzero(errors.error > errors.allowed))
        ulps = errors.error / errors.unit
        self.max_ulp = max(self.max_ulp, float(ulps.max()))
        for name, part in errors.squares().items():
            self.squares[name] += part
        self._note_worst(rows, errors)

    def _note_worst(self, rows: Ints, errors: ElementErrors) -> None:
        excess = (errors.error - errors.allowed) / errors.unit
        at = int(excess.argmax())
        if float(excess.flat[at]) <= self.worst_excess:
            return
        self.worst_excess = float(excess.flat[at])
        row, column = divmod(at, errors.error.shape[1])
        flat = int(rows[row]) * errors.error.shape[1] + column
        shape = self.instance.shape_of(self.spec.name)
        order = row_order(self.instance, self.spec.name)
        index = np.empty(len(shape), dtype=np.int64)
        index[order] = np.unravel_index(flat, [shape[axis] for axis in order])
        unit = float(errors.unit.flat[at])
        self.worst = Mismatch(
            index=tuple(int(i) for i in index),
            expected=float(errors.expected.flat[at]),
            got=float(errors.got.flat[at]),
            error_ulps=float(errors.error.flat[at]) / unit,
            allowed_ulps=float(errors.allowed.flat[at]) / unit,
        )

    def result(self) -> TensorResult:
        error, value, unit, bound = (sqrt(self.squares[name]) for name in self.squares)
        stated = self.tolerance.rel_l2
        limit = self.tolerance.rel_l2_ulps * unit + bound if stated is None else stated * value
        rel_l2 = error / value if value else (inf if error else 0.0)
        rel_l2_limit = limit / value if value else 0.0
        # The sums above are themselves rounded; a part in 10^9 is far above their error.
        l2_ok = self.tolerance.kind != "float" or error <= limit * (1 + 1e-9)
        ok = self.wrong == 0 and l2_ok
        detail = ""
        if self.wrong:
            detail = self._describe_worst()
        elif not l2_ok:
            detail = f"relative L2 error {rel_l2:.3g}, the limit is {rel_l2_limit:.3g}"
        return TensorResult(
            tensor=self.spec.name,
            ok=ok,
            checked=self.checked,
            wrong=self.wrong,
            rel_l2=rel_l2,
            rel_l2_limit=rel_l2_limit,
            max_ulp=self.max_ulp,
            worst=self.worst,
            detail=detail,
        )

    def _describe_worst(self) -> str:
        worst = self.worst
        assert worst is not None
        size = ""
        if isfinite(worst.error_ulps):
            size = f", off by {worst.error_ulps:.3g} units, {worst.allowed_ulps:.3g} are allowed"
        return (
            f"{self.wrong} of {self.checked} elements are wrong; the worst is at "
            f"{list(worst.index)}: expected {worst.expected:.10g}, got {worst.got:.10g}{size}"
        )
