"""Without a driver everything says so at once; with one, errors keep their names."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cake.diag import CakeError
from cake.runtime import driver
from cake.runtime.streams import stream_handle
from tests.runtime.fakes import FakeDriver

ROOT = Path(__file__).parents[2]

WITHOUT_A_DRIVER = """
import ctypes
import cake.runtime.driver as driver
from cake.runtime.arrays import ArrayError, adapter_of
from cake.runtime.kernel import LoadedKernel
from cake.runtime.tensormap import MapSpec, encode
from tests.runtime.fakes import FakeInterface, simple_abi

class OnGpu:
    def __dlpack__(self, **options): raise AssertionError("must not be reached")
    def __dlpack_device__(self): return 2, 0

driver._LIBRARY = "libcuda-that-is-not-here.so.1"
spec = MapSpec(dtype="f32", extents=(4, 1), strides=(16,), box=(4, 1), swizzle=0,
               l2_promotion=0, oob="zero")
entry_points = [
    driver.driver,
    driver.device_count,
    lambda: driver.device(0),
    lambda: driver.primary_context(0),
    lambda: driver.pointer_device(4096),
    lambda: LoadedKernel(b"cubin", simple_abi()),
    lambda: adapter_of(OnGpu()).view(OnGpu()),
    lambda: adapter_of(FakeInterface((3,))).view(FakeInterface((3,))),
    lambda: encode(spec, 4096),
]
for entry in entry_points * 2:  # twice: the second call of cuda.core is the one that hangs
    try:
        entry()
    except driver.NoDriver as error:
        assert "CK716" in str(error) and "install the NVIDIA driver" in str(error)
    else:
        raise SystemExit(f"{entry} did not notice that there is no driver")
print("all refused", len(entry_points))
"""


def test_every_entry_point_raises_no_driver_and_none_hangs() -> None:
    child = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_DRIVER],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout == "all refused 9\n"


def test_a_driver_without_a_gpu_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "libcuda", lambda: None)
    monkeypatch.setattr(bindings, "cuInit", lambda flags: (bindings.CUresult.CUDA_ERROR_NO_DEVICE,))
    driver.driver.cache_clear()
    try:
        with pytest.raises(driver.NoDriver, match="CUDA_ERROR_NO_DEVICE"):
            driver.driver()
    finally:
        driver.driver.cache_clear()


def test_an_error_of_the_driver_keeps_its_name_and_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = FakeDriver(parameter_count=0)
    monkeypatch.setattr(driver, "driver", lambda: fake)
    lost = bindings.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(driver.DriverError) as caught:
        driver.checked((lost, None), "cuStreamSynchronize")
    (finding,) = caught.value.diagnostics
    assert caught.value.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert finding.facts == {
        "cuda_error": "CUDA_ERROR_ILLEGAL_ADDRESS",
        "call": "cuStreamSynchronize",
    }
    assert "start a new process" in finding.helps[0]
    assert driver.checked((bindings.CUresult.CUDA_SUCCESS,), "x") == ()
    assert driver.checked((bindings.CUresult.CUDA_SUCCESS, 5), "x") == 5
    assert driver.checked((bindings.CUresult.CUDA_SUCCESS, 5, 6), "x") == (5, 6)


class _Pointers(FakeDriver):
    """Knows two pointers: 4096 on GPU 1, 8192 in registered host memory."""

    def cuPointerGetAttribute(self, attribute: Any, pointer: int) -> tuple[Any, int | None]:
        if not self.context:
            return bindings.CUresult.CUDA_ERROR_INVALID_CONTEXT, None
        if pointer not in (4096, 8192):
            return bindings.CUresult.CUDA_ERROR_INVALID_VALUE, None
        if attribute.name.endswith("MEMORY_TYPE"):
            kind = bindings.CUmemorytype
            on_gpu = pointer == 4096
            return self.OK, int(kind.CU_MEMORYTYPE_DEVICE if on_gpu else kind.CU_MEMORYTYPE_HOST)
        return self.OK, 1

    def cuCtxSetCurrent(self, context: Any) -> tuple[Any]:
        self.context = int(context)
        return (self.OK,)


def test_the_device_of_a_pointer(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = _Pointers(parameter_count=0, context=0)  # a thread that has no context yet
    monkeypatch.setattr(driver, "driver", lambda: fake)
    monkeypatch.setattr(driver, "primary_context", lambda ordinal: bindings.CUcontext(1000))
    assert driver.pointer_device(4096) == 1
    assert fake.context == 1000
    assert driver.pointer_device(8192) is None
    assert driver.pointer_device(77) is None


class _Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 77


class _Torch:
    cuda_stream = 78


class _Cupy:
    ptr = 79


@pytest.mark.parametrize(
    ("stream", "handle"), [(0, 0), (2, 2), (_Protocol(), 77), (_Torch(), 78), (_Cupy(), 79)]
)
def test_streams_of_every_library(stream: Any, handle: int) -> None:
    assert stream_handle(stream) == handle


@pytest.mark.parametrize("stream", ["main", True, -1, 1.0, object()])
def test_what_is_no_stream_is_refused(stream: Any) -> None:
    with pytest.raises(CakeError, match="is no CUDA stream") as caught:
        stream_handle(stream)
    assert caught.value.diagnostics[0].code == "CK715"
