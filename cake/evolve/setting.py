"""What a run is about: fixed when it starts, stored with it, and sent to every worker."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from cake.evolve.space import Variant
from cake.ir.program import Program
from cake.kernels import launchable
from cake.workloads import Case, Contract, Problem, get, problem

ORDERS = ("late", "early")
"""Adversarial orders of the simulator: asynchronous work lands as late, or as early, as it may."""

FAMILIES = ("normal", "exact_integers")
"""Input families of an evaluation: rounding, and exact results that show every wrong element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The problem of a run and its variants.

    ``part`` is what estimates are for; ``device`` is ``cuda`` if candidates are measured;
    ``baseline`` is timed beside them then.
    """

    workload: str
    target: str
    case: Case
    part: str
    device: str
    baseline: str | None
    seed: int
    keep: float
    variants: tuple[Variant, ...]

    @property
    def contract(self) -> Contract:
        return get(self.workload)

    @property
    def problem(self) -> Problem:
        return problem(self.contract, self.case.shape, self.case.dtype)

    @property
    def numbers(self) -> dict[str, int | float]:
        """Dimensions and numeric parameters of the problem, for estimates."""
        instance = self.problem
        numeric = {k: v for k, v in instance.parameters.items() if not isinstance(v, str)}
        return {**numeric, **instance.dims}

    def variant(self, name: str) -> Variant:
        """The variant called ``name``."""
        return next(v for v in self.variants if v.name == name)

    def to_json(self) -> str:
        """JSON text."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["case"] = {"shape": dict(self.case.shape), "dtype": self.case.dtype}
        data["variants"] = [asdict(v) for v in self.variants]
        # Not sorted: the order of a variant's domains is that of the space.
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> Setting:
        """The setting written by :meth:`to_json`. Raises ``ValueError``, ``KeyError``."""
        data: dict[str, Any] = json.loads(text)
        variants = tuple(
            Variant(
                **{
                    **v,
                    "domains": {n: tuple(d) for n, d in v["domains"].items()},
                    "typed": tuple(v["typed"]),
                }
            )
            for v in data.pop("variants")
        )
        return cls(case=Case(**data.pop("case")), variants=variants, **data)


def simulation_cases(programs: Sequence[Program], setting: Setting) -> tuple[Case, ...]:
    """Reduced shapes that programs are simulated at: a regular one, and one with tails.

    Of the contract's small and edge shapes with the type of the run that the programs admit, the
    one in the middle by its operations.
    """
    contract = setting.contract
    chosen = []
    for name in ("small", "edge"):
        fitting = []
        for case in contract.shapes[name]:
            if case.dtype != setting.case.dtype:
                continue
            instance = problem(contract, case.shape, case.dtype)
            if instance.rows and instance.flops and not launchable(programs, instance):
                fitting.append((instance.flops, case))
        fitting.sort(key=lambda pair: pair[0])
        if fitting:
            chosen.append(fitting[len(fitting) // 2][1])
    return tuple(chosen)
