"""Address expressions, evaluated, agree with the layout that simulator and verifier use."""

from __future__ import annotations

import re
from itertools import product

import pytest

from cake.codegen.cuda_emitter import CudaEmitter
from cake.codegen.cuda_state import KernelState
from cake.codegen.cuda_writer import Writer
from cake.ir.nodes import Do, TensorRef, View
from cake.ir.program import Program
from cake.ir.types import SmemView
from cake.lang.elaborate import parse
from cake.ops.layout import swizzled, tile_offsets


def program(buffer: str, view: str, params: str = "") -> Program:
    source = f"""
@cake.schedule(target="sm_90a")
def k(y: Tensor[f32, "A", "B", 32], *, n: meta(1) = 1):
    S = smem({buffer})
    r = role(warps=1)
    with r:
        for i in range(8):
            for j in range(8):
                prefetch(y[i, j, 0])
                v = load({view})
"""
    return parse(source).program()


def emitter(p: Program) -> CudaEmitter:
    return CudaEmitter(KernelState.of(p), Writer(p.loc), role="r", unit_threads=32)


def evaluate(text: str, **scope: object) -> int:
    """A C expression over non-negative ints as Python: same operators, same precedence."""
    text = re.sub(r"\((?:unsigned|long long)\)", "", text)
    text = re.sub(r"\b(\d+)u\b", r"\1", text).replace("/", "//")
    return int(eval(text, {}, scope))


def view_of(p: Program) -> View:
    loop = p.roles[0].body[0].body[0].body  # type: ignore[attr-defined]
    call = loop[1].value
    view = call.args[0]
    assert isinstance(view, View)
    return view


CASES = [
    ("f32, (8, 32)", "S[i, 0:32]"),
    ("f32, (8, 32), stages=3", "S[j][i, 0:32]"),
    ("bf16, (16, 64), stages=2, swizzle=128", "S[1][i + 3, 0:64]"),
    ("bf16, (16, 128), swizzle=128", "S[i, 64:128]"),
    ("bf16, (16, 128), swizzle=128", "S[i, j * 8 : j * 8 + 8]"),
    ("bf16, (16, 64), swizzle=64", "S[i, 32:48]"),
    ("bf16, (16, 64), swizzle=32", "S[i, j * 8 : j * 8 + 8]"),
    ("bf16, (4, 16, 64), swizzle=128", "S[1, i, 0:64]"),
    ("f32, (4, 8, 32)", "S[j, i, 8:16]"),
    ("bf16, (4, 64), stages=2, swizzle=128", "S[j][i, 0:64]"),
    ("bf16, (12, 64), swizzle=128", "S[i, 0:64]"),
]


@pytest.mark.parametrize(("buffer", "text"), CASES)
def test_element_addresses(buffer: str, text: str) -> None:
    p = program(buffer, text)
    view, cg = view_of(p), emitter(p)
    assert isinstance(view.type, SmemView)
    decl = p.resource("S")
    place = cg.kernel.layout.buffers["S"]
    table = tile_offsets(decl.shape, decl.swizzle, decl.dtype)  # type: ignore[attr-defined]
    address = cg.smem_address(view, ["e"])
    checked = 0
    for i, j in product(range(4), range(8)):
        scope = {"smem": 4096, "S_at": place.offset, "i_": i, "j": j}
        at = [evaluate(cg.scalar(o), **scope) for o in view.offsets]
        stage = 0 if view.stage is None else evaluate(cg.scalar(view.stage), **scope)
        end = [*(a + 1 for a in at[:-1]), at[-1] + view.type.shape[0]]
        inside = all(a <= b for a, b in zip(end, table.shape, strict=True))
        if not inside or stage * place.stage_bytes >= place.bytes:
            continue
        for e in range(view.type.shape[0]):
            expected = table[(*at[:-1], at[-1] + e)] + place.offset + stage * place.stage_bytes
            found = evaluate(address, **scope, e=e, swizzle_128=lambda x: swizzled(x, 128))
            assert found - 4096 == expected, (i, j, e)
            checked += 1
    assert checked >= 32


def test_transposed_views_swap_their_index() -> None:
    p = program("bf16, (16, 64), swizzle=128", "S[0, 0:8]")
    cg, view = emitter(p), view_of(p)
    plain = View(
        base="S", stage=None, offsets=view.offsets, loc=view.loc,
        type=SmemView(view.type.dtype, (16, 64), 128),  # type: ignore[attr-defined]
    )  # fmt: skip
    turned = View(
        base="S", stage=None, offsets=view.offsets, loc=view.loc,
        type=SmemView(view.type.dtype, (16, 64), 128, True),  # type: ignore[attr-defined]
    )  # fmt: skip
    assert cg.smem_address(plain, ["3", "40"]) == cg.smem_address(turned, ["40", "3"])


def test_constant_addresses_are_folded() -> None:
    p = program("bf16, (16, 128), stages=2, swizzle=128", "S[1][9, 72:80]")
    offset = int(tile_offsets((16, 128), 128, view_of(p).type.dtype)[9, 72])  # type: ignore[attr-defined]
    assert emitter(p).smem_address(view_of(p)) == f"(smem + S_at + 4096u + {offset}u)"


def test_global_pointers_use_64_bit_strides() -> None:
    p = program("f32, (8, 32)", "S[i, 0:32]")
    cg = emitter(p)
    call = p.roles[0].body[0].body[0].body[0]  # type: ignore[attr-defined]
    assert isinstance(call, Do)
    place = call.call.args[0]
    assert isinstance(place, TensorRef)
    text = cg.global_pointer(place, ["2", "0", "k"])
    assert text == "(y + (long long)(i_ + 2) * y_stride_0 + (long long)j * y_stride_1 + k)"
    big = {"i_": 70000, "j": 3, "k": 1, "y": 0, "y_stride_0": 2**20, "y_stride_1": 32}
    assert evaluate(text, **big) == 70002 * 2**20 + 3 * 32 + 1
    assert list(cg.kernel.pointers) == ["y"]
