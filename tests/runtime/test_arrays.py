"""Arrays of every kind become the same view."""

import sys
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cake.runtime.arrays import (
    ANYWHERE,
    HOST,
    ArrayError,
    ArrayView,
    CudaArrayInterfaceAdapter,
    adapter_of,
    dtype_name,
)
from tests.runtime.fakes import FakeInterface, FakeTensor

ADDRESS = 0x7F00_0000_0000


def on_gpu_one(pointer: int) -> int | None:
    return 1 if pointer >= 0x1000_0000 else None


INTERFACE = CudaArrayInterfaceAdapter(on_gpu_one)


def test_a_torch_like_tensor() -> None:
    tensor = FakeTensor((4, 8), "torch.bfloat16", strides=(16, 1), device=2)
    assert adapter_of(tensor).view(tensor) == ArrayView(
        pointer=ADDRESS, shape=(4, 8), strides=(16, 1), dtype="bf16", device=2, readonly=False
    )


def test_a_cuda_array_interface_with_byte_strides() -> None:
    array = FakeInterface((4, 8), "<f4", strides=(64, 4), data=(ADDRESS, True))
    assert INTERFACE.view(array) == ArrayView(
        pointer=ADDRESS, shape=(4, 8), strides=(16, 1), dtype="f32", device=1, readonly=True
    )


def test_a_cuda_array_interface_without_strides_is_row_major() -> None:
    assert INTERFACE.view(FakeInterface((2, 3, 4), "<i8", strides=None)).strides == (12, 4, 1)
    assert INTERFACE.view(FakeInterface((), "|b1")).strides == ()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_told_by_the_dtype_beside_a_void_type_string(dtype: Any) -> None:
    array = FakeInterface((16,), np.dtype(dtype).str)
    array.dtype = np.dtype(dtype)  # type: ignore[attr-defined]
    expected = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3"}[np.dtype(dtype).name]
    assert INTERFACE.view(array).dtype == expected


def test_figures_of_numpy_become_plain_integers() -> None:
    shape: Any = (np.int64(4), np.int32(8))
    array = FakeInterface(shape, strides=(np.int64(32), 4), data=(np.uint64(ADDRESS), False))
    view = INTERFACE.view(array)
    assert (view.pointer, view.shape, view.strides) == (ADDRESS, (4, 8), (8, 1))
    assert {type(figure) for figure in (view.pointer, *view.shape, *view.strides)} == {int}
    assert type(INTERFACE.read(array)[0]) is int


def test_devices_of_interface_arrays() -> None:
    assert INTERFACE.view(FakeInterface((3,), data=(0x1000, False))).device == HOST
    assert INTERFACE.view(FakeInterface((0,), data=(0, False))).device == ANYWHERE
    assert INTERFACE.view(FakeInterface((0,), data=(None, False))).pointer == 0


@pytest.mark.parametrize(
    ("entries", "problem"),
    [({"mask": object()}, "mask"), ({"strides": (6,)}, "not multiples of the element's 4 bytes")],
)
def test_what_a_kernel_cannot_read_is_refused(entries: dict[str, Any], problem: str) -> None:
    with pytest.raises(ArrayError, match=problem):
        INTERFACE.view(FakeInterface((3,), "<f4", **entries))


def test_layouts_are_equal_but_for_the_address() -> None:
    pairs = [
        (FakeTensor((4, 8)), FakeTensor((4, 8), pointer=ADDRESS + 256)),
        (FakeInterface((4, 8)), FakeInterface((4, 8), data=(ADDRESS + 256, False))),
    ]
    for first, second in pairs:
        adapter = INTERFACE if isinstance(first, FakeInterface) else adapter_of(first)
        (pointer, layout), (other_pointer, other_layout) = adapter.read(first), adapter.read(second)
        assert (layout, pointer + 256) == (other_layout, other_pointer)
        assert hash(layout) == hash(other_layout)


@pytest.mark.parametrize(
    "other",
    [
        FakeTensor((8, 4)),
        FakeTensor((4, 8), "torch.float16"),
        FakeTensor((4, 8), strides=(1, 4)),
        FakeTensor((4, 8), device=1),
    ],
)
def test_layouts_differ_in_shape_dtype_strides_and_device(other: FakeTensor) -> None:
    tensor = FakeTensor((4, 8))
    assert adapter_of(tensor).read(tensor)[1] != adapter_of(other).read(other)[1]


def test_host_arrays_are_refused_with_the_reason() -> None:
    array = np.zeros(4, np.float32)
    with pytest.raises(ArrayError, match="not in the memory of a GPU"):
        adapter_of(array).view(array)


@pytest.mark.parametrize("value", [[1, 2], 3.0, None, "x"])
def test_other_objects_are_refused(value: object) -> None:
    with pytest.raises(ArrayError, match="has neither data_ptr"):
        adapter_of(value)


def test_an_interface_that_raises_is_an_array_error() -> None:
    class Lost:
        ready = True

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            if self.ready:
                return {}
            raise AttributeError("moved to the host")

    array = Lost()
    adapter = adapter_of(array)
    Lost.ready = False
    with pytest.raises(ArrayError, match="moved to the host"):
        adapter.view(array)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        ("torch.float8_e5m2", "e5m2"),
        (np.dtype(np.uint32), "u32"),
        (np.dtype(ml_dtypes.float8_e5m2), "e5m2"),
        (np.dtype(np.bool_), "bool"),
        ("torch.complex64", "complex64"),
    ],
)
def test_dtype_names(dtype: object, name: str) -> None:
    assert dtype_name(dtype) == name


def test_the_stream_of_torch_is_asked_only_for_torch_tensors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tensor(FakeTensor):
        pass

    fast = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 40 + device)
    public = SimpleNamespace(current_stream=lambda device: SimpleNamespace(cuda_stream=50 + device))
    torch = SimpleNamespace(Tensor=Tensor, _C=fast, cuda=public)
    monkeypatch.setitem(sys.modules, "torch", torch)
    array = Tensor((3,))
    assert adapter_of(array).current_stream(array, 2) == 42
    torch._C = SimpleNamespace()
    assert adapter_of(array).current_stream(array, 2) == 52
    other = FakeTensor((3,))
    assert adapter_of(other).current_stream(other, 2) is None


def test_the_stream_of_an_interface_and_of_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert INTERFACE.current_stream(FakeInterface((3,), stream=5), 0) == 5
    assert INTERFACE.current_stream(FakeInterface((3,), stream=None), 0) is None
    assert INTERFACE.current_stream(FakeInterface((3,)), 0) is None

    streams = SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=60 + device))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=FakeInterface, cuda=streams))
    assert INTERFACE.current_stream(FakeInterface((3,), stream=5), 1) == 61
