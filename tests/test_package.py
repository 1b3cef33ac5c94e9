"""What ``import cake`` may cost: nothing but the standard library."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PRINT_FOREIGN_MODULES = """
import sys
before = set(sys.modules)
import {module}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - sys.stdlib_module_names - {{"cake"}}))
"""


@pytest.mark.parametrize("module", ["cake", "cake.diag"])
def test_import_loads_only_the_standard_library(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINT_FOREIGN_MODULES.format(module=module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == []
