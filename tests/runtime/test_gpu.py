"""Launches on a real GPU of compute capability 9.0: run with ``pytest -m gpu tests/runtime``."""

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cake.codegen.build import compile_cubin
from cake.runtime import driver
from cake.runtime.binding import LaunchError
from cake.runtime.kernel import LoadedKernel
from tests.runtime.gpu_kernels import (
    AXPY,
    CHAIN,
    CLUSTERS,
    SAMPLES,
    TICKETS,
    TMA_COPY,
    Sample,
)

Load = Callable[[Sample], LoadedKernel]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.abi.name)
def test_the_samples_build_and_their_interfaces_name_their_kernels(sample: Sample) -> None:
    built = compile_cubin(sample.source, name=sample.abi.name, target=sample.abi.target)
    assert built.facts.entry(sample.abi.name) is not None
    assert built.facts.notices == ()


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    loaded: dict[str, LoadedKernel] = {}

    def get(sample: Sample) -> LoadedKernel:
        name = sample.abi.name
        if name not in loaded:
            cubin = compile_cubin(sample.source, name=name, target=sample.abi.target).cubin
            loaded[name] = LoadedKernel(cubin, sample.abi)
        return loaded[name]

    yield get
    for kernel in loaded.values():
        kernel.close()


@pytest.fixture(scope="module")
def torch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch warns of at import is not ours
        return pytest.importorskip("torch")


class DeviceMemory:
    """Device memory of our own, seen through ``__cuda_array_interface__``."""

    def __init__(self, content: np.ndarray[Any, Any]) -> None:
        self._content = content
        with driver.current(0):
            allocated = driver.driver().cuMemAlloc(max(content.nbytes, 1))
            self.pointer = int(driver.checked(allocated, "cuMemAlloc"))
            copied = driver.driver().cuMemcpyHtoD(self.pointer, content, content.nbytes)
            driver.checked(copied, "cuMemcpyHtoD")
        self.__cuda_array_interface__ = {
            "shape": content.shape,
            "typestr": content.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }

    def numpy(self) -> np.ndarray[Any, Any]:
        """The content, after all work on the legacy default stream."""
        found = np.empty_like(self._content)
        with driver.current(0):
            copied = driver.driver().cuMemcpyDtoH(found, self.pointer, found.nbytes)
            driver.checked(copied, "cuMemcpyDtoH")
        return found

    def free(self) -> None:
        with driver.current(0):
            driver.checked(driver.driver().cuMemFree(self.pointer), "cuMemFree")


@pytest.mark.gpu
def test_the_device_has_facts() -> None:
    assert driver.device_count() >= 1
    device = driver.device(0)
    assert device.name
    assert device.capability[0] >= 8
    assert device.sms > 10
    assert device.sm_clock_khz > 500_000
    assert device.smem_per_block_bytes >= 99 * 1024


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 127, 128, 100_003])
def test_axpy_with_torch(load: Load, torch: Any, size: int) -> None:
    x, y = torch.randn(size, device="cuda"), torch.randn(size, device="cuda")
    z = torch.full((size,), float("nan"), device="cuda")
    load(AXPY).launch({"x": x, "y": y, "z": z, "alpha": 2.0})
    assert torch.equal(z, 2.0 * x + y)


@pytest.mark.gpu
def test_axpy_with_the_cuda_array_interface(load: Load) -> None:
    rng = np.random.default_rng(1)
    x, y = (DeviceMemory(rng.standard_normal(1001, np.float32)) for _ in range(2))
    z = DeviceMemory(np.full(1001, np.nan, np.float32))
    load(AXPY).launch({"x": x, "y": y, "z": z, "alpha": 0.5})
    assert np.array_equal(z.numpy(), np.float32(0.5) * x.numpy() + y.numpy())
    for memory in (x, y, z):
        memory.free()


@pytest.mark.gpu
def test_axpy_with_dlpack_only(load: Load, torch: Any) -> None:
    class Opaque:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> Any:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.tensor.__dlpack_device__()

    x, y = torch.randn(300, device="cuda"), torch.randn(300, device="cuda")
    z = torch.zeros(300, device="cuda")
    torch.cuda.synchronize()
    arguments = {"x": Opaque(x), "y": Opaque(y), "z": Opaque(z), "alpha": 2.0}
    load(AXPY).launch(arguments)
    load(AXPY).launch(arguments)
    torch.cuda.synchronize()
    assert torch.equal(z, 2.0 * x + y)


@pytest.mark.gpu
def test_the_callers_stream_is_used(load: Load, torch: Any) -> None:
    x = torch.zeros(4096, device="cuda")
    z = torch.zeros(4096, device="cuda")
    kernel = load(AXPY)
    arguments = {"x": x, "y": x, "z": z, "alpha": 1.0}
    kernel.launch(arguments)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)  # cycles: any other stream would read x before it is filled
        x.fill_(3.0)
        kernel.launch(arguments)
    side.synchronize()
    assert torch.all(z == 6.0)

    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.fill_(5.0)
    kernel.launch(arguments, stream=side)
    side.synchronize()
    assert torch.all(z == 10.0)


