"""The examples of the registry on a GPU of compute capability 9.0, against the simulator.

Run with ``pytest -m gpu tests/ops/test_registry_gpu.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from cake.simulate.run import simulate
from tests.ops.example import Example
from tests.ops.examples import EXAMPLES
from tests.ops.examples_memory import ONE_GROUP, tma


def simulated(example: Example) -> dict[str, Any]:
    arrays = example.arrays()
    result = simulate(example.make(), arrays)
    assert result.ok, [d.message for d in result.findings]
    return arrays


def same(got: Any, expected: Any) -> None:
    """Equal bits, but any NaN for a NaN: payloads are not part of the meaning."""
    real = np.ones(expected.shape, bool)
    if expected.dtype.kind == "f":
        real = ~np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(got), ~real)
    word = f"u{expected.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(word)[real], expected.view(word)[real])


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_gpu_agrees_with_the_simulator(name: str) -> None:
    check(EXAMPLES[name])


@pytest.mark.gpu
@pytest.mark.xfail(strict=True, reason="ptxas 13.0 to 13.5: docs/design/compiler_defects.md")
def test_a_store_before_a_loop_of_invariant_sums() -> None:
    check(tma(ONE_GROUP))


def check(example: Example) -> None:
    """The GPU against the simulator, and both against what is expected."""
    from cake.runtime.kernel import LoadedKernel
    from tests.runtime.test_gpu import DeviceMemory

    expected = simulated(example)
    built = compile_program(example.make())
    kernel = LoadedKernel(built.build.cubin, built.abi)
    arrays = {n: DeviceMemory(a) for n, a in example.arrays().items()}
    try:
        kernel.launch(dict(arrays))
        got = {n: memory.numpy() for n, memory in arrays.items()}
    finally:
        for memory in arrays.values():
            memory.free()
        kernel.close()
    for array in expected.keys() - set(example.free):
        if example.tolerance:
            np.testing.assert_allclose(
                got[array], expected[array], rtol=example.tolerance, atol=1e-6
            )
        else:
            same(got[array], expected[array])
    for array, values in example.expected(example.arrays()).items():
        if not example.tolerance:
            same(got[array], np.asarray(values, got[array].dtype))
