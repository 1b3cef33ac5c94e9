"""Memories of the simulator: bytes with validity, and global tensors with bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.program import Smem
from cake.ops.layout import SmemLayout, tile_offsets
from cake.simulate.errors import Finding


class SharedMemory:
    """One CTA's shared memory.

    ``valid``: the byte holds data. ``unfenced``: identity (from 1) of the unit whose plain store
    of the byte has not been followed by its proxy fence; 0 if none.
    """

    def __init__(self, layout: SmemLayout) -> None:
        self.layout = layout
        whole = -(-max(layout.bytes, 1) // 16) * 16
        self.data = np.zeros(whole, np.uint8)
        self.valid = np.zeros(self.data.size, np.bool_)
        self.unfenced = np.zeros(self.data.size, np.int32)

    def addresses(self, decl: Smem, stage: int, coordinates: Sequence[Any]) -> Any:
        """Byte address of elements at ``coordinates`` (one int array for each declared axis)."""
        if decl.stages is not None and not 0 <= stage < decl.stages:
            raise Finding(
                "CK502",
                f"stage {stage} of {decl.name} is outside its {decl.stages} stages",
                {"buffer": decl.name, "stage": stage, "stages": decl.stages},
            )
        for axis, (c, extent) in enumerate(zip(coordinates, decl.shape, strict=True)):
            if np.any(np.less(c, 0)) or np.any(np.greater_equal(c, extent)):
                bad = int(np.max(c)) if np.any(np.greater_equal(c, extent)) else int(np.min(c))
                raise Finding(
                    "CK502",
                    f"index {bad} is outside axis {axis} of {decl.name}, extent {extent}",
                    {"buffer": decl.name, "axis": axis, "index": bad, "extent": extent},
                )
        table = tile_offsets(decl.shape, decl.swizzle, decl.dtype)
        placed = self.layout.buffers[decl.name]
        base = placed.offset + stage * placed.stage_bytes
        return base + table[tuple(np.broadcast_arrays(*coordinates))]

    def read(self, decl: Smem, addresses: Any, *, asynchronous: bool) -> Any:
        """Elements at byte addresses; poison and unfenced bytes are findings."""
        size = decl.dtype.bytes
        if not (self.valid[addresses].all() and self.valid[addresses + size - 1].all()):
            raise Finding(
                "CK501",
                f"{decl.name} is read where it holds no valid data",
                {"buffer": decl.name},
            )
        if asynchronous and self.unfenced[addresses].any():
            raise Finding(
                "CK504",
                f"{decl.name} was written by plain stores and is read by the async proxy",
                {"buffer": decl.name},
            )
        return self.data.view(numpy_dtype(decl.dtype))[addresses // size]

    def write(self, decl: Smem, addresses: Any, values: Any, *, unit: int) -> None:
        """Store elements; ``unit`` is the storing unit's identity, 0 for the async proxy."""
        size = decl.dtype.bytes
        self.data.view(numpy_dtype(decl.dtype))[addresses // size] = values
        for k in range(size):
            self.valid[addresses + k] = True
            self.unfenced[addresses + k] = unit

    def fence(self, unit: int) -> None:
        """The unit's plain stores become visible to the async proxy."""
        self.unfenced[self.unfenced == unit] = 0

    def poison(self, decl: Smem, stage: int) -> None:
        """The stage's bytes hold no data any more."""
        placed = self.layout.buffers[decl.name]
        base = placed.offset + stage * placed.stage_bytes
        self.valid[base : base + placed.stage_bytes] = False


@dataclass(slots=True)
class GlobalTensor:
    """A global tensor: ``array`` of the logical shape (any strides), ``valid`` where written.

    ``valid`` is None for inputs, which are valid everywhere.
    """

    name: str
    dtype: DType
    array: Any
    valid: Any = None
    writes: Any = field(default=None)

    def inside(self, coordinates: Sequence[Any]) -> Any:
        """Which coordinates lie within the tensor."""
        ok: Any = np.bool_(True)
        for c, extent in zip(coordinates, self.array.shape, strict=True):
            ok = ok & (np.asarray(c) >= 0) & (np.asarray(c) < extent)
        return ok

    def read(self, coordinates: Sequence[Any], mask: Any, fill: Any) -> Any:
        """Elements; ``fill`` where masked or outside (None: outside is a finding)."""
        coords = np.broadcast_arrays(*coordinates, mask)[:-1]
        want = np.broadcast_to(mask, coords[0].shape)
        ok = want & self.inside(coords)
        if fill is None and np.any(want & ~ok):
            self._outside(coords, want & ~ok)
        safe = tuple(np.where(ok, c, 0) for c in coords)
        if self.array.size == 0:
            return np.full(coords[0].shape, 0 if fill is None else fill, self.array.dtype)
        if self.valid is not None and np.any(ok & ~self.valid[safe]):
            raise Finding(
                "CK509", f"{self.name} is read where nothing was written", {"tensor": self.name}
            )
        values = self.array[safe]
        if fill is None and np.all(ok):
            return values
        return np.where(ok, values, np.asarray(0 if fill is None else fill, self.array.dtype))

    def write(self, coordinates: Sequence[Any], values: Any, mask: Any, *, clip: bool) -> None:
        """Store elements where ``mask``; outside is dropped if ``clip``, else a finding."""
        coords = np.broadcast_arrays(*coordinates, mask)[:-1]
        want = np.broadcast_to(mask, coords[0].shape)
        ok = want & self.inside(coords)
        if not clip and np.any(want & ~ok):
            self._outside(coords, want & ~ok)
        chosen = tuple(c[ok] for c in coords)
        self.array[chosen] = np.broadcast_to(values, coords[0].shape)[ok]
        if self.valid is not None:
            self.valid[chosen] = True

    def update(
        self,
        coordinates: Sequence[Any],
        values: Any,
        op: Callable[[Any, Any], Any],
        mask: Any,
        *,
        clip: bool,
    ) -> Any:
        """Atomic read-modify-write, one element after another in index order."""
        coords = np.broadcast_arrays(*coordinates, mask, np.asarray(values))
        given, want, coords = coords[-1], coords[-2].astype(bool), coords[:-2]
        ok = want & self.inside(coords)
        if not clip and np.any(want & ~ok):
            self._outside(coords, want & ~ok)
        old = np.zeros(coords[0].shape, self.array.dtype)
        for i in np.ndindex(coords[0].shape):
            if ok[i]:
                place = tuple(int(c[i]) for c in coords)
                if self.valid is not None and not self.valid[place]:
                    raise Finding(
                        "CK509",
                        f"{self.name} is updated where nothing was written",
                        {"tensor": self.name},
                    )
                old[i] = self.array[place]
                self.array[place] = op(self.array[place], given[i])
        return old

    def _outside(self, coords: Sequence[Any], bad: Any) -> None:
        first = tuple(int(c[bad][0]) for c in coords)
        raise Finding(
            "CK503",
            f"{self.name} has shape {self.array.shape}, accessed at {first}",
            {"tensor": self.name, "index": str(first), "shape": str(self.array.shape)},
        )
