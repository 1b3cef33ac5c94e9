"""The kernel cache: hits, damage, sharing between processes, full and unwritable disks."""

import errno
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.codegen.cache import CacheEntry, KernelCache, _pack, _unpack, cache_key, default_root
from cake.codegen.ptxas import FunctionFacts, PtxasFacts
from cake.diag import Diagnostic, Severity
from tests.codegen_build.samples import GEMM

ENTRY = CacheEntry(
    cubin=bytes(range(256)) * 8,
    abi=GEMM,
    facts=PtxasFacts(
        functions=(FunctionFacts(name="gemm", entry=True, registers=168),), notices=()
    ),
    source="// größer\n__global__ void gemm() {}\n",
    log="ptxas info : Used 168 registers",
)
KEY = cache_key(
    ir_text="schedule",
    target="sm_90a",
    emitter_version="1",
    compiler_version="nvrtc 13.0 (13.0.88)",
    flags=("-lineinfo",),
)


def fail_on_warning(found: Diagnostic) -> None:
    raise AssertionError(found.message)


def unexpected_build() -> CacheEntry:
    raise AssertionError("the entry should have been found")


@pytest.fixture
def cache(tmp_path: Path) -> KernelCache:
    return KernelCache(tmp_path / "cache", warn=fail_on_warning)


def test_a_second_build_is_a_hit(cache: KernelCache) -> None:
    assert cache.get(KEY) is None
    assert cache.get_or_build(KEY, lambda: ENTRY) == ENTRY
    assert cache.get_or_build(KEY, unexpected_build) == ENTRY
    again = KernelCache(cache.root, warn=fail_on_warning)
    assert again.get(KEY) == ENTRY


def test_every_part_of_the_key_counts() -> None:
    parts = {
        "ir_text": "schedule",
        "target": "sm_90a",
        "emitter_version": "1",
        "compiler_version": "nvrtc 13.0 (13.0.88)",
        "flags": ("-lineinfo",),
    }
    keys = {KEY, cache_key(**parts)}  # type: ignore[arg-type]
    assert len(keys) == 1
    for name in parts:
        other = ("-G",) if name == "flags" else "other"
        keys.add(cache_key(**(parts | {name: other})))  # type: ignore[arg-type]
    assert len(keys) == 1 + len(parts)
    joined = cache_key(**(parts | {"flags": ("a", "b")}))  # type: ignore[arg-type]
    assert joined != cache_key(**(parts | {"flags": ("a b",)}))  # type: ignore[arg-type]


def test_the_root_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CAKE_CACHE_DIR", str(tmp_path / "own"))
    assert default_root() == tmp_path / "own"
    monkeypatch.delenv("CAKE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_root() == tmp_path / "cake"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".cache" / "cake"


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_damage_is_noticed(data: st.DataObject) -> None:
    raw = bytearray(_pack(ENTRY))
    position = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[position] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[position:]
    assert _unpack(bytes(raw)) is None


def test_a_damaged_entry_is_removed_and_built_again(cache: KernelCache) -> None:
    cache.put(KEY, ENTRY)
    (path,) = cache.root.rglob("*.zip")
    path.write_bytes(path.read_bytes()[:100])
    assert cache.get(KEY) is None
    assert not path.exists()
    changed = replace(ENTRY, log="built again")
    assert cache.get_or_build(KEY, lambda: changed) == changed
    assert cache.get(KEY) == changed


def test_an_entry_is_a_zip_that_other_tools_read(cache: KernelCache) -> None:
    import zipfile

    cache.put(KEY, ENTRY)
    (path,) = cache.root.rglob("*.zip")
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("kernel.cu").decode() == ENTRY.source


def _hammer(root: str, worker: int, rounds: int, failures: "multiprocessing.Queue[str]") -> None:
    cache = KernelCache(
        Path(root), max_bytes=60_000, warn=lambda found: failures.put(found.message)
    )
    for step in range(rounds):
        key = f"{step % 7:064x}"
        expected = replace(ENTRY, log=key)
        entry = cache.get_or_build(key, lambda expected=expected: expected)  # type: ignore[misc]
        if entry != expected:
            failures.put(f"worker {worker} got another kernel for {key}")


def test_two_processes_share_a_folder_that_is_being_pruned(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    failures: multiprocessing.Queue[str] = context.Queue()
    workers = [
        context.Process(target=_hammer, args=(str(tmp_path), worker, 300, failures))
        for worker in range(2)
    ]
    for process in workers:
        process.start()
    for process in workers:
        process.join(timeout=60)
    assert [process.exitcode for process in workers] == [0, 0]
    assert failures.empty(), failures.get()
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    size = len(_pack(ENTRY))
    cache = KernelCache(tmp_path, max_bytes=3 * size + 10, warn=fail_on_warning)
    keys = [f"{number:02x}" * 32 for number in range(4)]
    for age, key in enumerate(keys[:3]):
        cache.put(key, ENTRY)
        os.utime(cache._path(key), (1000 + age, 1000 + age))
    assert cache.get(keys[0]) == ENTRY  # a hit makes the oldest the newest
    cache.put(keys[3], ENTRY)
    assert cache.get(keys[1]) is None
    assert [cache.get(key) for key in (keys[0], keys[2], keys[3])] == [ENTRY] * 3


def _full_disk(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the first ``times`` temporary files be on a device that is full (real ENOSPC)."""
    real: Callable[..., tuple[int, str]] = tempfile.mkstemp
    left = [times]

    def mkstemp(**options: object) -> tuple[int, str]:
        handle, name = real(**options)
        if left[0] > 0:
            left[0] -= 1
            os.close(handle)
            handle = os.open("/dev/full", os.O_WRONLY)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", mkstemp)


def test_a_full_disk_is_a_warning_and_the_kernel_is_still_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[Diagnostic] = []
    cache = KernelCache(tmp_path, warn=warnings.append)
    _full_disk(monkeypatch, times=100)
    assert cache.get_or_build(KEY, lambda: ENTRY) == ENTRY
    assert cache.get_or_build(KEY, lambda: ENTRY) == ENTRY
    (warning,) = warnings  # said once, not with every kernel
    assert (warning.code, warning.severity) == ("CK901", Severity.WARNING)
    assert warning.facts["errno"] == errno.ENOSPC
    assert "CAKE_CACHE_DIR" in warning.helps[0]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_on_a_full_disk_older_entries_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(_pack(ENTRY))
    cache = KernelCache(tmp_path, max_bytes=4 * size, warn=fail_on_warning)
    for number in range(4):
        cache.put(f"{number:02x}" * 32, ENTRY)
    _full_disk(monkeypatch, times=1)
    cache.put(KEY, ENTRY)
    assert cache.get(KEY) == ENTRY
    assert len(list(tmp_path.rglob("*.zip"))) == 3


def test_a_folder_that_cannot_be_used_is_a_warning(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    warnings: list[Diagnostic] = []
    cache = KernelCache(in_the_way / "cache", warn=warnings.append)
    assert cache.get_or_build(KEY, lambda: ENTRY) == ENTRY
    assert {warning.code for warning in warnings} == {"CK901"}
    assert {warning.message.split()[1] for warning in warnings} == {"read", "write"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_only_readable_serves_hits_and_warns_once(tmp_path: Path) -> None:
    KernelCache(tmp_path, warn=fail_on_warning).put(KEY, ENTRY)
    warnings: list[Diagnostic] = []
    cache = KernelCache(tmp_path, warn=warnings.append)
    for folder in (*tmp_path.iterdir(), tmp_path):
        folder.chmod(0o555)
    try:
        assert cache.get(KEY) == ENTRY
        cache.put("ff" * 32, ENTRY)
    finally:
        for folder in (tmp_path, *tmp_path.iterdir()):
            folder.chmod(0o755)
    assert [warning.code for warning in warnings] == ["CK901"]
