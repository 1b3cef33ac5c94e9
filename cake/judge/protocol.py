"""What parent and child say to each other.

Messages are JSON lines over two pipes. Arrays lie in files of their bytes in a folder that the
parent owns; nothing is pickled. The child is not trusted: every line is checked against its record,
every file against the shape and dtype that the problem has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cake.judge.candidate import Candidate
from cake.judge.files import FileError, create, make_folder, open_file, read_at, write_at
from cake.judge.records import RecordError, decode, encode
from cake.judge.verdict import Columns, Finding
from cake.workloads import Case

Array = NDArray[Any]
LINE_LIMIT = 1 << 22  # bytes


class ProtocolError(Exception):
    """The other side said something that is no message, or left no usable file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """First request: open ``device`` (``cpu`` or ``cuda``), import ``plugins`` and look up
    ``runner``. No code of a candidate has run before its answer."""

    device: str
    plugins: tuple[str, ...]
    runner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Build ``candidate`` for one case of ``workload``."""

    workload: str
    case: Case
    candidate: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run the built candidate on the arrays in the folder ``inputs``, once per poison pattern;
    leave the outputs of pass ``i`` in the folder ``outputs``/``i``."""

    inputs: str
    outputs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """Run the built candidate once on tensors that the parent shares in the folder ``tensors``
    (:mod:`cake.judge.shared`)."""

    tensors: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """Time the built candidate beside ``baseline`` or ``rival``, on inputs taken from the folders
    ``contents``. The candidate's outputs of the samples ``keep`` go to ``outputs``/``sample``. The
    baseline starts if ``swapped``. ``noise_samples`` are taken of the baseline beside itself."""

    contents: tuple[str, ...]
    outputs: str
    baseline: str | None
    rival: Candidate | None
    warmup: int
    samples: int
    keep: tuple[int, ...]
    swapped: bool
    noise_samples: int
    columns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Answer to :class:`Open`."""

    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Answer to :class:`Build`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Answer to :class:`Run`: what the canaries and the hashes of the inputs showed."""

    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapped:
    """Answer to :class:`Lap`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Answer to :class:`Time`: milliseconds per sample, by ``clock``; ``kept`` says on which of
    the contents each kept sample ran. ``baseline_ms`` is empty without a baseline, and
    ``baseline_problem`` then says why. ``same_ms`` are the samples of the baseline beside itself.
    """

    clock: str
    candidate_ms: tuple[float, ...]
    baseline_ms: tuple[float, ...]
    baseline_problem: str
    kept: Mapping[str, int]
    same_ms: tuple[tuple[float, ...], ...] = ()
    candidate_columns: Columns | None = None
    baseline_columns: Columns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Answer to any request that failed; after ``crashed`` the child ends."""

    status: Literal["build_failed", "refused", "crashed"]
    message: str
    trace: str


Message = Open | Build | Run | Lap | Time | Ready | Built | Ran | Lapped | Timed | Failed
_KINDS: Mapping[str, type[Message]] = {kind.__name__: kind for kind in get_args(Message)}


def to_line(message: Message) -> bytes:
    """``message`` as one line of JSON."""
    body = {"kind": type(message).__name__, "body": encode(message)}
    return json.dumps(body, allow_nan=False).encode() + b"\n"


def from_line(line: bytes) -> Message:
    """The message in ``line``; raises :class:`ProtocolError`."""
    try:
        raw = json.loads(line)
        if not isinstance(raw, dict) or raw.keys() != {"kind", "body"}:
            raise RecordError("not an object of kind and body")
        if raw["kind"] not in _KINDS:
            raise RecordError(f"unknown kind {str(raw['kind'])[:40]!r}")
        return decode(_KINDS[raw["kind"]], raw["body"])
    except (ValueError, RecursionError, TypeError) as error:
        raise ProtocolError(f"no message: {error}") from None


def save_arrays(folder: Path, arrays: Mapping[str, Array]) -> None:
    """Write the bytes of ``arrays`` to ``folder``/name.bin; raises ``OSError`` if one is there."""
    make_folder(folder)
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        handle = create(folder / f"{name}.bin", flat.size)
        write_at(handle, 0, flat)
        os.close(handle)


def load_array(
    folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> Array:
    """The array that :func:`save_arrays` wrote; raises :class:`ProtocolError` if it is absent or
    has not the bytes of ``shape`` and ``dtype``."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    try:
        handle = open_file(folder / f"{name}.bin", size)
        try:
            flat = read_at(handle, 0, size)
        finally:
            os.close(handle)
    except FileError as error:
        raise ProtocolError(f"no array: {error}") from None
    array: Array = flat.view(dtype).reshape(shape)
    return array
