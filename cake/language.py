"""Names that stand in annotations of schedules, for editors and normal Python modules.

``from cake.language import *`` gives ``Tensor``, ``meta`` and the element types a meaning to
Python, so that a module with ``@cake.schedule`` functions imports. Schedules are parsed from
their source; nothing here is used by the compiler.
"""

from __future__ import annotations

from typing import Any

from cake.ir.dtypes import BF16 as bf16
from cake.ir.dtypes import BOOL as bool_
from cake.ir.dtypes import E4M3 as e4m3
from cake.ir.dtypes import E5M2 as e5m2
from cake.ir.dtypes import F16 as f16
from cake.ir.dtypes import F32 as f32
from cake.ir.dtypes import F64 as f64
from cake.ir.dtypes import I8 as i8
from cake.ir.dtypes import I32 as i32
from cake.ir.dtypes import I64 as i64
from cake.ir.dtypes import TF32 as tf32
from cake.ir.dtypes import U8 as u8
from cake.ir.dtypes import U16 as u16
from cake.ir.dtypes import U32 as u32


class Tensor:
    """``Tensor[dtype, dim, ...]``: a kernel argument; a dim is an int or a name in quotes."""

    def __class_getitem__(cls, item: Any) -> type[Tensor]:
        return cls


def meta(*domain: Any) -> tuple[Any, ...]:
    """``NAME: meta(v0, v1, ...) = default``: a parameter of the search space."""
    return domain


__all__ = [
    "Tensor",
    "bf16",
    "bool_",
    "e4m3",
    "e5m2",
    "f16",
    "f32",
    "f64",
    "i8",
    "i32",
    "i64",
    "meta",
    "tf32",
    "u8",
    "u16",
    "u32",
]
