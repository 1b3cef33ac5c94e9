"""SIGTERM ends a command as Ctrl-C does: what is finished is kept, and the status names the signal.

Schedulers of clusters and containers send it before they kill.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from cake.cli.status import Status


class Terminated(KeyboardInterrupt):
    """SIGTERM has arrived."""

    received = False


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises :class:`Terminated` in the block; a second one does not disturb the end.

    Only the main thread may say so; elsewhere SIGTERM keeps its meaning.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interruption() -> Status:
    """The status of a command that a signal has ended."""
    return Status.TERMINATED if Terminated.received else Status.INTERRUPTED


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Terminated.received = True
    raise Terminated
