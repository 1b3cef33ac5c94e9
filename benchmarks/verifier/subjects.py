"""The kernels that are mutated: shipped schedules with small meta parameters and small problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cake.ir.program import Program
from cake.kernels import ScheduleFile, available, bind, schedules
from cake.lang.elaborate import parse
from cake.lang.printer import print_program
from cake.workloads import Problem, get, names, problem

Shape = Mapping[str, int | str]

_POINTS: tuple[Shape, ...] = (
    {"B": 1, "N": 70, "K": 196, "D": 40},
    {"B": 2, "N": 130, "K": 33, "D": 64},
    {"B": 1, "N": 20, "K": 20, "D": 72},
)
_TOKENS: Shape = {"H": 1, "Hb": 1, "D": 128, "V": 128}
SHAPES: Mapping[str, tuple[Shape, ...]] = {
    "attention": (
        {"B": 1, "H": 1, "Hkv": 1, "Lq": 70, "Lk": 264, "D": 64},
        {"B": 1, "H": 2, "Hkv": 1, "Lq": 130, "Lk": 130, "D": 40},
        {"B": 1, "H": 1, "Hkv": 1, "Lq": 20, "Lk": 0, "D": 64},
        {"B": 1, "H": 1, "Hkv": 1, "Lq": 20, "Lk": 20, "D": 72},
    ),
    "gemm": (
        {"M": 70, "N": 136, "K": 264},
        {"M": 20, "N": 264, "K": 136},
        {"M": 40, "N": 24, "K": 0},
        {"M": 600, "N": 136, "K": 64},
    ),
    "kda_prefill": (
        {**_TOKENS, "T": 17, "N": 1, "N1": 2},
        {**_TOKENS, "T": 53, "N": 3, "N1": 4, "lengths": "33+0+20"},
        {**_TOKENS, "T": 67, "N": 1, "N1": 2},
    ),
    "kmeans_assign": _POINTS,
    "knn_search": (
        {"B": 1, "Q": 3, "M": 700, "D": 72, "k": 8},
        {"B": 2, "Q": 5, "M": 150, "D": 104, "k": 5},
    ),
    "kmeans_update": (
        {"B": 1, "N": 70, "K": 37, "D": 40},
        {"B": 1, "N": 4090, "K": 5, "D": 8},
        {"B": 1, "N": 20, "K": 5, "D": 42},
    ),
    "rmsnorm": ({"M": 3, "D": 72}, {"M": 2, "D": 200}, {"M": 2, "D": 41}, {"M": 2, "D": 300}),
    "softmax": ({"M": 3, "N": 328}, {"M": 2, "N": 40}, {"M": 2, "N": 41}),
}
"""Several tiles, tails in every dimension, loops of one round, empty problems where allowed. The
last ones lie beyond the guards of some schedule: only a mutant without the guard meets them."""

SMALL: Mapping[str, Mapping[str, Any]] = {
    "attention/sm_90a": {"DP": 64, "BN": 64},
    "gemm/sm_80": {"WM": 1, "WN": 2, "TM": 32, "TN": 32, "BK": 32, "STAGES": 3},
    "gemm/sm_90a": {"WG": 2, "BN": 128, "STAGES": 3},
    "gemm/sm_90a_small_m": {"STAGES": 4},
    "kda_prefill/sm_90a": {"TILE": 32},
    "kmeans_assign/sm_80": {"DP": 64, "BN": 32, "ROWS": 16},
    "kmeans_assign/sm_90a": {"WG": 2, "DP": 64, "HEAD": 48, "BN": 64, "STAGES": 2},
    "kmeans_update/sm_80": {"WARPS": 16, "CHUNK": 4096, "ROWS": 4},
    "kmeans_update/sm_90a_deterministic": {"WARPS": 16, "POINTS": 4096, "KP": 512, "ROWS": 4},
    "gemm/sm_100a": {"BN": 128, "STAGES": 3},
    "knn_search/sm_90a": {"WG": 1, "NG": 1024, "PER": 8, "WARPS": 2},
    "knn_search/sm_90a_lists": {"WG": 1, "SPLITS": 8, "KP": 8},
    "rmsnorm/sm_80": {"WARPS": 2, "V": 2, "PER": 2},
    "softmax/sm_80": {"WARPS": 2, "V": 2},
}
"""Meta parameters that make a schedule quick to simulate; others keep their defaults."""

FEW_ROWS: Mapping[str, int] = {"gemm/sm_90a_small_m": 20}
"""Rows that a schedule is limited to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A schedule file and the problems it is tried on. ``text`` is its canonical source."""

    name: str
    workload: str
    text: str
    shapes: tuple[Shape, ...]

    @property
    def target(self) -> str:
        """The architecture in the file's name."""
        return next(p.target for p in self.programs())

    def programs(self) -> tuple[Program, ...]:
        """The programs of the canonical text, in launch order."""
        return parse(self.text, self.name).programs

    def problems(self) -> tuple[Problem, ...]:
        """The problems that every mutant is simulated on."""
        return tuple(problem(get(self.workload), dict(s), "bf16") for s in self.shapes)


@cache
def subjects() -> tuple[Subject, ...]:
    """Every shipped schedule whose workload has shapes here."""
    return tuple(
        _subject(workload, file)
        for workload in names()
        for target in available(workload)
        for file in schedules(workload, target)
        if file.written_for == target and SHAPES.get(workload)
    )


def _subject(workload: str, file: ScheduleFile) -> Subject:
    name = f"{workload}/{file.name}"
    shapes = tuple({**s, "M": FEW_ROWS[name]} if name in FEW_ROWS else s for s in SHAPES[workload])
    first = problem(get(workload), dict(shapes[0]), "bf16")
    programs = bind(file, first, SMALL.get(name)).programs
    text = "\n\n".join(print_program(p) for p in programs)
    return Subject(name=name, workload=workload, text=text, shapes=shapes)


def subject(name: str) -> Subject:
    """The subject called ``name``, e.g. ``gemm/sm_90a`` (KeyError if there is none)."""
    return {s.name: s for s in subjects()}[name]
