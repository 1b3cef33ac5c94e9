"""Small schedules for the tests of the simulator, and how they are run."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent, indent
from typing import Any

import ml_dtypes
import numpy as np

from cake.diag import Diagnostic
from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.simulate import Simulation, simulate

BF = ml_dtypes.bfloat16
PARAMS = (
    "x: Tensor[bf16, 64, 64], y: Tensor[f32, 64, 64], z: Tensor[bf16, 64, 64],"
    " v: Tensor[f32, 128], c: Tensor[i32, 8]"
)


def source(body: str, *, params: str = PARAMS, target: str = "sm_90a") -> str:
    """The text of a schedule with declarations and roles ``body``."""
    head = f'@cake.schedule(target="{target}")\ndef kernel({params}):\n'
    return head + indent(dedent(body).strip("\n"), "    ") + "\n"


def program(body: str, **options: str) -> Program:
    """The elaborated program; a rejected schedule raises CakeError."""
    return parse(source(body, **options)).program()


def arrays() -> dict[str, Any]:
    """Tensors for ``PARAMS``: x and v count, y, z and c are zero."""
    return {
        "x": (np.arange(64 * 64).reshape(64, 64) % 13 - 6).astype(BF),
        "y": np.zeros((64, 64), np.float32),
        "z": np.zeros((64, 64), BF),
        "v": np.arange(128, dtype=np.float32),
        "c": np.zeros(8, np.int32),
    }


def run(body: str, given: Mapping[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Tensors after a run that has no findings."""
    made = program(body, **{k: options.pop(k) for k in ("params", "target") if k in options})
    tensors = dict(arrays() if given is None else given)
    result = simulate(made, tensors, **options)
    assert result.ok, [d.message for d in result.findings]
    return tensors


def finding(body: str, given: Mapping[str, Any] | None = None, **options: Any) -> Diagnostic:
    """The only finding of a run."""
    made = program(body, **{k: options.pop(k) for k in ("params", "target") if k in options})
    result: Simulation = simulate(made, dict(arrays() if given is None else given), **options)
    assert len(result.findings) == 1, result
    return result.findings[0]


def line_of(body: str, part: str, **options: str) -> int:
    """Number of the first line of the schedule that contains ``part``."""
    lines = source(body, **options).splitlines()
    return next(i for i, line in enumerate(lines, 1) if part in line)
