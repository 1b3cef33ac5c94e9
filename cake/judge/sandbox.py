"""What confines a child that runs code of others: limits of resources always, namespaces of the
kernel where it grants them. No network, a read-only file system with the home and the temporary
folders hidden, no sight of other processes.

(namespaces(7), user_namespaces(7), mount_setattr(2), setrlimit(2).)

A process of several threads cannot enter a user namespace: workers are confined when they have just
been forked (:mod:`cake.judge.zygote`), with the one thread that called fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

MIB = 1 << 20
PROCESSES = 1024
"""Processes and threads that a confined child may add to those of its user. Root is not held to it
by the kernel, but by deadlines."""

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture since Linux 5.12
_AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = -100, 0x8000, 1
_BY_SIGNAL = 128  # exit codes above say which signal, as in a shell
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38

NAMESPACES = "namespaces (user, pid, network, ipc, mount) and resource limits"
LIMITS = "resource limits only"
NONE = "none: the candidate has no host code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How a child is confined: the one folder that it may write, and its limits. ``memory_bytes``
    of address space (None on a GPU, whose driver reserves far more than it uses), ``file_bytes``
    per file, seconds of processor time over its whole life."""

    scratch: str
    memory_bytes: int | None
    file_bytes: int
    cpu_seconds: int
    namespaces: bool

    def without_namespaces(self) -> Confinement:
        """The limits alone."""
        return replace(self, namespaces=False)


class _Denied(Exception):
    """The kernel does not grant a namespace or a mount here."""


def restrain() -> None:
    """For every child: no core files, and no life beyond the parent's."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def confine(how: Confinement) -> str:
    """Confine this process, which has run nothing of the candidate yet; says what holds now.

    With namespaces it is a grandchild of the caller that returns from here: the first process
    stays behind and passes on how the other one ends.
    """
    isolation = LIMITS
    if sys.platform == "linux":
        if how.namespaces:
            with contextlib.suppress(_Denied):
                _enter_namespaces(Path(how.scratch))
                isolation = NAMESPACES
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _limit(resource.RLIMIT_CPU, how.cpu_seconds)
    _limit(resource.RLIMIT_FSIZE, how.file_bytes)
    _limit(resource.RLIMIT_NPROC, _tasks_of_user() + PROCESSES)
    if how.memory_bytes is not None:
        _limit(resource.RLIMIT_AS, how.memory_bytes)
    return isolation


def _limit(kind: int, value: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, hard = resource.getrlimit(kind)
    low = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (low, low))


def _tasks_of_user() -> int:
    """Threads of this user that are visible: the limit counts all of them."""
    found = 0
    for entry in Path("/proc").glob("[0-9]*/task"):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == os.getuid():
                found += len(os.listdir(entry))
    return found


def _enter_namespaces(scratch: Path) -> None:
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET | _CLONE_NEWIPC
    _must(ctypes.CDLL(None, use_errno=True).unshare(flags))
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
        _restrict_files(scratch)
    except OSError as error:
        raise _Denied(str(error)) from None
    _become_grandchild()
    # Where /proc cannot be mounted, the old one stays: other processes are seen, not reached.
    with contextlib.suppress(_Denied):
        _mount("proc", "/proc", "proc", 0)


def _restrict_files(scratch: Path) -> None:
    """Everything read-only but ``scratch``; of the home and of temporary folders nothing is seen
    but that and what Python itself needs."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    hidden = [folder for folder in _private_folders() if folder.is_dir()]
    kept = [path for path in _needed() if any(path.is_relative_to(h) for h in hidden)]
    handles = {path: os.open(path, os.O_PATH) for path in [*kept, scratch]}
    for folder in hidden:
        _mount("tmpfs", str(folder), "tmpfs", 0)
    for path, handle in handles.items():
        path.mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{handle}", str(path), None, _MS_BIND)
        os.close(handle)
    _set_read_only(b"/", recursive=True, value=True)
    for folder in (*hidden, scratch):
        _set_read_only(os.fsencode(folder), recursive=False, value=False)


def _private_folders() -> Iterable[Path]:
    """Folders that hold a user's files."""
    return map(Path, dict.fromkeys([str(Path.home()), "/tmp", "/var/tmp", "/dev/shm"]))


def _needed() -> list[Path]:
    """Folders that Python loads code from, none of them below another."""
    named = [sys.prefix, sys.base_prefix, *sys.path]
    named += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = sorted({Path(name).resolve() for name in named if name and os.path.isdir(name)})
    return [p for p in found if not any(p != q and p.is_relative_to(q) for q in found)]


def _set_read_only(path: bytes, *, recursive: bool, value: bool) -> None:
    """mount_setattr(2) with the attribute set or cleared."""
    attributes = (ctypes.c_uint64 * 4)(*((_ATTR_RDONLY, 0) if value else (0, _ATTR_RDONLY)), 0, 0)
    call = ctypes.CDLL(None, use_errno=True).syscall
    flags = _AT_RECURSIVE if recursive else 0
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _must(call(_SYS_MOUNT_SETATTR, _AT_FDCWD, path, flags, ctypes.byref(attributes), size))


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).mount
    named = None if kind is None else kind.encode()
    _must(call(os.fsencode(source), os.fsencode(target), named, ctypes.c_ulong(flags), None))


def _must(status: int) -> None:
    if status != 0:
        raise _Denied(os.strerror(ctypes.get_errno()))


def _become_grandchild() -> None:
    """Fork twice into the new pid namespace: its first process reaps, the second one returns.

    The first process of a namespace ignores signals that it has no handler for, so the candidate
    must not be it. Both that stay behind end as their child ends.
    """
    restrain()  # a new user namespace has undone it (prctl(2), PR_SET_PDEATHSIG)
    for _ in range(2):
        child = os.fork()
        if child:
            _end_like(child)
        restrain()


def _end_like(child: int) -> None:
    """Wait for ``child``, then end with its status, or by the signal that ended it."""
    # The pipes belong to the worker; open ends here would hide that it closed its own.
    os.closerange(3, 1 << 16)
    while True:
        found, status = os.wait()
        if found == child:
            break
    code = os.waitstatus_to_exitcode(status)
    ended_by = -code if code < 0 else code - _BY_SIGNAL
    # The first process of a namespace survives its own signals; its exit code says them instead.
    if ended_by > 0 and os.getpid() != 1:
        if ended_by not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)
    os._exit(_BY_SIGNAL + ended_by if code < 0 else code)
