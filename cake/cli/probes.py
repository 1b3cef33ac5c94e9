"""What this machine has: one probe a function, none of which may fail.

The probes import what they ask for themselves: a machine that lacks it still runs the others.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

from cake import __version__
from cake.diag import CakeError

LEAST_FREE_BYTES = 1 << 30
"""Below this a run of `cake evolve` may fill the disk: cubins, arrays of the judge, reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of a probe. ``needed_for`` names commands; empty means all of them."""

    what: str
    ok: bool
    detail: str
    needed_for: tuple[str, ...] = ()
    remedy: str = ""


def python() -> Found:
    ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    detail = f"{platform.python_version()} ({sys.executable}), cake {__version__}"
    return Found(what="Python", ok=ok, detail=detail, remedy="install Python 3.11, 3.12 or 3.13")


def numbers() -> Found:
    try:
        versions = [f"{name} {import_module(name).__version__}" for name in ("numpy", "ml_dtypes")]
    except ImportError as error:
        remedy = "pip install numpy ml_dtypes"
        return Found(what="numpy", ok=False, detail=str(error), remedy=remedy)
    return Found(what="numpy", ok=True, detail=", ".join(versions))


def nvrtc() -> Found:
    what, needed = "NVRTC", ("build", "show", "judge", "bench", "evolve")
    try:
        from cake.codegen.build import compiler_version

        return Found(what=what, ok=True, detail=compiler_version(), needed_for=needed)
    except (CakeError, ImportError) as error:
        remedy = "pip install cuda-bindings nvidia-cuda-nvrtc"
        return Found(what=what, ok=False, detail=_one_line(error), needed_for=needed, remedy=remedy)


def nvdisasm() -> Found:
    what, needed = "nvdisasm", ("show --what sass",)
    remedy = "pip install nvidia-cuda-nvdisasm"
    try:
        from cuda import pathfinder
    except ImportError as error:
        return Found(what=what, ok=False, detail=str(error), needed_for=needed, remedy=remedy)
    path = pathfinder.find_nvidia_binary_utility("nvdisasm")
    detail = path or "not installed"
    return Found(what=what, ok=bool(path), detail=detail, needed_for=needed, remedy=remedy)


def gpu() -> Found:
    """The driver and its GPUs, with the target that each of them runs."""
    what, needed = "GPU", ("judge --device cuda", "bench")
    try:
        from cake.runtime import driver

        version = driver.checked(driver.driver().cuDriverGetVersion(), "cuDriverGetVersion")
        devices = [driver.device(i) for i in range(driver.device_count())]
    except (CakeError, ImportError) as error:
        remedy = "install the NVIDIA driver; start a container with access to the GPU"
        return Found(what=what, ok=False, detail=_one_line(error), needed_for=needed, remedy=remedy)
    listed = ", ".join(f"{d.name} ({_target_of(d.capability)})" for d in devices)
    detail = f"driver for CUDA {version // 1000}.{version % 1000 // 10}: {listed}"
    return Found(what=what, ok=True, detail=detail, needed_for=needed)


def _target_of(capability: tuple[int, int]) -> str:
    from cake.targets import get, names

    found = next((name for name in names() if get(name).capability == capability), None)
    return found or f"no target for compute capability {capability[0]}.{capability[1]}"


def torch() -> Found:
    return _optional("torch", "torch", ("baselines of judge and bench",))


def cupti() -> Found:
    return _optional("cupti-python", "cupti", ("kernel times without launch overhead",))


def nvml() -> Found:
    return _optional("nvidia-ml-py", "nvml", ("clocks and throttle reasons beside times",))


def z3() -> Found:
    return _optional("z3-solver", "smt", ("the verifier's solver: ranges, tails, stores",))


def _optional(distribution: str, extra: str, needed: tuple[str, ...]) -> Found:
    """An optional package by its metadata: importing torch alone would take seconds."""
    try:
        detail, ok = metadata.version(distribution), True
    except metadata.PackageNotFoundError:
        detail, ok = "not installed", False
    remedy = f"pip install 'cake-ir[{extra}]'"
    return Found(what=distribution, ok=ok, detail=detail, needed_for=needed, remedy=remedy)


def cache() -> Found:
    """Whether the kernel cache can be written, by writing to it."""
    from cake.codegen.cache import default_root

    root = default_root()
    what, needed = "kernel cache", ("fast builds",)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root) as file:
            file.write(b"cake")
            file.flush()
    except OSError as error:
        detail = f"{root}: {error.strerror or error}"
        remedy = "set CAKE_CACHE_DIR to a folder that can be written"
        return Found(what=what, ok=False, detail=detail, needed_for=needed, remedy=remedy)
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    detail = f"{root}, {size / 2**20:.0f} MiB"
    return Found(what=what, ok=True, detail=detail, needed_for=needed)


def disk() -> Found:
    """Free space where runs and temporary files go."""
    folders = {str(Path.cwd()), tempfile.gettempdir()}
    free = {folder: shutil.disk_usage(folder).free for folder in folders if os.path.isdir(folder)}
    least = min(free, key=lambda folder: free[folder])
    detail = ", ".join(f"{folder}: {space / 2**30:.1f} GiB free" for folder, space in free.items())
    return Found(
        what="disk",
        ok=free[least] >= LEAST_FREE_BYTES,
        detail=detail,
        needed_for=("evolve",),
        remedy=f"free some space in {least}, or set TMPDIR",
    )


def _one_line(error: Exception) -> str:
    if isinstance(error, CakeError):
        return error.diagnostics[0].message
    return " ".join(str(error).split())


_PROBES: tuple[Callable[[], Found], ...] = (
    python,
    numbers,
    nvrtc,
    nvdisasm,
    gpu,
    torch,
    cupti,
    nvml,
    z3,
    cache,
    disk,
)


def all_probes() -> Iterator[Found]:
    """The answers, one by one."""
    for probe in _PROBES:
        yield probe()
