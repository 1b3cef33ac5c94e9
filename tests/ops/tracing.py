"""An emitter that keeps statements with the loops around them, so that tests can run the indices.

Addresses come out as ``at(index, ...)``; the C integer expressions in use here are Python's too,
once ``/`` is floor division.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cake.ir.nodes import Expr
from tests.ops.fakes import FakeEmitter

_CAST = re.compile(r"\((?:unsigned|int)(?: short| long long)?\)")


@dataclass
class Tracer(FakeEmitter):
    """Statements as (text, loops), a loop being (variable, count)."""

    loops: list[tuple[str, int]] = field(default_factory=list)
    traced: list[tuple[str, tuple[tuple[str, int], ...]]] = field(default_factory=list)

    def line(self, text: str) -> None:
        super().line(text)
        self.traced.append((text, tuple(self.loops)))

    @contextmanager
    def unrolled(self, count: int, var: str = "i") -> Iterator[None]:
        self.loops.append((var, count))
        yield
        self.loops.pop()

    def smem_address(self, e: Expr, index: Sequence[str] = ()) -> str:
        return f"at({', '.join(index)})"

    def global_pointer(self, e: Expr, offset: Sequence[str] = ()) -> str:
        return f"at({', '.join(offset)})"

    def require_alignment(self, tensor: str, bytes: int) -> None:
        """Nothing: alignment is the launch's business."""

    def calls(self, prefix: str, warps: int) -> Iterator[tuple[int, list[Any]]]:
        """(thread, evaluated arguments) of every call whose name starts with ``prefix``.

        An array operand evaluates to the index of its first element.
        """
        for text, loops in self.traced:
            if not text.startswith(prefix):
                continue
            arguments = text[text.index("(") :].removesuffix(";").replace("/", "//")
            arguments = _CAST.sub("", arguments).replace("&", "")
            code = compile(arguments, text, "eval")
            for values in itertools.product(*(range(n) for _, n in loops)):
                counters = dict(zip((v for v, _ in loops), values, strict=True))
                for thread in range(32 * warps):
                    scope = {
                        "lane": thread % 32,
                        "warp_in_unit": thread // 32,
                        "unit_thread": thread,
                    }
                    yield thread, list(eval(code, _Scope(scope | counters)))


class _Array:
    """A register array: an element, or a pointer to it, is its index."""

    def __getitem__(self, index: int) -> int:
        return index

    def __add__(self, offset: int) -> int:
        return offset

    def __index__(self) -> int:
        return 0


class _Scope(dict[str, Any]):
    """Names of a statement: ``at`` gives the index, ``true`` is true, others are arrays."""

    def __missing__(self, name: str) -> Any:
        if name == "at":
            return lambda *index: index
        return True if name == "true" else _Array()
