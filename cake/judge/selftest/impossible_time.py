"""Times that no device can reach."""

from cake.judge.floor import impossible
from cake.judge.selftest.twins import IntegrityClass, Outcome, Trial
from cake.workloads import Problem, get, problem

_CUBE = problem(get("gemm"), {"M": 8192, "N": 8192, "K": 8192}, "bf16")
_ROWS = problem(get("rmsnorm"), {"M": 65536, "D": 8192}, "bf16")


def _claimed(instance: Problem, milliseconds: float) -> Trial:
    def trial() -> Outcome:
        found = impossible(instance, "NVIDIA H200", milliseconds)
        return Outcome(caught=bool(found), evidence=found or f"{milliseconds} ms is possible")

    return trial


CLASS = IntegrityClass(
    name="impossible-time",
    description="a time below what bytes and operations need",
    caught_by="the physics floor of the contract's formulas and the device's sheet",
    because="below the physics floor",
    cheats={"operations": _claimed(_CUBE, 0.5), "bytes": _claimed(_ROWS, 0.1)},
    honest=_claimed(_CUBE, 1.39),
)
