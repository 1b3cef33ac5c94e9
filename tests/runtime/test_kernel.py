"""Launches against a recording driver: parameters, plans, streams, workspaces, errors."""

import ctypes
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cake.codegen.abi import (
    DimArg,
    KernelAbi,
    PointerArg,
    ScalarArg,
    ScalarSpec,
    StrideArg,
    TensorMapArg,
    TensorSpec,
    Workspace,
    WorkspaceArg,
)
from cake.runtime import driver, kernel, tensormap
from cake.runtime.binding import LaunchError
from cake.runtime.kernel import LoadedKernel
from cake.runtime.tensormap import MapSpec, TensorMap, TensorMapCache
from tests.runtime.fakes import H200, FakeDriver, FakeTensor, simple_abi

ADDRESS = 0x7F00_0000_0000


@dataclass
class Encoded:
    """A map that carries its own address in its first bytes, as the recording driver reads it."""

    spec: MapSpec
    pointer: int


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> list[Encoded]:
    made: list[Encoded] = []

    def encode(spec: MapSpec, pointer: int) -> TensorMap:
        made.append(Encoded(spec, pointer))
        encoded = TensorMap()
        ctypes.c_uint64.from_address(encoded.address).value = pointer
        return encoded

    monkeypatch.setattr(tensormap, "encode", encode)
    monkeypatch.setattr(kernel, "_TENSOR_MAPS", TensorMapCache())
    return made


Load = Callable[[KernelAbi], tuple[LoadedKernel, FakeDriver]]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch, encodings: list[Encoded]) -> Load:
    def loaded(abi: KernelAbi) -> tuple[LoadedKernel, FakeDriver]:
        fake = FakeDriver(parameter_count=len(abi.args))
        monkeypatch.setattr(driver, "driver", lambda: fake)
        monkeypatch.setattr(driver, "device", lambda ordinal: H200)
        monkeypatch.setattr(driver, "primary_context", lambda ordinal: 1000 + ordinal)
        return LoadedKernel(b"cubin", abi), fake

    return loaded


def xy(size: int, pointer: int = ADDRESS) -> dict[str, Any]:
    return {
        "x": FakeTensor((size,), pointer=pointer),
        "y": FakeTensor((size,), pointer=pointer + 4096),
    }


FULL = simple_abi(
    name="full",
    tensors=(
        TensorSpec(name="x", dtype="f32", shape=("M", "N"), writable=False, align=16),
        TensorSpec(name="y", dtype="f32", shape=("M", "N"), writable=True, align=4),
    ),
    scalars=(
        ScalarSpec(name="scale", dtype="f32"),
        ScalarSpec(name="step", dtype="i32"),
        ScalarSpec(name="offset", dtype="i64"),
        ScalarSpec(name="split", dtype="i32"),
    ),
    args=(
        DimArg(symbol="N", dtype="i32"),
        TensorMapArg(tensor="x", box=(8, 16), axes=(0, 1), dtype="f32"),
        PointerArg(tensor="y"),
        StrideArg(tensor="y", axis=0),
        ScalarArg(name="scale"),
        ScalarArg(name="step"),
        ScalarArg(name="offset"),
        WorkspaceArg(name="tickets"),
        DimArg(symbol="M", dtype="i64"),
    ),
    workspaces=(Workspace(name="tickets", bytes="4 * split", zeroed=True),),
    grid=("cdiv(M, 8)", "split", "1"),
    cluster=(2, 1, 1),
    smem_bytes=65536,
    pdl=True,
)


def full_arguments(**changes: Any) -> dict[str, Any]:
    return {
        "x": FakeTensor((16, 64), pointer=ADDRESS),
        "y": FakeTensor((16, 64), pointer=ADDRESS + 0x10000, strides=(80, 1)),
        "scale": 0.5,
        "step": -3,
        "offset": -(1 << 40),
        "split": 4,
    } | changes


def test_every_kind_of_parameter_reaches_the_driver(load: Load, encodings: list[Encoded]) -> None:
    loaded, fake = load(FULL)
    loaded.launch(full_arguments())
    (launch,) = fake.launches
    assert launch.grid == (2, 4, 1)
    assert (launch.block, launch.smem, launch.stream) == (128, 65536, 0)
    n, map_address, y, stride, scale, step, offset, tickets, m = launch.parameters
    assert (n, m, stride) == (64, 16, 80)
    assert map_address == ADDRESS  # the first bytes of the encoded map
    assert launch.addresses[1] % 64 == 0
    assert y == ADDRESS + 0x10000
    assert struct.unpack("<f", struct.pack("<I", scale & 0xFFFFFFFF)) == (0.5,)
    assert step & 0xFFFFFFFF == 2**32 - 3
    assert offset == 2**64 - 2**40
    assert fake.allocations == [(tickets, 16)]
    assert fake.cleared == [(tickets, 16)]
    (encoded,) = encodings
    assert (encoded.spec.extents, encoded.spec.strides) == ((64, 16), (256,))