@pytest.mark.gpu
def test_a_thread_without_a_context_can_launch(load: Load, torch: Any) -> None:
    x, z = torch.ones(256, device="cuda"), torch.zeros(256, device="cuda")
    torch.cuda.synchronize()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            load(AXPY).launch({"x": x, "y": x, "z": z, "alpha": 1.0}, stream=0)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert errors == []
    assert torch.all(z == 2.0)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 64, 32), (1, 200, 100), (3, 50, 36), (2, 1, 4)])
def test_tma_copies_with_tails_and_folded_axes(
    load: Load, torch: Any, shape: tuple[int, int, int]
) -> None:
    batch, rows, columns = shape
    x = torch.randn(shape, device="cuda")
    padded = torch.full((batch * rows + 1, columns + 12), -7.0, device="cuda")
    y = padded[: batch * rows, :columns].view(batch, rows, columns)
    load(TMA_COPY).launch({"x": x, "y": y})
    assert torch.equal(y, x)
    assert torch.all(padded[:, columns:] == -7.0)
    assert torch.all(padded[batch * rows :] == -7.0)


@pytest.mark.gpu
def test_tma_copies_at_new_addresses(load: Load, torch: Any) -> None:
    for _ in range(5):
        x, y = torch.randn(1, 128, 64, device="cuda"), torch.zeros(1, 128, 64, device="cuda")
        load(TMA_COPY).launch({"x": x, "y": y})
        assert torch.equal(y, x)


@pytest.mark.gpu
def test_a_workspace_is_zero_in_every_launch(load: Load, torch: Any) -> None:
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    for blocks in (1, 7, 300, 7):
        load(TICKETS).launch({"out": out, "blocks": blocks})
    assert out.item() == 1 + 7 + 300 + 7


@pytest.mark.gpu
def test_a_graph_captures_launches(load: Load, torch: Any) -> None:
    x = torch.randn(1, 64, 64, device="cuda")
    y, z = torch.zeros_like(x), torch.zeros(64 * 64, device="cuda")
    out = torch.zeros(1, dtype=torch.int32, device="cuda")

    def work() -> None:
        load(TMA_COPY).launch({"x": x, "y": y})
        flat = y.view(-1)
        load(AXPY).launch({"x": flat, "y": flat, "z": z, "alpha": 1.0})
        load(TICKETS).launch({"out": out, "blocks": 40})

    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # on a stream that has no workspace yet
        work()
    torch.cuda.synchronize()
    out.zero_()
    for number in range(3):
        x.fill_(number + 1.0)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.all(y == number + 1.0)
        assert torch.all(z == 2 * (number + 1.0))
        assert out.item() == 40 * (number + 1)


@pytest.mark.gpu
def test_clusters_and_large_shared_memory(load: Load, torch: Any) -> None:
    out = torch.zeros(16, dtype=torch.int32, device="cuda")
    load(CLUSTERS).launch({"out": out})
    assert out.tolist() == [4] * 16


@pytest.mark.gpu
def test_dependent_launches_keep_their_order(load: Load, torch: Any) -> None:
    x = torch.zeros(100_000, dtype=torch.int32, device="cuda")
    for _ in range(200):
        load(CHAIN).launch({"x": x})
    assert torch.all(x == 200)


@pytest.mark.gpu
def test_nothing_happens_for_empty_arrays(load: Load, torch: Any) -> None:
    empty = torch.zeros(0, device="cuda")
    load(AXPY).launch({"x": empty, "y": empty, "z": empty, "alpha": 1.0})
    torch.cuda.synchronize()


@pytest.mark.gpu
def test_what_does_not_fit_is_refused_and_leaves_the_gpu_alone(load: Load, torch: Any) -> None:
    x = torch.randn(256, device="cuda")
    z = torch.zeros(256, device="cuda")
    wrong = [
        ({"x": x.cpu()}, "CK705"),
        ({"x": x.double()}, "CK703"),
        ({"x": torch.randn(512, device="cuda")[::2]}, "CK708"),
        ({"x": x[:128]}, "CK704"),
        ({"x": x[None]}, "CK704"),
    ]
    for change, code in wrong:
        with pytest.raises(LaunchError) as caught:
            load(AXPY).launch({"x": x, "y": x, "z": z, "alpha": 1.0} | change)
        assert code in [finding.code for finding in caught.value.diagnostics]
    tile = torch.zeros(1, 64, 36, device="cuda")
    for bad in (tile[:, :, 1:33], torch.zeros(1, 64, 33, device="cuda")):
        with pytest.raises(LaunchError):
            load(TMA_COPY).launch({"x": bad, "y": bad})
    load(AXPY).launch({"x": x, "y": x, "z": z, "alpha": 1.0})
    assert torch.equal(z, x + x)
