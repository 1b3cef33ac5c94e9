"""Small programs that exercise primitives: simulated and built in test_registry.py, and run on a
GPU by test_registry_gpu.py. Arrays have element types that every array library knows.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.ops import (
    test_column_folds,
    test_machine_state,
    test_operand_layouts,
    test_scans,
    test_tickets,
    test_transpose,
)
from tests.ops.example import Arrays, Example, warp, zeros
from tests.ops.examples_memory import MEMORY
from tests.ops.examples_products import PRODUCTS
from tests.ops.examples_registers import REGISTERS
from tests.ops.schedules import program


def _scanned() -> Arrays:
    x = np.random.default_rng(28).integers(-(2**20), 2**20, (128, 48)).astype(np.int32)
    return {"x": x, "y": zeros(4, 128, 32, dtype=np.int32)}


def _chain() -> Arrays:
    x = np.random.default_rng(29).integers(-4, 5, (32, 16)).astype(np.float32)
    return {"x": x, "y": zeros(4, 32, 32)}


def _folded() -> Arrays:
    x = np.random.default_rng(30).standard_normal((128, 32)).astype(np.float32)
    return {"x": x, "y": zeros(4, 32), "at": zeros(32, dtype=np.int32)}


def _unchecked(arrays: Arrays) -> Arrays:
    """Values are checked where the program comes from."""
    return {}


EXAMPLES = {
    **REGISTERS,
    **MEMORY,
    **PRODUCTS,
    "scans": Example(make=lambda: test_scans.scans(64, 128), arrays=_scanned, expected=_unchecked),
    "scans of registers": Example(
        make=warp(test_scans.REGISTERS, params=test_scans.PARAMS, role="warpgroups=1"),
        arrays=_scanned,
        expected=_unchecked,
    ),
    "column folds": Example(
        make=lambda: test_column_folds.folds(64, 128), arrays=_folded, expected=_unchecked
    ),
    "transposes": Example(
        make=warp(test_transpose.CHAIN, params=test_transpose.PARAMS),
        arrays=_chain,
        expected=_unchecked,
    ),
    "tickets": Example(
        make=lambda: program(test_tickets.ROLES, test_tickets.DECLS, params=test_tickets.PARAMS),
        arrays=lambda: test_tickets.tensors(42),
        expected=lambda arrays: {"y": 2 * arrays["x"]},
        free=("who",),
    ),
    **{
        f"operands of {dtype} by {threads} threads": Example(
            make=partial(test_operand_layouts.product, dtype, "sm_90a", threads),
            arrays=partial(test_operand_layouts.arrays, dtype),
            expected=_unchecked,
        )
        for dtype in test_operand_layouts.TYPES
        for threads in (32, 128)
    },
    "place": Example(
        make=warp(test_machine_state.PLACE, "b = grid(4)", params=test_machine_state.PARAMS),
        arrays=test_machine_state.tensors,
        expected=_unchecked,
        free=("y", "t"),
    ),
    "time": Example(
        make=warp(test_machine_state.TIME, params=test_machine_state.PARAMS),
        arrays=test_machine_state.tensors,
        expected=_unchecked,
        free=("y", "t"),
    ),
    "register budgets": Example(
        make=lambda: program(
            test_machine_state.REGISTERS,
            test_machine_state.ROLES,
            params=test_machine_state.PARAMS,
        ),
        arrays=test_machine_state.tensors,
        expected=_unchecked,
    ),
}
"""Every example by name."""
