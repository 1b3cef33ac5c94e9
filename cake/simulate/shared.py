"""Shared memory of one CTA: bytes with validity and with who accessed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cake.diag import Related
from cake.ir.dtypes import numpy_dtype
from cake.ir.program import Program, Smem
from cake.ir.types import SmemView
from cake.ops.layout import smem_layout, tile_offsets
from cake.simulate.codes import POISON_READ, PROXY, PROXY_BARRIER, RACE, SMEM_BOUNDS
from cake.simulate.engine import Engine
from cake.simulate.errors import Finding, Origin
from cake.simulate.global_memory import check_stored
from cake.simulate.stamps import FENCED, SETTLED, STORED, Accesses, Row, Stamps

Excused = Callable[[Any], bool]
"""Whether an access by several threads of a unit, given as a mask, does no harm."""
WORD = 16
"""The block of memory is a multiple of the widest element, so that it can be viewed as any."""


_WHY = {
    (False, False): "nothing has been written there",
    (False, True): "the copy that brings it has not completed",
    (True, False): "its stage was released and has not been filled again",
    (True, True): "its stage was released, and the copy that fills it again has not completed",
}
"""Why bytes hold no data: by whether they were released, and whether a copy is in flight."""


class SharedMemory:
    """One CTA's shared memory.

    ``valid``: the byte holds data. ``stored`` and ``loaded``: the rows of ``stamps`` for its last
    store and its last load.
    """

    def __init__(self, program: Program, stamps: Stamps, engine: Engine) -> None:
        self.engine = engine
        self.layout = smem_layout(program)
        self.stamps = stamps
        size = -(-max(self.layout.bytes, 1) // WORD) * WORD
        self.data = np.zeros(size, np.uint8)
        self.valid = np.zeros(size, np.bool_)
        self.stored = np.zeros(size, np.int32)
        self.loaded = np.zeros(size, np.int32)
        self.released: dict[tuple[str, int], Origin | None] = {}
        """Who released each stage last."""
        for decl in program.find(Smem):
            self._check_room(decl)

    def _check_room(self, decl: Smem) -> None:
        """Every element lies within the CTA's block and within its own stage."""
        placed = self.layout.buffers[decl.name]
        end = int(tile_offsets(decl.shape, decl.swizzle, decl.dtype).max()) + decl.dtype.bytes
        last_stage = placed.offset + placed.bytes - placed.stage_bytes
        room = min(placed.stage_bytes, len(self.data) - last_stage)
        if end > room:
            raise Finding(
                SMEM_BOUNDS,
                f"a stage of {decl.name} needs {end} bytes, there is room for {room}",
                {"buffer": decl.name, "bytes": end, "room": room},
            ).at(decl.loc, {})

    # -- addresses -----------------------------------------------------------------------------

    def tile(self, decl: Smem, stage: int, offsets: Sequence[int], view: SmemView) -> Any:
        """Byte addresses of a whole view in its logical order."""
        dropped = len(decl.shape) - len(view.shape)
        extents = (1,) * dropped + view.shape
        for axis, (start, extent) in enumerate(zip(offsets, extents, strict=True)):
            if start < 0 or start + extent > decl.shape[axis]:
                self._outside(decl, axis, start if start < 0 else start + extent - 1)
        table = tile_offsets(decl.shape, decl.swizzle, decl.dtype)
        block = table[tuple(slice(s, s + e) for s, e in zip(offsets, extents, strict=True))]
        block = block.reshape(view.shape)
        return self._base(decl, stage) + (np.swapaxes(block, -1, -2) if view.transposed else block)

    def elements(self, decl: Smem, stage: int, coordinates: Sequence[Any]) -> Any:
        """Byte addresses of elements at ``coordinates``, an int array for each declared axis."""
        for axis, (c, extent) in enumerate(zip(coordinates, decl.shape, strict=True)):
            low, high = (int(np.min(c)), int(np.max(c))) if np.size(c) else (0, 0)
            if low < 0 or high >= extent:
                self._outside(decl, axis, low if low < 0 else high)
        table = tile_offsets(decl.shape, decl.swizzle, decl.dtype)
        return self._base(decl, stage) + table[tuple(np.broadcast_arrays(*coordinates))]

    def _base(self, decl: Smem, stage: int) -> int:
        if decl.stages is not None and not 0 <= stage < decl.stages:
            raise Finding(
                SMEM_BOUNDS,
                f"stage {stage} of {decl.name} is outside its {decl.stages} stages",
                {"buffer": decl.name, "stage": stage, "stages": decl.stages},
            )
        placed = self.layout.buffers[decl.name]
        return placed.offset + stage * placed.stage_bytes

    def _outside(self, decl: Smem, axis: int, index: int) -> None:
        raise Finding(
            SMEM_BOUNDS,
            f"index {index} is outside axis {axis} of {decl.name}, extent {decl.shape[axis]}",
            {"buffer": decl.name, "axis": axis, "index": index, "extent": decl.shape[axis]},
        )

    # -- access --------------------------------------------------------------------------------

    def load(self, decl: Smem, stage: int, addresses: Any) -> Any:
        """Elements at byte addresses; bytes without data are a finding."""
        size = decl.dtype.bytes
        index = addresses // size
        valid = self.valid.reshape(-1, size)
        if not valid[index].all():
            self._no_data(decl, stage, lambda: bool(valid[index].all()))
        return self.data.view(numpy_dtype(decl.dtype))[index]

    def store(self, decl: Smem, addresses: Any, values: Any, rows: Any) -> None:
        """Store elements; ``rows`` are the stamps' rows of the storing threads."""
        size = decl.dtype.bytes
        index = addresses // size
        cells = self.data.view(numpy_dtype(decl.dtype))
        given = np.broadcast_to(values, index.shape).astype(cells.dtype)
        cells[index] = given
        check_stored(decl.name, cells[index], given)
        self.valid.reshape(-1, size)[index] = True
        if self.stamps.size > 1:
            self.stored.reshape(-1, size)[index] = np.asarray(rows)[..., None]
            self.loaded.reshape(-1, size)[index] = SETTLED

    def note_load(self, decl: Smem, addresses: Any, rows: Any) -> None:
        """Threads of the stamps' ``rows`` have loaded elements by plain accesses."""
        size = decl.dtype.bytes
        self.loaded.reshape(-1, size)[addresses // size] = np.asarray(rows)[..., None]

    def _no_data(self, decl: Smem, stage: int, arrived: Callable[[], bool]) -> None:
        """A finding that names what left the bytes without data."""
        where = decl.name if decl.stages is None else f"{decl.name}[{stage}]"
        related = []
        released = (decl.name, stage) in self.released
        if by := self.released.get((decl.name, stage)):
            related.append(by.related(f"{where} is released here"))
        op = self.engine.bringing(arrived)
        if op is not None and op.place is not None:
            what = "the copy into it starts here and has not completed"
            related.append(Related(span=op.place.loc, message=what))
        finding = Finding(
            POISON_READ,
            f"{where} is read where it holds no valid data: {_WHY[released, op is not None]}",
            {"buffer": decl.name, "stage": stage},
            related=tuple(related),
        )
        finding.unwritten = None if related else decl.name
        raise finding

    def release(self, decl: Smem, stage: int, by: Origin | None) -> None:
        """The stage's bytes hold no data any more."""
        placed = self.layout.buffers[decl.name]
        base = placed.offset + stage * placed.stage_bytes
        self.valid[base : base + placed.stage_bytes] = False
        self.released[decl.name, stage] = by

    # -- synchronisation -----------------------------------------------------------------------

    def check_load(
        self, decl: Smem, addresses: Any, unit: Accesses, threads: Any, excused: Excused
    ) -> None:
        """A finding if ``threads`` of ``unit`` load what they may not see yet."""
        if self.stamps.size > 1:
            row = self.stamps.racing(self.stored[addresses], unit, threads, excused)
            if row is not None:
                what = f"another thread of {unit.who} reads it with no barrier in between"
                self._hidden(RACE, decl, row, "was stored to", what)

    def check_store(
        self, decl: Smem, addresses: Any, unit: Accesses, threads: Any, excused: Excused
    ) -> None:
        """A finding if ``threads`` of ``unit`` store to what others may still be reading."""
        if self.stamps.size > 1:
            row = self.stamps.racing(self.loaded[addresses], unit, threads, excused)
            if row is not None:
                what = f"another thread of {unit.who} overwrites it with no barrier in between"
                self._hidden(RACE, decl, row, "was read", what)

    def check_overwrite(
        self,
        decl: Smem,
        addresses: Any,
        values: Any,
        unit: Accesses,
        threads: Any,
        excused: Excused,
    ) -> None:
        """A finding if ``threads`` of ``unit`` store other values over what others have stored."""
        if self.stamps.size == 1:
            return
        cells = self.data.view(numpy_dtype(decl.dtype))[addresses // decl.dtype.bytes]
        given = np.broadcast_to(values, cells.shape).astype(cells.dtype)
        raw = np.dtype((np.void, decl.dtype.bytes))
        changed = cells.view(raw) != np.ascontiguousarray(given).view(raw)
        rows = np.where(changed, self.stored[addresses], SETTLED)
        row = self.stamps.racing(rows, unit, threads, excused)
        if row is not None:
            what = f"another thread of {unit.who} stores another value with no barrier in between"
            self._hidden(RACE, decl, row, "was stored to", what)

    def check_async(self, decl: Smem, addresses: Any) -> None:
        """A finding if the async proxy reads a store that it may not see yet."""
        if self.stamps.size == 1:
            return
        rows = self.stored[addresses]
        row = self.stamps.hidden(rows, STORED)
        if row is not None:
            what = "the async proxy reads it without a proxy fence"
            self._hidden(PROXY, decl, row, "was stored to", what)
        row = self.stamps.hidden(rows, FENCED)
        if row is not None:
            what = "the async proxy reads it with no barrier after the proxy fence"
            self._hidden(PROXY_BARRIER, decl, row, "was stored to", what)

    def _hidden(self, code: str, decl: Smem, row: Row, did: str, what: str) -> None:
        raise Finding(
            code,
            f"{decl.name} {did} by {row}, and {what}",
            {"buffer": decl.name, "first": str(row)},
            related=(Related(span=row.place, message=f"{did} here"),),
        )
