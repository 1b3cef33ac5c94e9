"""The files of a new workload: a contract that is whole and holds, to be changed line by line."""

from __future__ import annotations

import keyword
import re
from pathlib import Path

import cake.workloads

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class ScaffoldError(ValueError):
    """The name cannot be taken, or is taken."""


_INIT = '"""{title}."""\n'

_CONTRACT = '''\
"""{title}."""

from cake.workloads.contract import (
    Contract,
    Dimension,
    Family,
    Step,
    TensorSpec,
    Tolerance,
    load_shapes,
)
from cake.workloads.families import standard_families

_DIMENSIONS = (
    Dimension(name="M", description="rows"),
    Dimension(name="N", description="columns", minimum=1),
)

CONTRACT = Contract(
    name="{name}",
    title="{title}",
    mathematics="y[m, n] = x[m, n]^2, in f32, rounded once",
    dimensions=_DIMENSIONS,
    tensors=(
        TensorSpec(name="x", role="input", dims=("M", "N"), dtype="T", description="numbers"),
        TensorSpec(
            name="y",
            role="output",
            dims=("M", "N"),
            dtype="T",
            description="their squares",
            tolerance=Tolerance(kind="float"),
        ),
    ),
    dtypes={{"bf16": {{"T": "bf16"}}, "f32": {{"T": "f32"}}}},
    families=(
        *standard_families(_DIMENSIONS),
        Family(name="tiny", description="numbers whose squares are subnormal in f32"),
    ),
    shapes=load_shapes("cake.workloads.{name}"),
    row_dims=("M",),
    row_elements="N",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("torch",),
    steps=(Step(name="main", description="one pass over x"),),
    timing_scope="all launches from x in device memory to y in device memory",
    bytes_moved="x + y",
    flops="M * N",
)
'''

_INPUTS = '''\
"""Input families of {name}."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem


def _tiny(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    return {{"x": 1e-20 * rng.standard_normal(problem.shape_of("x"))}}


FAMILIES: Mapping[str, Generator] = {{"tiny": _tiny}}
'''

_REFERENCE = '''\
"""Float64 reference of {name}."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import F32_UNIT, Array, Expected, ExpectedFloat, Ints, spacing, wide
from cake.workloads.problem import Problem


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``y`` at ``rows``; the bound is that of one multiplication in f32, subnormals included."""
    x = wide(inputs["x"][rows])
    value = x * x
    bound = F32_UNIT * np.abs(value) + spacing(np.zeros(1), np.dtype(np.float32))
    return {{"y": ExpectedFloat(value=value, bound=np.where(np.isfinite(value), bound, 0.0))}}
'''

_SHAPES = """\
{
 "tune": [{"M": 4096, "N": 4096, "dtype": "bf16"}],
 "audit": [{"M": 5000, "N": 3000, "dtype": "bf16"}],
 "headline": [{"M": 8192, "N": 8192, "dtype": "bf16"}],
 "small": [{"M": 5, "N": 72, "dtype": "bf16"}, {"M": 3, "N": 40, "dtype": "f32"}],
 "edge": [{"M": 0, "N": 8, "dtype": "bf16"}, {"M": 1, "N": 1, "dtype": "f32"}]
}
"""


def create(name: str, title: str, into: Path | None = None) -> Path:
    """The folder of a new workload, below ``into`` (the package of this CAKE without).

    Raises :class:`ScaffoldError`, and ``OSError`` where the folder cannot be written.
    """
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ScaffoldError(f"`{name}` is not a name of lower-case letters, digits and underscores")
    folder = (into or Path(cake.workloads.__path__[0])) / name
    if folder.exists():
        raise ScaffoldError(f"{folder} is there already")
    folder.mkdir(parents=True)
    texts = {"__init__": _INIT, "contract": _CONTRACT, "inputs": _INPUTS, "reference": _REFERENCE}
    for stem, text in texts.items():
        content = text.format(name=name, title=title.rstrip("."))
        (folder / f"{stem}.py").write_text(content, encoding="utf-8")
    (folder / "shapes.json").write_text(_SHAPES, encoding="utf-8")
    return folder
