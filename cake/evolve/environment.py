"""What a session ran on, for the report."""

from __future__ import annotations

import os
import platform

import numpy as np

from cake import __version__
from cake.codegen.build import compiler_version
from cake.diag import CakeError
from cake.evolve.gpu import Gpu


def environment(gpu: Gpu | None) -> dict[str, str]:
    """Versions and devices by name; nothing that identifies the machine."""
    try:
        compiler = compiler_version()
    except CakeError as missing:
        compiler = missing.diagnostics[0].message
    return {
        "cake": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
        "compiler": compiler,
        "gpu": "none" if gpu is None else gpu.name,
    }
