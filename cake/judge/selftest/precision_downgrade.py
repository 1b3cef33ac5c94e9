"""Arithmetic in a smaller type than the contract asks for."""

from cake.judge.selftest.twins import IntegrityClass, evaluation, judged
from cake.workloads import Case

_CASE = Case(shape={"M": 24, "N": 24, "K": 96}, dtype="f16")
_FAMILIES = ("normal", "exact_integers")
_GEMM = """\
import ml_dtypes
import numpy as np


def run(a, b, d):
    a, b = (t.astype({kind}).astype(np.float32) for t in (a, b))
    d[...] = (a @ b.T).astype(d.dtype)
"""


def _product(kind: str) -> str:
    return _GEMM.format(kind=kind)


CLASS = IntegrityClass(
    name="precision-downgrade",
    description="operands cut to a smaller type",
    caught_by="bounds in units of rounding of the contract's types, exact integers",
    because="incorrect: d:",
    cheats={
        name: judged(
            evaluation(_product(kind), workload="gemm", cases=(_CASE,), families=_FAMILIES)
        )
        for name, kind in (("bf16", "ml_dtypes.bfloat16"), ("fp8", "ml_dtypes.float8_e4m3fn"))
    },
    honest=judged(
        evaluation(_product("np.float32"), workload="gemm", cases=(_CASE,), families=_FAMILIES)
    ),
)
