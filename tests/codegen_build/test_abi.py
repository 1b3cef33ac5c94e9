"""The kernel interface: JSON round trip, and every contradiction named."""

from dataclasses import replace
from typing import Any

import pytest

from cake.codegen.abi import (
    AbiError,
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
from cake.diag import Span
from tests.codegen_build.samples import GEMM, GEMM_MAP


def test_json_round_trip_is_exact_and_canonical() -> None:
    text = GEMM.to_json()
    again = KernelAbi.from_json(text)
    assert again == GEMM
    assert again.to_json() == text
    assert hash(again) == hash(GEMM)


def test_symbols_and_look_ups() -> None:
    assert GEMM.symbols == ("B", "M", "K")
    assert GEMM.tensor("c").writable
    assert GEMM.scalar("split").dtype == "i32"
    assert GEMM.guards[0].span == Span(file="gemm.py", line=9, col=5, end_line=9, end_col=25)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", '{"format": 1}', GEMM.to_json()[:-9]])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(AbiError, match="not a kernel interface"):
        KernelAbi.from_json(text)


def test_another_format_is_refused_with_the_remedy() -> None:
    with pytest.raises(AbiError, match="build the kernel again"):
        KernelAbi.from_json(GEMM.to_json().replace('"format":1', '"format":99'))


def test_unknown_argument_kind_is_refused() -> None:
    with pytest.raises(AbiError, match="not a kernel interface"):
        KernelAbi.from_json(GEMM.to_json().replace("StrideArg", "FutureArg"))


def _map(**changes: Any) -> TensorMapArg:
    return replace(GEMM_MAP, **changes)


def _a(**changes: Any) -> tuple[TensorSpec, ...]:
    return (replace(GEMM.tensors[0], **changes), *GEMM.tensors[1:])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scalars": (*GEMM.scalars, ScalarSpec(name="M", dtype="i32"))}, "`M` is taken twice"),
        ({"tensors": _a(name="device_sms")}, "`device_sms` is taken twice"),
        ({"tensors": _a(dtype="f17")}, "unknown dtype 'f17'"),
        ({"tensors": _a(align=24)}, "alignment 24 is not a power of two"),
        ({"scalars": (ScalarSpec(name="alpha", dtype="f64"),)}, "dtype 'f64' is not one of"),
        ({"block": 1025}, "a block of 1025 threads"),
        ({"block": 0}, "a block of 0 threads"),
        ({"args": (PointerArg(tensor="z"),)}, "refers to no tensor"),
        ({"args": (StrideArg(tensor="b", axis=2),)}, "tensor `b` has 2 axes"),
        ({"args": (StrideArg(tensor="b", axis=0, multiple=0),)}, "must be at least 1"),
        ({"args": (DimArg(symbol="Q", dtype="i32"),)}, "no tensor has a dimension `Q`"),
        ({"args": (ScalarArg(name="beta"),)}, "refers to no scalar"),
        ({"args": (WorkspaceArg(name="partials"),)}, "refers to no workspace"),
        ({"args": (_map(axes=(1, 1)),)}, "are not distinct axes"),
        ({"args": (_map(axes=(1, 3)),)}, "are not distinct axes"),
        ({"args": (_map(box=(128,)),)}, "differ in length"),
        ({"args": (_map(dims=("K",)),)}, "differ in length"),
        ({"args": (_map(axes=(), box=(), dims=None),)}, "a tensor map has 1 to 5"),
        ({"args": (_map(dtype="f32"),)}, "does not have the size of 'bf16'"),
        ({"args": (_map(dims=("B * Z", "K")),)}, "uses unknown names Z"),
        ({"args": (_map(swizzle=96),)}, "no swizzle 96"),
        ({"args": (_map(l2_promotion=32),)}, "no L2 promotion 32"),
        ({"args": (_map(oob="one"),)}, "nothing is filled with 'one'"),
        ({"grid": ("M //", "1", "1")}, "grid x: not an expression"),
        ({"grid": ("1", "alpha", "1")}, "grid y `alpha` uses unknown names alpha"),
        (
            {"workspaces": (Workspace(name="tickets", bytes="4 * T", zeroed=True),)},
            "size of workspace `tickets` `4 * T` uses unknown names T",
        ),
        ({"guards": (replace(GEMM.guards[0], text="a.b"),)}, "guard: `Attribute` is not allowed"),
    ],
)
def test_contradictions_are_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(AbiError) as caught:
        replace(GEMM, **changes)
    assert "kernel `gemm`" in str(caught.value)
    assert problem in str(caught.value)


def test_all_contradictions_are_named_at_once() -> None:
    with pytest.raises(AbiError) as caught:
        replace(GEMM, block=0, grid=("Z", "1", "1"))
    assert "a block of 0 threads" in str(caught.value)
    assert "unknown names Z" in str(caught.value)
