"""Interfaces and sources that several tests of this folder share."""

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
    WorkspaceArg,
)

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")

GEMM = KernelAbi(
    name="gemm",
    target="sm_90a",
    tensors=(
        TensorSpec(name="a", dtype="bf16", shape=("B", "M", "K"), writable=False, align=16),
        TensorSpec(name="b", dtype="bf16", shape=("K", 256), writable=False, align=16),
        TensorSpec(name="c", dtype="f32", shape=("B", "M", 256), writable=True, align=16),
    ),
    scalars=(ScalarSpec(name="alpha", dtype="f32"), ScalarSpec(name="split", dtype="i32")),
    args=(
        TensorMapArg(
            tensor="a",
            box=(128, 64),
            axes=(1, 2),
            dims=("B * M", "K"),
            swizzle=128,
            dtype="bf16",
        ),
        PointerArg(tensor="b"),
        PointerArg(tensor="c"),
        StrideArg(tensor="c", axis=1),
        DimArg(symbol="M", dtype="i64"),
        ScalarArg(name="alpha"),
        ScalarArg(name="split"),
        WorkspaceArg(name="tickets"),
    ),
    workspaces=(Workspace(name="tickets", bytes="4 * cdiv(M, 128)", zeroed=True),),
    guards=(
        Guard(
            text="K % 64 == 0",
            message="K must be a multiple of 64",
            file="gemm.py",
            line=9,
            col=5,
            end_line=9,
            end_col=25,
        ),
    ),
    grid=("min(cdiv(B * M, 128), device_sms)", "split", "1"),
    cluster=(2, 1, 1),
    block=384,
    smem_bytes=196608,
    pdl=True,
    min_blocks=1,
)
