"""Device activity as CUPTI records it: the span from the first start to the last end.

Kernels, copies and memsets of all streams count. A sample lies between two marks, memsets of a size
that nothing else uses, by the numbers that CUPTI gives to the calls in their order. (CUPTI
documentation, "Activity API".) Needs cupti-python, the extra ``cupti``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from cake.runtime import driver

BUFFER_BYTES = 8 << 20
MARK_BYTES = 17
MARK_BYTE = 0xA7
_FORCED = 1  # CUPTI_ACTIVITY_FLAG_FLUSH_FORCED


class CuptiUnavailable(Exception):
    """CUPTI cannot be used here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """One piece of work on the device: nanoseconds, the number of the call that asked for it."""

    start: int
    end: int
    call: int
    is_mark: bool


class CuptiClock:
    """Times what is enqueued between :meth:`begin` and :meth:`end`. ``stream`` gives the handle of
    the stream that the calls go to. Raises :class:`CuptiUnavailable`."""

    name = "CUPTI span"

    def __init__(self, stream: Callable[[], int]) -> None:
        self._stream = stream
        self._records: list[Activity] = []
        self._mark = driver.checked(driver.driver().cuMemAlloc(MARK_BYTES), "cuMemAlloc")
        try:
            self._cupti: Any = import_module("cupti").cupti
            kinds = self._cupti.ActivityKind
            self._memset = int(kinds.MEMSET)
            self._cupti.activity_register_callbacks(lambda: (BUFFER_BYTES, 0), self._take)
            for kind in (kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET):
                self._cupti.activity_enable(kind)
        except Exception as error:
            # Whatever is wrong with an optional library, there is another clock.
            raise CuptiUnavailable(f"{type(error).__name__}: {error}") from None

    def _take(self, activities: Sequence[Any]) -> None:
        for a in activities:
            mark = int(a.kind) == self._memset and (a.bytes, a.value & 0xFF) == (
                MARK_BYTES,
                MARK_BYTE,
            )
            self._records.append(
                Activity(start=a.start, end=a.end, call=a.correlation_id, is_mark=mark)
            )

    def begin(self) -> None:
        """Start a sample."""
        self._put_mark()

    def end(self) -> float:
        """Milliseconds of the sample, once the device is idle."""
        self._put_mark()
        driver.checked(driver.driver().cuCtxSynchronize(), "cuCtxSynchronize")
        self._cupti.activity_flush_all(_FORCED)
        records, self._records = self._records, []
        return span_ms(records)

    def _put_mark(self) -> None:
        memset = driver.driver().cuMemsetD8Async
        done = memset(self._mark, MARK_BYTE, MARK_BYTES, self._stream())
        driver.checked(done, "cuMemsetD8Async")


def span_ms(records: Sequence[Activity]) -> float:
    """Milliseconds from the first start to the last end of what lies between the last two marks.

    Raises ``ValueError`` where a mark is missing or nothing was done between them.
    """
    marks = sorted(r.call for r in records if r.is_mark)[-2:]
    if len(marks) != 2:
        raise ValueError(f"CUPTI delivered {len(marks)} of 2 marks")
    work = [r for r in records if marks[0] < r.call < marks[1]]
    if not work:
        raise ValueError("CUPTI recorded no activity between the marks")
    return (max(r.end for r in work) - min(r.start for r in work)) * 1e-6
