"""Every way in which arguments do not fit a kernel, and what follows from those that do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cake.codegen.abi import (
    DimArg,
    Guard,
    KernelAbi,
    PointerArg,
    ScalarArg,
    ScalarSpec,
    StrideArg,
    TensorMapArg,
    TensorSpec,
    Workspace,
)
from cake.diag import Diagnostic
from cake.runtime.binding import Binder, Binding, LaunchError
from cake.runtime.kernel import check_device
from tests.runtime.fakes import H200, FakeTensor, simple_abi

ADDRESS = 0x7F00_0000_0000

MATMUL = KernelAbi(
    name="matmul",
    target="sm_90a",
    tensors=(
        TensorSpec(name="a", dtype="bf16", shape=("B", "M", "K"), writable=False, align=16),
        TensorSpec(name="b", dtype="bf16", shape=("K", 256), writable=False, align=16),
        TensorSpec(name="c", dtype="f32", shape=("B", "M", 256), writable=True, align=16),
    ),
    scalars=(ScalarSpec(name="alpha", dtype="f32"), ScalarSpec(name="split", dtype="i32")),
    args=(
        TensorMapArg(tensor="a", box=(128, 64), axes=(1, 2), swizzle=128, dtype="bf16"),
        TensorMapArg(tensor="b", box=(64, 64), axes=(0, 1), swizzle=128, dtype="bf16"),
        PointerArg(tensor="c"),
        StrideArg(tensor="c", axis=1, multiple=4),
        DimArg(symbol="M", dtype="i32"),
        ScalarArg(name="alpha"),
        ScalarArg(name="split"),
    ),
    workspaces=(Workspace(name="partials", bytes="split * B * M * 1024", zeroed=False),),
    guards=(
        Guard(
            text="K % 64 == 0 and split >= 1",
            message="K must be a multiple of 64",
            file="matmul.py",
            line=12,
            col=5,
            end_line=12,
            end_col=30,
        ),
    ),
    grid=("min(cdiv(B * M, 128), device_sms)", "split", "1"),
    cluster=None,
    block=384,
    smem_bytes=0,
    pdl=False,
    min_blocks=1,
)


def arguments(**changes: Any) -> dict[str, Any]:
    fitting = {
        "a": FakeTensor((2, 300, 128), "torch.bfloat16"),
        "b": FakeTensor((128, 256), "torch.bfloat16"),
        "c": FakeTensor((2, 300, 256)),
        "alpha": 1.5,
        "split": 2,
    }
    return {name: value for name, value in (fitting | changes).items() if value is not ...}


def bind(args: dict[str, Any], abi: KernelAbi = MATMUL) -> Binding:
    binder = Binder(abi)
    arrays, scalars = binder.views(args)
    return binder.bind(arrays, scalars, H200)


def findings(args: dict[str, Any], abi: KernelAbi = MATMUL) -> tuple[Diagnostic, ...]:
    with pytest.raises(LaunchError) as caught:
        bind(args, abi)
    return caught.value.diagnostics


def test_what_follows_from_fitting_arguments() -> None:
    binding = bind(arguments())
    assert binding.grid == (5, 2, 1)
    assert not binding.empty
    assert binding.numbers == {3: 256, 4: 300}
    assert binding.workspaces == {"partials": 2 * 2 * 300 * 1024}
    assert binding.env == {"device_sms": 132, "split": 2, "B": 2, "M": 300, "K": 128}
    # `a` is seen as (B * M, K); all figures innermost first.
    assert binding.maps[0].extents == (128, 600)
    assert binding.maps[0].strides == (256,)
    assert binding.maps[0].box == (64, 128)


def test_numpy_numbers_are_scalars() -> None:
    binding = bind(arguments(alpha=np.float32(2), split=np.int64(3)))
    assert binding.grid[1] == 3


def test_the_grid_is_limited_by_the_sms_of_the_device() -> None:
    big = arguments(
        a=FakeTensor((2, 100_000, 128), "torch.bfloat16"), c=FakeTensor((2, 100_000, 256))
    )
    assert bind(big).grid == (132, 2, 1)


CASES: list[tuple[dict[str, Any], str, str, dict[str, Any]]] = [
    (
        {"b": ...},
        "CK701",
        "argument `b` is missing; `matmul` takes a, b, c, alpha, split",
        {"argument": "b"},
    ),
    ({"beta": 1}, "CK701", "unknown argument `beta`; `matmul` takes", {"argument": "beta"}),
    ({"a": [1, 2]}, "CK702", "`a` cannot be used as an array on a GPU", {"type": "list"}),
    (
        {"a": np.zeros((2, 300, 128), np.float32)},
        "CK702",
        "not in the memory of a GPU",
        {"tensor": "a"},
    ),
    (
        {"a": FakeTensor((2, 300, 128), "torch.float16")},
        "CK703",
        "`a` has element type f16; the kernel takes bf16",
        {"dtype": "f16", "expected": "bf16"},
    ),
    (
        {"b": FakeTensor((128, 256, 1), "torch.bfloat16")},
        "CK704",
        "`b` has rank 3 (shape (128, 256, 1)); the kernel takes rank 2 (bf16[K, 256])",
        {"rank": 3, "expected": 2},
    ),
    (
        {"b": FakeTensor((128, 128), "torch.bfloat16")},
        "CK704",
        "`b` has extent 128 along axis 1 (shape (128, 128)); the kernel takes 256",
        {"axis": 1, "extent": 128, "expected": 256},
    ),
    (
        {"b": FakeTensor((64, 256), "torch.bfloat16")},
        "CK704",
        "`b` has extent 64 along axis 0 (shape (64, 256)); the kernel takes K = 128, as in `a`",
        {"axis": 0, "extent": 64, "expected": 128},
    ),
    (
        {"b": FakeTensor((128, 256), "torch.bfloat16", device=-1)},
        "CK705",
        "`b` is in host memory; the launch is on GPU 0",
        {"device": -1},
    ),
    (
        {"c": FakeTensor((2, 300, 256), device=1)},
        "CK705",
        "`c` is on GPU 1; the launch is on GPU 0",
        {"device": 1, "expected": 0},
    ),
    (
        {"c": FakeTensor((2, 300, 256), pointer=0)},
        "CK705",
        "`c` has shape (2, 300, 256) and no memory",
        {"address": 0},
    ),
    (
        {"c": FakeTensor((2, 300, 256), pointer=ADDRESS + 4)},
        "CK707",
        "`c` starts at 0x7f0000000004, which is not a multiple of 16 bytes",
        {"align": 16},
    ),
    (
        {"c": FakeTensor((2, 300, 256), strides=(300 * 258, 258, 1))},
        "CK708",
        "`c` has stride 258 along axis 1",
        {"axis": 1, "stride": 258},
    ),
    (
        {"c": FakeTensor((2, 300, 256), strides=(300 * 512, 512, 2))},
        "CK708",
        "the kernel takes exactly 1",
        {"axis": 2, "stride": 2},
    ),
    (
        {"c": FakeTensor((2, 300, 256), strides=(0, 256, 1))},
        "CK708",
        "`c` has stride 0 along axis 0",
        {"axis": 0, "stride": 0},
    ),
    (
        {"split": 1.5},
        "CK709",
        "scalar `split` is a float; the kernel takes an integer (i32)",
        {"scalar": "split"},
    ),
    (
        {"split": 1 << 31},
        "CK709",
        "scalar `split` is 2147483648, outside -2^31..2^31-1",
        {"value": "2147483648"},
    ),
    ({"alpha": "x"}, "CK709", "the kernel takes a real number (f32)", {"dtype": "f32"}),
    ({"alpha": 1e39}, "CK709", "beyond the largest f32", {"dtype": "f32"}),
    (
        {
            "a": FakeTensor((2, 300, 100), "torch.bfloat16"),
            "b": FakeTensor((100, 256), "torch.bfloat16"),
        },
        "CK710",
        "K must be a multiple of 64 (K = 100, split = 2)",
        {"guard": "K % 64 == 0 and split >= 1", "K": 100},
    ),
    ({"split": 70_000}, "CK711", "70000 blocks along y (split); the limits are 0 and 65535", {}),
    (
        {"b": FakeTensor((128, 256), "torch.bfloat16", strides=(260, 1))},
        "CK712",
        "a stride is 520 bytes, which is not a multiple of 16",
        {"tensor": "b", "strides": [260, 1]},
    ),
    (
        {"a": FakeTensor((2, 300, 128), "torch.bfloat16", strides=(128 * 400, 128, 1))},
        "CK712",
        "axes 0 and 1 do not form one regular axis: axis 0 has stride 51200 instead of 38400",
        {"tensor": "a"},
    ),
]


@pytest.mark.parametrize(("changes", "code", "message", "facts"), CASES)
def test_each_mismatch_is_named_with_value_and_limit(
    changes: dict[str, Any], code: str, message: str, facts: dict[str, Any]
) -> None:
    (finding,) = findings(arguments(**changes))
    assert finding.code == code
    assert message in finding.message
    assert {name: finding.facts[name] for name in facts} == facts


def test_a_failed_guard_stands_at_the_authors_line() -> None:
    (finding,) = findings(arguments(split=0))
    assert finding.span == MATMUL.guards[0].span


def test_all_mismatches_are_reported_at_once() -> None:
    found = findings(
        arguments(
            a=FakeTensor((2, 300, 128)),
            b=FakeTensor((64, 256), "torch.bfloat16", device=3),
            c=FakeTensor((2, 300), pointer=ADDRESS + 2),
        )
    )
    assert sorted(finding.code for finding in found) == [
        "CK703",
        "CK704",
        "CK704",
        "CK705",
        "CK707",
    ]


def test_a_read_only_array_cannot_be_an_output() -> None:
    binder = Binder(simple_abi())
    arrays, scalars = binder.views({"x": FakeTensor((64,)), "y": FakeTensor((64,))})
    locked = {name: replace(array, readonly=True) for name, array in arrays.items()}
    with pytest.raises(LaunchError) as caught:
        binder.bind(locked, scalars, H200)
    (finding,) = caught.value.diagnostics
    assert finding.code == "CK706"
    assert finding.facts["tensor"] == "y"


def test_strides_of_single_elements_mean_nothing() -> None:
    single = arguments(
        a=FakeTensor((1, 300, 128), "torch.bfloat16", strides=(7, 128, 1)),
        c=FakeTensor((1, 300, 256), strides=(7, 256, 1)),
    )
    assert bind(single).grid == (3, 2, 1)


@pytest.mark.parametrize("shape", [(0, 300, 128), (2, 0, 128)])
def test_zero_extents_launch_nothing_and_need_no_map(shape: tuple[int, ...]) -> None:
    empty = arguments(
        a=FakeTensor(shape, "torch.bfloat16", pointer=0),
        c=FakeTensor((*shape[:2], 256), pointer=0),
    )
    binding = bind(empty)
    assert binding.empty
    assert binding.maps == {}


def test_a_zero_extent_under_a_tensor_map_of_a_launch_that_is_not_empty() -> None:
    nothing_to_add = arguments(
        a=FakeTensor((2, 300, 0), "torch.bfloat16", pointer=0),
        b=FakeTensor((0, 256), "torch.bfloat16", pointer=0),
    )
    binding = bind(nothing_to_add)
    assert not binding.empty
    assert {m.extents for m in binding.maps.values()} == {(1, 1)}


def test_the_grid_must_be_whole_clusters() -> None:
    abi = simple_abi(cluster=(2, 1, 1))
    (finding,) = findings({"x": FakeTensor((300,)), "y": FakeTensor((300,))}, abi)
    assert finding.code == "CK711"
    assert "3 blocks along x (cdiv(N, 128)), which is not a multiple of the cluster's 2" in (
        finding.message
    )


def test_an_extent_beyond_32_bits_needs_a_64_bit_parameter() -> None:
    huge = {"x": FakeTensor((1 << 31,)), "y": FakeTensor((1 << 31,))}
    narrow = simple_abi(args=(DimArg(symbol="N", dtype="i32"),))
    (finding,) = findings(huge, narrow)
    assert finding.code == "CK709"
    assert "N = 2147483648 does not fit a 32-bit parameter" in finding.message
    wide = simple_abi(args=(DimArg(symbol="N", dtype="i64"),))
    assert bind(huge, wide).numbers == {0: 1 << 31}


def test_an_expression_without_a_value_is_an_error_with_its_text() -> None:
    abi = simple_abi(grid=("4096 // N", "1", "1"))
    empty = {"x": FakeTensor((0,), pointer=0), "y": FakeTensor((0,), pointer=0)}
    (finding,) = findings(empty, abi)
    assert "division by zero with N = 0" in finding.message
    assert finding.facts["text"] == "4096 // N"


def test_a_writable_array_must_not_overlap_itself_even_with_free_strides() -> None:
    tensors = (
        TensorSpec(name="x", dtype="f32", shape=("M", "N"), writable=False, align=4),
        TensorSpec(name="y", dtype="f32", shape=("M", "N"), writable=True, align=4),
    )
    args = (
        PointerArg(tensor="x"),
        StrideArg(tensor="x", axis=0),
        PointerArg(tensor="y"),
        StrideArg(tensor="y", axis=0),
    )
    abi = simple_abi(tensors=tensors, args=args)
    broadcast = FakeTensor((3, 128), strides=(0, 1))
    dense = FakeTensor((3, 128))
    assert bind({"x": broadcast, "y": dense}, abi).numbers == {1: 0, 3: 128}
    (finding,) = findings({"x": dense, "y": broadcast}, abi)
    assert finding.code == "CK708"
    assert finding.facts["tensor"] == "y"


@pytest.mark.parametrize(
    ("target", "capability", "runs"),
    [
        ("sm_90a", (9, 0), True),
        ("sm_90", (9, 0), True),
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_90a", (10, 0), False),
        ("sm_100a", (10, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_120a", (12, 0), True),
        ("sm_120a", (12, 1), False),
    ],
)
def test_targets_and_capabilities(target: str, capability: tuple[int, int], runs: bool) -> None:
    abi = simple_abi(target=target)
    device = replace(H200, capability=capability)
    if runs:
        check_device(abi, device)
        return
    with pytest.raises(LaunchError) as caught:
        check_device(abi, device)
    (finding,) = caught.value.diagnostics
    assert finding.code == "CK714"
    assert f"built for {target}" in finding.message
    assert f"capability {capability[0]}.{capability[1]}" in finding.message


def test_shared_memory_beyond_the_device_is_named_with_the_limit() -> None:
    with pytest.raises(LaunchError, match="needs 300000 bytes") as caught:
        check_device(simple_abi(smem_bytes=300_000), H200)
    assert caught.value.diagnostics[0].facts["smem_limit"] == 232_448
