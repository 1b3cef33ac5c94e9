"""Types of Cake IR. They compare by content.

Values live in registers. A *unit* is what executes a role's body in lock-step as far as the
language is concerned: one warp (32 threads) or one warpgroup (128 threads). ``varying`` says that
threads of the unit may hold different values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cake.ir.dtypes import DType

WARP = 32
WARPGROUP = 128
DIM_LIMIT = 2**31 - 2**16
"""Run-time dimensions are below this (the launch checks it): so an index of a tile that begins
within one, and what ``cdiv`` adds, are i32."""


class Type:
    """Base of all types."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Scalar(Type):
    """One value a thread; ``varying=False`` means equal in all threads of the unit."""

    dtype: DType
    varying: bool = False

    def __str__(self) -> str:
        return f"{self.dtype}{' per thread' if self.varying else ''}"


@dataclass(frozen=True, slots=True)
class RegArray(Type):
    """A per-thread array of registers, ``length`` elements, row-major if opened from 2-D."""

    dtype: DType
    length: int

    def __str__(self) -> str:
        return f"registers({self.dtype}, {self.length})"


FragmentLayout = Literal["acc", "b", "a_ldmatrix", "b_ldmatrix"]


@dataclass(frozen=True, slots=True)
class Fragment(Type):
    """A register tile distributed over the threads of a unit by the MMA that makes or eats it.

    ``acc``: accumulator layout of mma.m16n8 / wgmma.m64nN, which for 16-bit data is also the A
    operand layout. ``b``: B operand of mma.m16n8k16 with shape (K, N). ``a_ldmatrix`` and
    ``b_ldmatrix``: operands of 8- and 32-bit elements as ldmatrix brings them, four bytes of a row
    a lane; which columns these are depends on the width. ``warps`` is 1 or 4: rows are split evenly
    over the warps (wgmma), so a fragment of a warpgroup has 64 rows an atom.
    """

    dtype: DType
    shape: tuple[int, int]
    layout: FragmentLayout
    warps: int

    @property
    def registers(self) -> int:
        """Elements held by each thread."""
        return self.shape[0] * self.shape[1] // (WARP * self.warps)

    def __str__(self) -> str:
        return f"fragment({self.dtype}, {self.shape[0]}x{self.shape[1]}, {self.layout})"


@dataclass(frozen=True, slots=True)
class RowVector(Type):
    """One value for each row of an ``acc`` fragment, held by the four lanes of its quad.

    ``partial=False``: the four lanes agree. ``partial=True``: each lane holds its own candidate
    (over the columns it owns); ``reduce_quad`` or ``argmin_quad`` make it whole.
    """

    dtype: DType
    rows: int
    warps: int
    partial: bool = False

    @property
    def registers(self) -> int:
        return self.rows // (8 * self.warps)

    def __str__(self) -> str:
        return f"row_vector({self.dtype}, {self.rows}{', partial' if self.partial else ''})"


@dataclass(frozen=True, slots=True)
class ColVector(Type):
    """One value for each column of an ``acc`` fragment, held by the eight lanes of equal
    ``lane % 4`` in every warp of the unit.

    ``partial=False``: all of them agree. ``partial=True``: each lane holds its own candidate (over
    the rows it owns); ``reduce_octet`` or ``argmin_octet`` make it whole.
    """

    dtype: DType
    cols: int
    partial: bool = False

    @property
    def registers(self) -> int:
        return self.cols // 4

    def __str__(self) -> str:
        return f"col_vector({self.dtype}, {self.cols}{', partial' if self.partial else ''})"


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    """Several results of one primitive."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return "(" + ", ".join(str(t) for t in self.items) + ")"


@dataclass(frozen=True, slots=True)
class Void(Type):
    """A primitive that returns nothing."""

    def __str__(self) -> str:
        return "nothing"


@dataclass(frozen=True, slots=True)
class Slot(Type):
    """A stage of a pipeline, as returned by ``fill``/``use``/``acquire``/``wait``."""

    pipeline: str

    def __str__(self) -> str:
        return f"slot of {self.pipeline}"


@dataclass(frozen=True, slots=True)
class SmemView(Type):
    """A tile in shared memory: element type, extents (outermost first), swizzle in bytes.

    ``transposed`` swaps the last two extents without moving data.
    """

    dtype: DType
    shape: tuple[int, ...]
    swizzle: int
    transposed: bool = False

    def __str__(self) -> str:
        t = ".T" if self.transposed else ""
        return f"smem({self.dtype}, {'x'.join(map(str, self.shape))}){t}"


@dataclass(frozen=True, slots=True)
class TmemView(Type):
    """A block of tensor memory: 128 lanes by ``cols`` 32-bit columns."""

    dtype: DType
    shape: tuple[int, int]

    def __str__(self) -> str:
        return f"tmem({self.dtype}, {self.shape[0]}x{self.shape[1]})"


@dataclass(frozen=True, slots=True)
class TensorPlace(Type):
    """A coordinate in a global tensor: where a copy or a load begins."""

    dtype: DType
    rank: int

    def __str__(self) -> str:
        return f"place in a rank-{self.rank} {self.dtype} tensor"


@dataclass(frozen=True, slots=True)
class Resource(Type):
    """A declared thing that is not a value: pipeline, barrier, role, tiles, ..."""

    kind: str

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class StaticType(Type):
    """A compile-time attribute (string, number, dtype, tuple, None)."""

    def __str__(self) -> str:
        return "compile-time value"


def element_dtype(t: Type) -> DType | None:
    """Element type of a value type, None for non-values."""
    if isinstance(
        t, Scalar | RegArray | Fragment | RowVector | ColVector | SmemView | TmemView | TensorPlace
    ):
        return t.dtype
    return None


def registers(t: Type) -> int:
    """Elements a thread holds for a value of type ``t`` (0 for non-values)."""
    if isinstance(t, Scalar):
        return 1
    if isinstance(t, RegArray):
        return t.length
    if isinstance(t, Fragment | RowVector | ColVector):
        return t.registers
    return 0


def is_array(t: Type) -> bool:
    """Whether a value of type ``t`` occupies a register array."""
    return isinstance(t, RegArray | Fragment | RowVector | ColVector)
