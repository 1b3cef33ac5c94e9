"""Tensor memory of one CTA: lanes by columns of 32-bit cells (PTX ISA, "Tensor Memory")."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cake.diag import Related
from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.program import Program
from cake.simulate.codes import POISON_READ, TMEM_BOUNDS
from cake.simulate.errors import Finding, Origin
from cake.targets import get


class TensorMemory:
    """``blocks``: allocated columns, the number of them by the first. ``valid``: the cell holds
    data. ``issued`` and ``landed`` count the products into each column, ``started`` is where the
    last one was. ``user`` is the statement at hand, ``allocations`` those that allocated."""

    def __init__(self, program: Program) -> None:
        limits = get(program.target).tmem
        shape = (0, 0) if limits is None else (limits.lanes, limits.columns)
        self.data = np.zeros(shape, np.uint32)
        self.valid = np.zeros(shape, np.bool_)
        self.issued, self.landed = np.zeros((2, shape[1]), np.int64)
        self.started = np.full(shape[1], None, object)
        self.blocks: dict[int, int] = {}
        self.allocations: dict[int, Origin | None] = {}
        self.user: Origin | None = None

    def free_block(self, columns: int) -> int | None:
        """First column of the lowest free block of that many columns, None if there is none."""
        start = 0
        for first, count in sorted(self.blocks.items()):
            if first - start >= columns:
                break
            start = first + count
        return start if start + columns <= self.data.shape[1] else None

    def allocate(self, columns: int) -> int:
        """Take a free block; its first column."""
        start = self.free_block(columns)
        assert start is not None
        self.blocks[start] = columns
        self.allocations[start] = self.user
        return start

    def free(self, column: int, columns: int) -> None:
        """Give a block back."""
        if self.blocks.get(column) != columns:
            self._refuse(f"{columns} columns from {column} on are freed, which are no allocation")
        del self.blocks[column], self.allocations[column]
        self.valid[:, column : column + columns] = False

    def read(self, column: int, columns: int, dtype: DType) -> Any:
        """Cells of all lanes, as elements of ``dtype``: (lanes, columns)."""
        cells = self._cells(column, columns)
        if not self.valid[cells].all():
            raise Finding(
                POISON_READ,
                f"tensor memory is read from column {column} on, where nothing has been written",
                {"column": column, "columns": columns},
                related=self.allocated(),
            )
        return self.data[cells].view(numpy_dtype(dtype)).copy()

    def write(self, column: int, values: Any) -> None:
        """Store 32-bit elements of all lanes: (lanes, columns)."""
        cells = self._cells(column, values.shape[1])
        self.data[cells] = np.ascontiguousarray(values).view(np.uint32)
        self.valid[cells] = True
        self.landed[cells[1]] += 1

    def issue(self, column: int, columns: int) -> None:
        """A product into these columns begins; ``write`` ends it."""
        part = self._cells(column, columns)[1]
        self.issued[part] += 1
        self.started[part] = self.user

    def products(self, column: int, columns: int) -> tuple[int, ...]:
        """Products issued so far into each of these columns."""
        return tuple(self.issued[column : column + columns].tolist())

    def starts(self, column: int, columns: int) -> tuple[Related, ...]:
        """Where the last products into these columns were started."""
        found = dict.fromkeys(self.started[column : column + columns].tolist())
        return tuple(o.related("a product into them is started here") for o in found if o)

    def allocated(self) -> tuple[Related, ...]:
        """Where the blocks in use were allocated."""
        return tuple(o.related("allocated here") for o in self.allocations.values() if o)

    def busy(self, column: int, columns: int) -> bool:
        """Is a product into one of these columns in flight?"""
        part = slice(column, column + columns)
        return bool((self.issued[part] != self.landed[part]).any())

    def _cells(self, column: int, columns: int) -> tuple[slice, slice]:
        end = column + columns
        if not any(f <= column and end <= f + n for f, n in self.blocks.items()):
            self._refuse(f"columns [{column}, {end}) are not all of one allocation")
        return slice(None), slice(column, end)

    def _refuse(self, message: str) -> NoReturn:
        facts = {"allocations": str(self.blocks)}
        related = self.allocated()
        raise Finding(TMEM_BOUNDS, f"tensor memory: {message}", facts, related=related)
