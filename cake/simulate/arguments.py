"""Arguments of a launch: arrays and numbers against the parameters of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake.ir.dtypes import numpy_dtype
from cake.ir.program import Program, ScalarParam, TensorParam
from cake.simulate.codes import BAD_ARGUMENT
from cake.simulate.errors import Finding


def bind(
    program: Program, tensors: Mapping[str, Any], scalars: Mapping[str, int | float]
) -> dict[str, Any]:
    """Dimensions from the arrays' shapes, and typed scalar parameters, by name.

    Raises :class:`Finding` for an array or number that is missing or does not fit.
    """
    bound: dict[str, Any] = {}
    for t in program.tensors:
        if t.name not in tensors:
            raise Finding(BAD_ARGUMENT, f"tensor {t.name} is missing", {"tensor": t.name})
        _bind_tensor(t, tensors[t.name], bound)
    for p in program.params:
        if isinstance(p, ScalarParam):
            if p.name not in scalars:
                raise Finding(BAD_ARGUMENT, f"scalar {p.name} is missing", {"scalar": p.name})
            bound[p.name] = numpy_dtype(p.dtype).type(scalars[p.name])
    return bound


def _bind_tensor(t: TensorParam, array: Any, bound: dict[str, Any]) -> None:
    wanted = numpy_dtype(t.dtype)
    if array.dtype != wanted or array.ndim != len(t.shape):
        raise Finding(
            BAD_ARGUMENT,
            f"{t.name} must be {t.dtype} of rank {len(t.shape)}, "
            f"got {array.dtype} of rank {array.ndim}",
            {"tensor": t.name},
        )
    for d, extent in zip(t.shape, array.shape, strict=True):
        expected = bound.setdefault(d, np.int32(extent)) if isinstance(d, str) else d
        if int(expected) != extent:
            raise Finding(
                BAD_ARGUMENT,
                f"{t.name}: dimension {d} is {extent}, expected {int(expected)}",
                {"tensor": t.name, "extent": extent},
            )