def test_cluster_overlap_and_shared_memory_are_asked_for(load: Load) -> None:
    loaded, fake = load(FULL)
    loaded.launch(full_arguments())
    cluster, overlap = fake.launches[0].attributes
    size = cluster.value.clusterDim
    assert (size.x, size.y, size.z) == (2, 1, 1)
    assert overlap.value.programmaticStreamSerializationAllowed == 1
    assert fake.attributes_set == {"MAX_DYNAMIC_SHARED_SIZE_BYTES": 65536}

    plain, fake = load(simple_abi())
    plain.launch(xy(256))
    assert fake.launches[0].attributes == []

    wide, fake = load(simple_abi(cluster=(16, 1, 1), grid=("16", "1", "1")))
    wide.launch(xy(256))
    assert fake.attributes_set["NON_PORTABLE_CLUSTER_SIZE_ALLOWED"] == 1


def test_a_second_launch_allocates_nothing_and_encodes_nothing(
    load: Load, encodings: list[Encoded], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, fake = load(FULL)
    loaded.launch(full_arguments())
    fake.calls.clear()

    def forbidden(*arguments: Any) -> Any:
        raise AssertionError("a launch with known shapes must not check again")

    monkeypatch.setattr(loaded._binder, "bind", forbidden)
    loaded.launch(full_arguments(scale=2.0, step=5))
    assert fake.calls == []  # beyond the launch itself and the look at the context
    assert len(fake.allocations) == 1
    assert len(encodings) == 1
    first, second = fake.launches
    assert second.parameters[4] != first.parameters[4]
    assert second.parameters[5] == 5
    changed = {4, 5}
    assert [p for i, p in enumerate(first.parameters) if i not in changed] == [
        p for i, p in enumerate(second.parameters) if i not in changed
    ]


def test_new_addresses_need_a_new_map_and_no_new_plan(load: Load, encodings: list[Encoded]) -> None:
    loaded, fake = load(FULL)
    for pointer in (ADDRESS, ADDRESS + 0x2000, ADDRESS):
        loaded.launch(full_arguments(x=FakeTensor((16, 64), pointer=pointer)))
    assert [launch.parameters[1] for launch in fake.launches] == [
        ADDRESS,
        ADDRESS + 0x2000,
        ADDRESS,
    ]
    assert len(encodings) == 2
    assert len(loaded._plans) == 1


def test_a_scalar_that_shapes_the_launch_makes_a_plan_of_its_own(load: Load) -> None:
    loaded, fake = load(FULL)
    loaded.launch(full_arguments(split=4))
    loaded.launch(full_arguments(split=8))
    loaded.launch(full_arguments(split=4))
    assert [launch.grid[1] for launch in fake.launches] == [4, 8, 4]
    assert len(loaded._plans) == 2


def test_the_number_of_plans_is_bounded(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_MAX_PLANS", 3)
    loaded, fake = load(simple_abi())
    for size in range(128, 128 * 8, 128):
        loaded.launch(xy(size))
    assert len(loaded._plans) == 3
    assert [launch.grid[0] for launch in fake.launches] == [1, 2, 3, 4, 5, 6, 7]


def test_nothing_is_launched_for_nothing(load: Load) -> None:
    loaded, fake = load(simple_abi())
    loaded.launch(xy(0, pointer=0) | {"y": FakeTensor((0,), pointer=0)})
    assert fake.launches == []
    loaded.launch(xy(128))
    assert len(fake.launches) == 1


def test_misaligned_and_absent_memory_is_found_with_a_known_shape_too(load: Load) -> None:
    loaded, fake = load(simple_abi())
    loaded.launch(xy(128))
    with pytest.raises(LaunchError, match="not a multiple of 16 bytes"):
        loaded.launch(xy(128, pointer=ADDRESS + 8))
    with pytest.raises(LaunchError, match="no memory"):
        loaded.launch(xy(128) | {"x": FakeTensor((128,), pointer=0)})
    assert len(fake.launches) == 1


def test_a_map_needs_its_own_alignment(load: Load) -> None:
    tensors = (TensorSpec(name="x", dtype="f32", shape=("M", "N"), writable=False, align=4),)
    args = (TensorMapArg(tensor="x", box=(8, 16), axes=(0, 1), dtype="f32"),)
    loaded, _ = load(simple_abi(tensors=tensors, args=args, grid=("M", "1", "1")))
    loaded.launch({"x": FakeTensor((16, 64))})
    with pytest.raises(LaunchError, match="is not a multiple of 16 bytes") as caught:
        loaded.launch({"x": FakeTensor((16, 64), pointer=ADDRESS + 4)})
    assert caught.value.diagnostics[0].code == "CK712"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra": 1}, "unknown argument `extra`"),
        ({"x": "text"}, "`x` cannot be used as an array"),
        ({"x": [1.0]}, "`x` cannot be used as an array"),
    ],
)
def test_wrong_arguments_are_named_with_a_known_shape_too(
    load: Load, changes: dict[str, Any], message: str
) -> None:
    loaded, _ = load(simple_abi())
    loaded.launch(xy(128))
    with pytest.raises(LaunchError, match=message):
        loaded.launch(xy(128) | changes)
    incomplete = xy(128)
    del incomplete["y"]
    with pytest.raises(LaunchError, match="argument `y` is missing"):
        loaded.launch(incomplete)


