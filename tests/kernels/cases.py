"""Every shipped schedule file, and the problems that it is tried on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cake.diag import Diagnostic
from cake.ir.program import Program
from cake.kernels import ScheduleFile, available, bind, poisoned, schedules, simulate_schedule
from cake.simulate import Order
from cake.workloads import Comparison, Problem, compare, generate, get, names, problem

Shape = dict[str, Any]

ODD: dict[str, Shape] = {
    "attention": {"B": 1, "H": 2, "Hkv": 1, "Lq": 70, "Lk": 75, "D": 40},
    "gemm": {"M": 70, "N": 136, "K": 104},
    "kmeans_assign": {"B": 2, "N": 70, "K": 36, "D": 40},
    "kmeans_update": {"B": 1, "N": 70, "K": 37, "D": 40},
    "rmsnorm": {"M": 5, "D": 328},
    "softmax": {"M": 5, "N": 328},
}
"""A small shape with a tail in every dimension, on which every family is tried."""

_POINTS: tuple[Shape, ...] = (
    {"B": 1, "N": 1, "K": 1, "D": 8},
    {"B": 1, "N": 1, "K": 64, "D": 64},
    {"B": 1, "N": 64, "K": 1, "D": 16},
    {"B": 2, "N": 65, "K": 33, "D": 24},
    {"B": 1, "N": 127, "K": 129, "D": 72},
    {"B": 3, "N": 37, "K": 292, "D": 128},
    {"B": 1, "N": 0, "K": 8, "D": 16},
)
EDGES: dict[str, tuple[Shape, ...]] = {
    "attention": (
        {"B": 1, "H": 1, "Hkv": 1, "Lq": 1, "Lk": 1, "D": 8},
        {"B": 1, "H": 3, "Hkv": 3, "Lq": 65, "Lk": 1, "D": 64},
        {"B": 1, "H": 6, "Hkv": 2, "Lq": 1, "Lk": 100, "D": 64},
        {"B": 2, "H": 2, "Hkv": 1, "Lq": 129, "Lk": 127, "D": 128},
        {"B": 1, "H": 2, "Hkv": 2, "Lq": 33, "Lk": 190, "D": 24, "causal": 0},
        {"B": 1, "H": 2, "Hkv": 1, "Lq": 0, "Lk": 8, "D": 16},
        {"B": 1, "H": 2, "Hkv": 2, "Lq": 8, "Lk": 0, "D": 16},
    ),
    "gemm": (
        {"M": 1, "N": 8, "K": 8},
        {"M": 1, "N": 128, "K": 64},
        {"M": 17, "N": 40, "K": 72},
        {"M": 64, "N": 128, "K": 384},
        {"M": 127, "N": 136, "K": 264},
        {"M": 0, "N": 64, "K": 64},
        {"M": 64, "N": 0, "K": 64},
    ),
    "kmeans_assign": _POINTS,
    "kmeans_update": _POINTS,
    "rmsnorm": (
        {"M": 1, "D": 1},
        {"M": 1, "D": 128},
        {"M": 3, "D": 65},
        {"M": 33, "D": 72},
        {"M": 2, "D": 4100},
        {"M": 0, "D": 128},
    ),
    "softmax": (
        {"M": 1, "N": 1},
        {"M": 5, "N": 1},
        {"M": 3, "N": 65},
        {"M": 33, "N": 72},
        {"M": 2, "N": 4100},
        {"M": 0, "N": 128},
    ),
}
"""Dimensions of 0 and 1, one less and one more than a tile, several tiles."""


OWN: dict[str, tuple[tuple[str, Shape], ...]] = {
    "gemm/sm_90a": (
        ("bf16_f32", ODD["gemm"]),
        ("f16_f32", {"M": 129, "N": 264, "K": 72}),
        ("bf16", {**ODD["gemm"], "b_layout": "kn"}),
        ("f16_f32", {"M": 129, "N": 264, "K": 65 * 8, "b_layout": "kn"}),
        ("f16", {"B": 3, **ODD["gemm"]}),
        ("bf16_f32", {"B": 2, "M": 65, "N": 40, "K": 72, "b_layout": "kn"}),
        ("bf16", {"B": 0, "M": 65, "N": 40, "K": 72}),
    ),
    "gemm/sm_80": (("bf16_f32", ODD["gemm"]),),
    "gemm/sm_80_any": (
        ("bf16", {"M": 1, "N": 1, "K": 1}),
        ("f16", {"M": 17, "N": 41, "K": 73}),
        ("bf16_f32", {"M": 129, "N": 131, "K": 33}),
        ("f16_f32", {"M": 129, "N": 131, "K": 0}),
        ("bf16", {"M": 33, "N": 135, "K": 65, "b_layout": "kn"}),
        ("f16", {"B": 3, "M": 33, "N": 35, "K": 65}),
        ("bf16_f32", {"B": 2, "M": 65, "N": 129, "K": 31, "b_layout": "kn"}),
        ("bf16", {"B": 0, "M": 5, "N": 7, "K": 3}),
    ),
    "kmeans_assign/sm_80_simt": (
        ("f32", {"B": 2, "N": 17, "K": 70, "D": 40}),
        ("f32", {"B": 1, "N": 1, "K": 1, "D": 1}),
        ("f32", {"B": 3, "N": 16, "K": 65, "D": 33}),
        ("bf16", {"B": 2, "N": 5, "K": 130, "D": 7}),
        ("f16", {"B": 1, "N": 33, "K": 35, "D": 31}),
        ("f32", {"B": 1, "N": 0, "K": 8, "D": 16}),
    ),
}
"""Element types and shapes that a file alone takes, or that its faster neighbours refuse."""

SLOW: dict[str, Shape] = {"kmeans_assign/sm_80_simt": {"B": 2, "N": 9, "K": 36, "D": 20}}
"""The odd shape of files that take long to simulate; their only edges are their own."""

FEWER_WARPS: dict[str, dict[str, int]] = {
    "kmeans_assign/sm_80_simt": {"WARPS": 4, "ROWS": 4, "COLS": 2, "BD": 16},
    "kmeans_update/sm_90a_deterministic": {"WARPS": 16, "PARTS": 2, "POINTS": 4096, "KP": 512},
}
"""Parameters of files whose defaults are slow to simulate; their defaults are tried once each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A schedule file on one problem with one family of inputs.

    ``defaults``: with the file's own parameters, however slow.
    """

    workload: str
    file: ScheduleFile
    shape: Shape
    family: str = "normal"
    dtype: str = "bf16"
    defaults: bool = False

    @property
    def label(self) -> str:
        sizes = "-".join(f"{name}{value}" for name, value in self.shape.items())
        target = "" if self.file.written_for == self.file.target else f"@{self.file.target}"
        return f"{self.workload}/{self.file.name}{target}-{sizes}-{self.dtype}-{self.family}"

    def problem(self) -> Problem:
        return problem(get(self.workload), self.shape, self.dtype)

    def programs(self) -> tuple[Program, ...]:
        """The file's programs for the problem; raises Misfit if it does not admit it."""
        name = f"{self.workload}/{self.file.name}"
        given = {} if self.defaults else FEWER_WARPS.get(name, {})
        return bind(self.file, self.problem(), given).programs

    def inputs(self) -> dict[str, Any]:
        return generate(get(self.workload), self.shape, self.dtype, self.family, 7)

    def garbage(self) -> dict[str, Any]:
        """The contract's outputs and workspaces, all poison."""
        made = self.problem()
        return {
            spec.name: poisoned(made.shape_of(spec.name), made.dtype_of(spec.name))
            for spec in made.contract.tensors
            if not spec.is_input
        }

    def judged(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> Comparison:
        """The outputs against the float64 reference."""
        return compare(get(self.workload), self.shape, self.dtype, inputs, outputs)

    def simulate(
        self,
        inputs: dict[str, Any],
        programs: Sequence[Program] | None = None,
        order: str | Order = "late",
        seed: int = 0,
    ) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
        """Outputs and findings of a simulation."""
        outputs = self.garbage()
        made = self.programs() if programs is None else programs
        found = simulate_schedule(
            made, self.problem(), {**inputs, **outputs}, order=order, seed=seed
        )
        return outputs, found


def files() -> list[tuple[str, ScheduleFile]]:
    """Every shipped file once, for the target that it was written for.

    Delta attention and the neighbour search have tests of their own, with shapes and tiles that a
    simulation can afford.
    """
    return [
        (workload, file)
        for workload in names()
        if workload not in ("kda_prefill", "knn_search")
        for target in available(workload)
        for file in schedules(workload, target)
        if file.written_for == target
    ]


def odd_shape(workload: str, file: str) -> Shape:
    """The shape for the families; a workload without one here gets its first small shape."""
    found = SLOW.get(f"{workload}/{file}") or ODD.get(workload)
    return found or dict(get(workload).shapes["small"][0].shape)


def family_trials() -> Iterator[Trial]:
    """Every file on every family of inputs, at the odd shape."""
    for workload, file in files():
        for family in get(workload).families:
            shape = odd_shape(workload, file.name)
            yield Trial(workload=workload, file=file, shape=shape, family=family.name)


def edge_trials() -> Iterator[Trial]:
    """Every file on the edge shapes and its own; at the odd shape in f16 with its defaults, and for
    sm_90a."""
    for workload, file in files():
        name = f"{workload}/{file.name}"
        odd = odd_shape(workload, file.name)
        yield Trial(workload=workload, file=file, shape=odd, dtype="f16", defaults=True)
        if file.written_for == "sm_80":
            later = replace(file, target="sm_90a")
            yield Trial(workload=workload, file=later, shape=odd)
        for shape in () if name in SLOW else EDGES.get(workload, ()):
            yield Trial(workload=workload, file=file, shape=shape)
        for dtype, shape in OWN.get(name, ()):
            yield Trial(workload=workload, file=file, shape=shape, dtype=dtype)
