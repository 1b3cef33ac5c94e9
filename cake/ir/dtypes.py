"""Element types, by the names PTX and CUTLASS use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

Kind = Literal["float", "int", "uint", "bool"]


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: name, width in bits and kind."""

    name: str
    bits: int
    kind: Kind

    @property
    def bytes(self) -> int:
        """Size in bytes (sub-byte types are only addressed in pairs)."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind in ("int", "uint")

    def __repr__(self) -> str:
        return self.name


BF16 = DType("bf16", 16, "float")
F16 = DType("f16", 16, "float")
TF32 = DType("tf32", 32, "float")
F32 = DType("f32", 32, "float")
F64 = DType("f64", 64, "float")
E4M3 = DType("e4m3", 8, "float")
E5M2 = DType("e5m2", 8, "float")
I8 = DType("i8", 8, "int")
U8 = DType("u8", 8, "uint")
U16 = DType("u16", 16, "uint")
I32 = DType("i32", 32, "int")
U32 = DType("u32", 32, "uint")
I64 = DType("i64", 64, "int")
BOOL = DType("bool", 8, "bool")

DTYPES: dict[str, DType] = {
    d.name: d for d in (BF16, F16, TF32, F32, F64, E4M3, E5M2, I8, U8, U16, I32, U32, I64, BOOL)
}


@cache
def numpy_dtype(dtype: DType) -> Any:
    """The numpy (or ml_dtypes) type that stores ``dtype``; tf32 is stored as float32."""
    import numpy as np

    if dtype.name in _ML_DTYPES:
        import ml_dtypes  # only where needed: it takes half a second to import

        return np.dtype(getattr(ml_dtypes, _ML_DTYPES[dtype.name]))
    return np.dtype(_NUMPY[dtype.name])


_ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_NUMPY = {
    "f16": "float16",
    "tf32": "float32",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "u8": "uint8",
    "u16": "uint16",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "bool": "bool",
}