def test_wrong_scalars_are_named_with_a_known_shape_too(load: Load) -> None:
    loaded, fake = load(FULL)
    loaded.launch(full_arguments())
    with pytest.raises(LaunchError, match=r"scalar `step` is 2147483648, outside"):
        loaded.launch(full_arguments(step=1 << 31))
    with pytest.raises(LaunchError, match="scalar `scale` is a str"):
        loaded.launch(full_arguments(scale="fast"))
    with pytest.raises(LaunchError, match="scalar `split` is a list"):
        loaded.launch(full_arguments(split=[1]))
    renamed = full_arguments(speed=1)
    del renamed["step"]
    with pytest.raises(LaunchError, match="argument `step` is missing"):
        loaded.launch(renamed)
    assert len(fake.launches) == 1


def test_the_stream_is_the_explicit_one_else_that_of_the_arrays(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tensor(FakeTensor):
        pass

    loaded, fake = load(simple_abi())
    loaded.launch(xy(128))
    loaded.launch(xy(128), stream=5)
    torch = SimpleNamespace(
        Tensor=Tensor, _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 42)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    mixed = {"x": FakeTensor((128,)), "y": Tensor((128,))}
    loaded.launch(mixed)
    loaded.launch(mixed, stream=6)
    assert [launch.stream for launch in fake.launches] == [0, 5, 42, 6]


def test_the_devices_context_is_made_current_only_where_it_is_not(load: Load) -> None:
    loaded, fake = load(simple_abi())
    loaded.launch(xy(128))
    fake.pushed.clear()
    loaded.launch(xy(128))
    assert fake.pushed == []
    fake.context = 0  # a thread that has never used the GPU
    loaded.launch(xy(128))
    assert fake.pushed == [1000]


def test_workspaces_belong_to_a_stream_and_grow(load: Load) -> None:
    loaded, fake = load(FULL)
    loaded.launch(full_arguments(split=4))
    loaded.launch(full_arguments(split=2))  # fits into what is there
    assert [size for _, size in fake.allocations] == [16]
    loaded.launch(full_arguments(split=5))
    assert [size for _, size in fake.allocations] == [16, 32]  # doubled, the old one kept
    loaded.launch(full_arguments(split=4), stream=9)
    assert [size for _, size in fake.allocations] == [16, 32, 16]
    used = [launch.parameters[7] for launch in fake.launches]
    pointers = [pointer for pointer, _ in fake.allocations]
    assert used == [pointers[0], pointers[0], pointers[1], pointers[2]]
    assert fake.cleared == fake.allocations
    loaded.close()
    assert fake.calls.count("cuMemFree") == 3
    assert fake.calls.count("cuLibraryUnload") == 1


def test_an_error_of_the_launch_is_raised(load: Load) -> None:
    loaded, fake = load(simple_abi())
    fake.launch_status = bindings.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(driver.DriverError, match="launching `copy` failed") as caught:
        loaded.launch(xy(128))
    assert caught.value.name == "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"


def test_a_kernel_for_another_target_is_refused_before_anything_is_set(load: Load) -> None:
    loaded, fake = load(simple_abi(target="sm_100a"))
    with pytest.raises(LaunchError, match="built for sm_100a"):
        loaded.launch(xy(128))
    assert fake.attributes_set == {}


def test_threads_do_not_mix_their_parameters(load: Load) -> None:
    loaded, fake = load(simple_abi())
    loaded.launch(xy(128))
    rounds = 100

    def work(start: int) -> None:
        for step in range(rounds):
            loaded.launch(xy(128, pointer=start + step * 16))

    starts = (ADDRESS, ADDRESS + (1 << 30), ADDRESS + (2 << 30))
    threads = [threading.Thread(target=work, args=(start,)) for start in starts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {start + step * 16 for start in starts for step in range(rounds)}
    seen = [launch.parameters for launch in fake.launches[1:]]
    assert sorted(x for x, _ in seen) == sorted(wanted)
    assert all(y == x + 4096 for x, y in seen)
