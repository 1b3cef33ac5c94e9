"""The on-disk cache of compiled kernels, addressed by the content that they were built from.

One entry is one zip file (stored, not compressed): ``unzip`` shows what is in it. A file appears
under its name only when it is complete, so any number of processes may share a folder. A SHA-256 at
its end (in place of the zip comment) turns every damaged entry into a miss. The cache never makes a
build fail: a full disk or a folder that cannot be written costs a warning and the next build.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cake.codegen.abi import KernelAbi
from cake.codegen.ptxas import PtxasFacts
from cake.diag import Diagnostic, Severity, define

DEFAULT_MAX_BYTES = 2 << 30
_FORMAT = "cake-kernel 1"
_CHECKSUM_LENGTH = 64
_SUFFIX = ".kernel.zip"

CACHE_UNAVAILABLE = define(
    code="CK901",
    name="cache-unavailable",
    severity=Severity.WARNING,
    stage="environment",
    summary="The kernel cache cannot be read or written; kernels are built again each time.",
    page="""
The disk is full, or the folder belongs to somebody else. Nothing is lost but time. Set
`CAKE_CACHE_DIR` to a folder that can be written, or free some space. The folder may be deleted at
any time.
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """A compiled kernel with everything that is known about it."""

    cubin: bytes
    abi: KernelAbi
    facts: PtxasFacts
    source: str
    log: str


def cache_key(
    *, ir_text: str, target: str, emitter_version: str, compiler_version: str, flags: Sequence[str]
) -> str:
    """The address of a kernel: a SHA-256 in hexadecimal over all that decides its code."""
    parts = [_FORMAT, ir_text, target, emitter_version, compiler_version, list(flags)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def default_root() -> Path:
    """``$CAKE_CACHE_DIR``, else ``$XDG_CACHE_HOME/cake``, else ``~/.cache/cake``."""
    if folder := os.environ.get("CAKE_CACHE_DIR"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cake"


class KernelCache:
    """A folder of compiled kernels that keeps itself below ``max_bytes``.

    The entries used least recently go first. ``warn`` gets a diagnostic (``cache-unavailable``) the
    first time that an operation fails in a way of its own.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        warn: Callable[[Diagnostic], None],
    ) -> None:
        self.root = default_root() if root is None else root
        self.max_bytes = max_bytes
        self._warn = warn
        self._warned: set[tuple[str, int | None]] = set()

    def get_or_build(self, key: str, build: Callable[[], CacheEntry]) -> CacheEntry:
        """The entry of ``key``; ``build`` makes it if it is absent or damaged."""
        entry = self.get(key)
        if entry is None:
            entry = build()
            self.put(key, entry)
        return entry

    def get(self, key: str) -> CacheEntry | None:
        """The entry of ``key``, or None. A damaged entry is removed."""
        path = self._path(key)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._fail("read", error)
            return None
        entry = _unpack(raw)
        with contextlib.suppress(OSError):  # a folder that is only readable still serves hits
            if entry is None:
                path.unlink()
            else:
                os.utime(path)
        return entry

    def put(self, key: str, entry: CacheEntry) -> None:
        """Store ``entry``; on a full disk older entries make room for it."""
        raw = _pack(entry)
        try:
            try:
                self._write(self._path(key), raw)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self._prune(self.max_bytes // 2)
                self._write(self._path(key), raw)
            self._prune(self.max_bytes)
        except OSError as error:
            self._fail("write", error)

    def _path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}{_SUFFIX}"

    def _write(self, path: Path, raw: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _prune(self, limit: int) -> None:
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= limit:
                break
            with contextlib.suppress(FileNotFoundError):  # another process pruned it
                path.unlink()
            total -= size

    def _files(self) -> Iterator[tuple[int, int, Path]]:
        """Time of last use, size and path of every file, also of leftovers of killed processes."""
        for path in self.root.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):
                facts = path.stat()
                yield facts.st_mtime_ns, facts.st_size, path

    def _fail(self, what: str, error: OSError) -> None:
        if (what, error.errno) in self._warned:
            return
        self._warned.add((what, error.errno))
        reason = error.strerror or str(error)
        self._warn(
            Diagnostic.of(
                CACHE_UNAVAILABLE,
                f"cannot {what} the kernel cache {self.root}: {reason}",
                facts={"folder": str(self.root), "errno": error.errno},
                helps=("set CAKE_CACHE_DIR to a folder that can be written, or free space",),
            )
        )


def _pack(entry: CacheEntry) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("kernel.cubin", entry.cubin)
        archive.writestr("abi.json", entry.abi.to_json())
        archive.writestr("facts.json", entry.facts.to_json())
        archive.writestr("kernel.cu", entry.source)
        archive.writestr("build.log", entry.log)
        archive.comment = b"0" * _CHECKSUM_LENGTH  # the place of the checksum, at the very end
    body = buffer.getvalue()[:-_CHECKSUM_LENGTH]
    return body + _checksum(body)


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _unpack(raw: bytes) -> CacheEntry | None:
    """The entry in ``raw``, or None if it is damaged or of another format."""
    body, checksum = raw[:-_CHECKSUM_LENGTH], raw[-_CHECKSUM_LENGTH:]
    if checksum != _checksum(body):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return CacheEntry(
                cubin=archive.read("kernel.cubin"),
                abi=KernelAbi.from_json(archive.read("abi.json").decode()),
                facts=PtxasFacts.from_json(archive.read("facts.json").decode()),
                source=archive.read("kernel.cu").decode(),
                log=archive.read("build.log").decode(),
            )
    except (zipfile.BadZipFile, KeyError, ValueError):  # whole, but not written by this version
        return None
