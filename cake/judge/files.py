"""Files in a folder that a candidate may write too: no trick with names leads out of it.

A child can put a link, a pipe or a shorter file where the parent expects its own. Every part of a
path is therefore opened without following links, a file is made only where there is none, and what
is read has to be a regular file of the size that is due.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from cake.judge.devices import Bytes

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_CHUNK = 1 << 30  # bytes of one call; Linux moves at most 2 GiB at a time (write(2))


class FileError(OSError):
    """A file is missing, or is not what it has to be."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, without following links."""
    with _folder(path, make=True):
        pass


def create(path: Path, size: int) -> int:
    """The descriptor of a new file of ``size`` zero bytes, open to read and write.

    Raises ``OSError`` if something of that name is there.
    """
    with _folder(path.parent, make=True) as folder:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path.name, flags, 0o600, dir_fd=folder)
    os.truncate(handle, size)
    return handle


def open_file(path: Path, size: int, *, writable: bool = False) -> int:
    """The descriptor of a regular file of exactly ``size`` bytes; raises :class:`FileError`."""
    flags = os.O_RDWR if writable else os.O_RDONLY
    try:
        with _folder(path.parent) as folder:
            # A pipe would block without O_NONBLOCK; regular files do not know it.
            handle = os.open(path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        raise FileError(f"{path.name}: {error.strerror}") from None
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size != size:
        os.close(handle)
        kind = f"{facts.st_size} bytes" if stat.S_ISREG(facts.st_mode) else "no regular file"
        raise FileError(f"{path.name} is {kind}, not {size} bytes")
    return handle


def read_at(handle: int, start: int, stop: int) -> Bytes:
    """The bytes from ``start`` to ``stop``; raises :class:`FileError` if there are fewer."""
    data = np.empty(stop - start, dtype=np.uint8)
    done = 0
    while done < data.size:
        got = os.preadv(handle, [data[done : done + _CHUNK].data], start + done)
        if not got:
            raise FileError(f"a file ends {data.size - done} bytes before its size")
        done += got
    return data


def write_at(handle: int, start: int, data: Bytes) -> None:
    """Write ``data`` from ``start`` on."""
    done = 0
    while done < data.size:
        done += os.pwrite(handle, data[done : done + _CHUNK].data, start + done)


@contextmanager
def _folder(path: Path, *, make: bool = False) -> Iterator[int]:
    """A descriptor of a folder, every part of its absolute path opened without following links."""
    handle = os.open(path.anchor, _STEP)
    try:
        for part in path.parts[1:]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=handle)
            below = os.open(part, _STEP, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)
