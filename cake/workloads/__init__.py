"""Workloads: what kernels have to compute, on which inputs, and how exactly.

:func:`get` finds a contract, :func:`generate` makes its inputs, :func:`compare` judges outputs
against the float64 reference.
"""

from cake.workloads.check import Comparison, Mismatch, TensorResult, compare
from cake.workloads.contract import Case, Contract, ContractError, Family, Shape, TensorSpec
from cake.workloads.inputs import generate
from cake.workloads.problem import Problem, problem
from cake.workloads.reference import reference_outputs
from cake.workloads.registry import UnknownWorkloadError, get, names

__all__ = [
    "Case",
    "Comparison",
    "Contract",
    "ContractError",
    "Family",
    "Mismatch",
    "Problem",
    "Shape",
    "TensorResult",
    "TensorSpec",
    "UnknownWorkloadError",
    "compare",
    "generate",
    "get",
    "names",
    "problem",
    "reference_outputs",
]
