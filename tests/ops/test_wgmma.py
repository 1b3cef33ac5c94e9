"""wgmma: descriptors against a model of the hardware, typing, meaning, emission and its pins."""

from typing import Any, Literal

import numpy as np
import pytest

from cake.codegen.compile import Compiled, compile_program
from cake.ir.dtypes import BF16, E4M3, F16, F32, I8, I32, TF32, DType, numpy_dtype
from cake.ir.nodes import Const, walk_calls
from cake.ir.program import Smem
from cake.ir.types import Fragment, Scalar, SmemView
from cake.ops.base import lookup
from cake.ops.layout import tile_offsets
from cake.ops.values import from_matrix, to_matrix
from cake.ops.wgmma_flight import completed_by, owned_before
from cake.ops.wgmma_operand import logical_shape, matrix_operand
from tests.ops.fakes import HERE, FakeTyping, FakeUnit, Finding, Refused, make, number, var, view
from tests.ops.schedules import message, one_role, program

DECLS = """
A = smem(bf16, (128, 128), swizzle=128)
S = smem(bf16, (128, 128), swizzle=128)
T = smem(bf16, (64, 128), stages=2, swizzle=128)
P = smem(bf16, (128, 128))
H = smem(bf16, (128, 64), swizzle=64)
"""


def buffer(dtype: DType, shape: tuple[int, ...], swizzle: int, name: str = "S") -> Smem:
    return Smem(
        name=name, dtype=dtype, shape=shape, stages=None, swizzle=swizzle, pool=None, offset=None,
        loc=HERE,
    )  # fmt: skip


def built(body: str, decls: str = DECLS, groups: int = 1) -> Compiled:
    return compile_program(program(one_role(body, f"warpgroups={groups}"), decls))


# -- descriptors -----------------------------------------------------------------------------------


def hardware_offsets(
    start: int, descriptor: int, mn: int, dtype: DType, k_major: bool
) -> np.ndarray[Any, Any]:
    """Byte address of each element (mn, k) that one instruction reads, by the canonical layouts
    of the PTX ISA (wgmma, "Strides": canonical layouts); addresses are those of the CTA's block."""
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    width = {1: 128, 2: 64, 3: 32}[descriptor >> 62]
    size = dtype.bytes
    i, k = np.arange(mn)[:, None], np.arange(32 // size)[None, :]
    if k_major:
        linear = i % 8 * width + i // 8 * stride + k * size
    else:
        per = width // size
        linear = i % per * size + i // per * leading + k % 8 * width + k // 8 * stride
    address = start + linear
    return address ^ ((address >> 7) & (width // 16 - 1)) << 4


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize(
    ("dtype", "side", "transposed", "shape", "tile", "offsets"),
    [
        (BF16, "a", False, (64, 128), (64, 128), (0, 0)),
        (BF16, "a", False, (192, 256), (64, 64), (128, 144)),
        (BF16, "b", True, (256, 64), (104, 64), (16, 0)),
        (TF32, "b", True, (64, 64), (40, 24), (8, 40)),
        (E4M3, "a", False, (128, 256), (64, 256), (64, 0)),
        (I8, "b", True, (32, 128), (24, 64), (8, 32)),
        (BF16, "b", False, (64, 256), (64, 256), (0, 0)),
        (BF16, "b", False, (96, 256), (32, 128), (64, 128)),
        (BF16, "b", False, (16, 64), (16, 16), (0, 0)),
        (BF16, "a", True, (128, 128), (128, 64), (0, 64)),
        (BF16, "a", False, (2, 64, 128), (64, 128), (1, 0, 0)),
    ],
)
def test_descriptors_name_the_elements_of_the_view(
    swizzle: int, dtype: DType, side: Literal["a", "b"], transposed: bool, shape: tuple[int, ...],
    tile: tuple[int, int], offsets: tuple[int, ...],
) -> None:  # fmt: skip
    t = SmemView(dtype, tile, swizzle, transposed)
    decl = buffer(dtype, shape, swizzle)
    v = view("S", t, offsets=offsets)
    matrix = matrix_operand(v, decl, side)
    stored = tile_offsets(shape, swizzle, dtype)
    lead = offsets[:-2]
    rows, columns = (slice(o, o + n) for o, n in zip(offsets[-2:], tile, strict=True))
    wanted = stored[(*lead, rows, columns)]
    wanted = wanted.T if transposed else wanted
    wanted = wanted if side == "a" else wanted.T  # (mn, k)
    origin = int(stored[offsets])
    k = 32 // dtype.bytes
    assert len(matrix.steps) == wanted.shape[1] // k
    for s, step in enumerate(matrix.steps):
        got = hardware_offsets(origin + step, matrix.fields, wanted.shape[0], dtype, matrix.k_major)
        np.testing.assert_array_equal(got, wanted[:, s * k : (s + 1) * k])


# -- typing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("wgmma(acc, A[0:128], S.T)", "A must have 64 rows, got 128"),
        ("wgmma(acc, A[0:64, 0:64], S.T)", "A is 64x64 and B is 128x128: the inner dimensions"),
        ("wgmma(acc, A[0:64], S[0:64].T)", "B has 64 columns, the accumulator 128"),
        ("wgmma(acc, P[0:64], S.T)", "A must lie in a buffer with swizzle 32, 64 or 128, P has no"),
        ("wgmma(acc, A[4:68], S.T)", "the row offset of A must be a multiple of 8, got 4"),
        ("wgmma(acc, A[0:64, 8:72], S[0:128, 0:64].T)", "column offset of A must be a multiple of"),
        ("wgmma(acc, A[0:64], S.T, init=lane() == 0)", "init must be the same in all threads"),
        ("wgmma(acc, A[0:64], S.T, init=1)", "init must be a bool, got compile-time 1"),
        ("wgmma(acc + 1.0, A[0:64], S.T)", "the accumulator must be a variable"),
        ("wgmma(acc, acc, S.T)", "A of f32 in registers must have the a_ldmatrix layout"),
        ("wgmma(acc, A[0:64], acc)", "b must be a shared-memory view or a place"),
        ("wgmma(acc, A[0:64], T[0][0:64].T)", "B has 64 columns"),
        ("wgmma_wait(8)", r"number of pending groups must be in \[0, 7\], got 8"),
    ],
)
def test_wrong_operands_are_refused(line: str, expected: str) -> None:
    body = f"acc = fragment(f32, (64, 128), fill=0.0)\n{line}\nwgmma_wait(0)"
    got = message(body, DECLS, role="warpgroups=1")
    assert np.any([part in got for part in (expected, expected.replace("\\", ""))]), got


def test_the_message_names_the_transposition() -> None:
    body = "acc = fragment(f32, (64, 64))\nwgmma(acc, A[0:64], S[0:64], init=True)"
    assert "a tile stored as (N, K) is used as B[...].T" in message(
        body, DECLS, role="warpgroups=1"
    )


@pytest.mark.parametrize(
    ("dtype", "transposed", "acc", "expected"),
    [
        (E4M3, False, F32, "B of e4m3 must be K-major"),
        (TF32, False, F32, "B of tf32 must be K-major"),
        (BF16, True, I32, "bf16 x bf16 -> i32 is not admitted"),
        (I8, True, F32, "i8 x i8 -> f32 is not admitted"),
    ],
)
def test_types_without_an_instruction_are_refused(
    dtype: DType, transposed: bool, acc: DType, expected: str
) -> None:
    stored = (64, 64)
    decls: Any = {n: buffer(dtype, stored, 64, n) for n in ("A", "S")}
    a = view("A", SmemView(dtype, stored, 64))
    b = view("S", SmemView(dtype, stored, 64, transposed))
    d = var("acc", Fragment(acc, (64, 64), "acc", 4))
    with pytest.raises(Refused, match=expected):
        make("wgmma", d, a, b, typing=FakeTyping(resources=decls))


def test_n_is_checked_against_the_form() -> None:
    decls: Any = {n: buffer(I8, (64, 32), 32, n) for n in ("A", "S")}
    d = var("acc", Fragment(I32, (64, 40), "acc", 4))
    a, b = view("A", SmemView(I8, (64, 32), 32)), view("S", SmemView(I8, (40, 32), 32, True))
    with pytest.raises(Refused, match=r"n = 40 is not admitted: m64 n\{8..32/8, 48"):
        make("wgmma", d, a, b, typing=FakeTyping(resources=decls))


def test_a_warp_cannot_run_it() -> None:
    body = "acc = fragment(f32, (16, 128))\nwgmma(acc, A[0:64], S.T)"
    assert "cannot run in a warp" in message(body, DECLS)


# -- meaning ---------------------------------------------------------------------------------------


def product(
    dtype: DType, n: int, k: int, *, init: bool = False, seed: int = 0
) -> tuple[Any, Any, Any, FakeUnit, Any]:
    """A call with random operands: (a, b, c before, unit with it all, call)."""
    rng = np.random.default_rng(seed)
    acc_dtype = I32 if dtype == I8 else F32
    low, high = (-128, 128) if dtype == I8 else (-4, 5)
    a = rng.integers(low, high, (64, k)).astype(numpy_dtype(dtype))
    b = rng.integers(low, high, (n, k)).astype(numpy_dtype(dtype))
    c = rng.integers(-9, 9, (64, n)).astype(numpy_dtype(acc_dtype))
    decls: Any = {"A": buffer(dtype, a.shape, 32, "A"), "S": buffer(dtype, b.shape, 32)}
    t = Fragment(acc_dtype, (64, n), "acc", 4)
    call = make(
        "wgmma", var("acc", t), view("A", SmemView(dtype, a.shape, 32)),
        view("S", SmemView(dtype, b.shape, 32, True)), init, typing=FakeTyping(resources=decls),
    )  # fmt: skip
    unit = FakeUnit(values={"acc": from_matrix(t, c)}, smem={"A": a, "S": b}, resources=decls)
    return a, b, c, unit, call


@pytest.mark.parametrize("dtype", [BF16, TF32, E4M3, I8])
@pytest.mark.parametrize("init", [False, True])
def test_products_of_small_integers_are_exact(dtype: DType, init: bool) -> None:
    a, b, c, unit, call = product(dtype, 16, 64, init=init)
    registers = unit.values["acc"]
    unit.run(call)
    unit.run(make("wgmma_wait", 0))
    t = call.args[0].type
    assert unit.values["acc"] is registers
    expected = a.astype(np.int64) @ b.astype(np.int64).T + (0 if init else c.astype(np.int64))
    np.testing.assert_array_equal(to_matrix(t, registers), expected)


def test_the_result_lands_at_the_wait_and_operands_are_read_late() -> None:
    a, b, c, unit, call = product(BF16, 8, 16)
    before = unit.values["acc"].copy()
    unit.run(call)
    np.testing.assert_array_equal(unit.values["acc"], before)
    unit.run(make("wgmma_wait", 1))
    np.testing.assert_array_equal(unit.values["acc"], before)
    unit.smem["S"][...] = 0
    unit.run(make("wgmma_wait", 0))
    np.testing.assert_array_equal(unit.values["acc"], before)
    assert a.any()
    assert c.any()
    assert not b.any()


def test_every_instruction_rounds_to_f32() -> None:
    _, _, _, unit, call = product(BF16, 8, 32)
    t = call.args[0].type
    unit.smem["A"][...] = 0
    unit.smem["S"][...] = 0
    unit.smem["A"][0, [0, 16]] = 1
    unit.smem["S"][0, [0, 16]] = 1
    unit.values["acc"][...] = from_matrix(t, np.full((64, 8), 2.0**24, np.float32))
    unit.run(call)
    unit.run(make("wgmma_wait", 0))
    # 2^24 + 1 is a tie that goes back to 2^24, twice; one rounding would give 2^24 + 2.
    assert to_matrix(t, unit.values["acc"])[0, 0] == 2.0**24


def test_f16_accumulators_round_to_f16() -> None:
    acc = var("acc", Fragment(F16, (64, 8), "acc", 4))
    decls = {"A": buffer(F16, (64, 64), 128, "A"), "S": buffer(F16, (8, 64), 128)}
    operands = view("A", SmemView(F16, (64, 64), 128)), view("S", SmemView(F16, (8, 64), 128, True))
    a, b = np.zeros((64, 64), np.float16), np.ones((8, 64), np.float16)
    a[0, [0, 1]] = a[1, [0, 16]] = 1
    registers = np.full((128, 4), 2048, np.float16)
    unit = FakeUnit(values={"acc": registers}, smem={"A": a, "S": b}, resources=decls)
    unit.run(make("wgmma", acc, *operands, typing=FakeTyping(resources=decls)))
    unit.drained("wgmma", 0)
    assert to_matrix(acc.type, registers)[:2, 0].tolist() == [2050.0, 2048.0]


def test_tf32_operands_lose_their_low_bits() -> None:
    _, _, _, unit, call = product(TF32, 8, 8, init=True)
    t = call.args[0].type
    unit.smem["A"][...] = np.float32(1 + 2**-11)
    unit.smem["S"][...] = 1
    unit.run(call)
    unit.run(make("wgmma_wait", 0))
    assert (unit.values["acc"] == 8).all()
    assert t.dtype == F32


def test_a_may_come_from_registers() -> None:
    a, b, _, unit, _ = product(BF16, 16, 32)
    t = Fragment(BF16, (64, 32), "acc", 4)
    unit.values["p"] = from_matrix(t, a)
    call = make(
        "wgmma", var("acc", Fragment(F32, (64, 16), "acc", 4)), var("p", t),
        view("S", SmemView(BF16, (16, 32), 32, True)), True,
        typing=FakeTyping(resources=unit.resources),
    )  # fmt: skip
    unit.run(call)
    unit.run(make("wgmma_wait", 0))
    got = to_matrix(call.args[0].type, unit.values["acc"])  # type: ignore[union-attr, arg-type]
    np.testing.assert_array_equal(got, a.astype(np.float64) @ b.astype(np.float64).T)


def test_a_misaligned_run_time_offset_is_a_finding() -> None:
    decls: Any = {n: buffer(BF16, (128, 64), 128, n) for n in ("A", "S")}
    offsets = [var("r", Scalar(I32)), number(0, I32)]
    call = make(
        "wgmma", var("acc", Fragment(F32, (64, 128), "acc", 4)),
        view("A", SmemView(BF16, (64, 64), 128), offsets=offsets),
        view("S", SmemView(BF16, (128, 64), 128, True)), True,
        typing=FakeTyping(resources=decls),
    )  # fmt: skip
    unit = FakeUnit(values={"r": np.int32(4)}, resources=decls)
    with pytest.raises(Finding, match="row offset of A must be a multiple of 8"):
        unit.run(call)


# -- emission --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decls", "n", "line", "instruction"),
    [
        ("A=smem(bf16,(64,64),swizzle=128)\nS=smem(bf16,(8,64),swizzle=128)", 8,
         "wgmma(acc, A, S.T, init=True)", "m64n8k16.f32.bf16.bf16"),
        ("A=smem(f16,(64,32),swizzle=64)\nS=smem(f16,(256,32),swizzle=64)", 256,
         "wgmma(acc, A, S.T, init=True)", "m64n256k16.f32.f16.f16"),
        ("A=smem(bf16,(64,64),swizzle=128)\nS=smem(bf16,(64,128),swizzle=128)", 128,
         "wgmma(acc, A, S, init=True)", "m64n128k16.f32.bf16.bf16"),
        ("A=smem(bf16,(64,64),swizzle=128)\nS=smem(bf16,(64,128),swizzle=128)", 128,
         "wgmma(acc, A.T, S, init=True)", "m64n128k16.f32.bf16.bf16"),
        ("A=smem(tf32,(64,32),swizzle=128)\nS=smem(tf32,(24,32),swizzle=128)", 24,
         "wgmma(acc, A, S.T, init=True)", "m64n24k8.f32.tf32.tf32"),
        ("A=smem(e4m3,(64,128),swizzle=128)\nS=smem(e5m2,(64,128),swizzle=128)", 64,
         "wgmma(acc, A, S.T, init=True)", "m64n64k32.f32.e4m3.e5m2"),
        ("A=smem(bf16,(64,64),swizzle=128)\nS=smem(bf16,(64,64),swizzle=128)", 64,
         "p = fragment(bf16, (64, 64), fill=1.0)\nwgmma(acc, p, S.T, init=True)",
         "m64n64k16.f32.bf16.bf16"),
    ],
)  # fmt: skip
def test_every_form_assembles_without_notices(
    decls: str, n: int, line: str, instruction: str
) -> None:
    body = f"acc = fragment(f32, (64, {n}))\n{line}\nwgmma_wait(0)\nstore(y[0, 0], acc)"
    made = built(body, decls)
    assert f"wgmma.mma_async.sync.aligned.{instruction}" in made.source
    assert made.diagnostics == ()
    facts = made.build.facts.entry("kernel_kernel")
    assert facts is not None
    assert facts.stack_bytes == 0


def test_integer_products_assemble() -> None:
    body = """
    acc = fragment(i32, (64, 32), fill=0)
    wgmma(acc, A, S.T)
    wgmma_wait(0)
    store(y[0, 0], cast(acc, f32))
    """
    made = built(body, "A = smem(i8, (64, 64), swizzle=64)\nS = smem(u8, (32, 64), swizzle=64)")
    assert "m64n32k32.s32.s8.u8" in made.source
    assert made.diagnostics == ()


@pytest.mark.parametrize(("dtype", "k"), [("f16", 16), ("e4m3", 32)])
def test_f16_accumulators_take_half_the_registers(dtype: str, k: int) -> None:
    body = """
    acc = fragment(f16, (64, 96), fill=1.0)
    wgmma(acc, A, S.T)
    wgmma_wait(0)
    store(y[0, 0], cast(acc, f32))
    """
    decls = f"A = smem({dtype}, (64, 64), swizzle=64)\nS = smem({dtype}, (96, 64), swizzle=64)"
    made = built(body, decls)
    assert f"m64n96k{k}.f16.{dtype}.{dtype}" in made.source
    assert "unsigned (&d)[24]" in made.source
    assert made.diagnostics == ()


LOOP = """
acc = fragment(f32, (64, 128), fill=0.0)
for k in range(M):
    wgmma(acc, A[u * 64 : u * 64 + 64], S.T)
    wgmma_wait(1)
wgmma_wait(0)
store(y[0, 0], acc * 2.0)
"""


def test_registers_are_pinned_where_they_change_hands_only() -> None:
    made = built(LOOP, groups=2)
    assert made.source.count("pin_float(acc);") == 1
    assert made.source.index("pin_float(acc);") > made.source.index("wgmma_wait<0>();")
    assert made.diagnostics == ()


def test_the_text_tells_what_a_wait_completes() -> None:
    body = """
    first = fragment(f32, (64, 128))
    second = fragment(f32, (64, 128))
    wgmma(first, A[0:64], S.T, init=True)
    wgmma(second, A[64:128], S.T, init=True)
    wgmma_wait(1)
    wgmma_wait(0)
    wgmma(first, A[0:64], S.T)
    """
    p = program(one_role(body, "warpgroups=1"), DECLS)
    calls = list(walk_calls(p.body_of("r")))
    one, rest = (c for c in calls if c.op == "wgmma_wait")
    assert [v.name for v in completed_by(p, "r", one)] == ["first"]
    assert [v.name for v in completed_by(p, "r", rest)] == ["second"]
    products = [c for c in calls if c.op == "wgmma"]
    assert [owned_before(p, "r", c) for c in products] == [set(), {"first"}, set()]


def test_a_loop_carries_products_in_flight() -> None:
    p = program(one_role(LOOP, "warpgroups=2"), DECLS)
    calls = list(walk_calls(p.body_of("r")))
    inside, after = (c for c in calls if c.op == "wgmma_wait")
    assert completed_by(p, "r", inside) == ()
    assert [v.name for v in completed_by(p, "r", after)] == ["acc"]
    (multiply,) = (c for c in calls if c.op == "wgmma")
    assert owned_before(p, "r", multiply) == {"acc"}


def test_ordinary_writes_before_a_product_are_pinned() -> None:
    body = """
    acc = fragment(f32, (64, 128), fill=0.0)
    p = fragment(bf16, (64, 128), fill=1.0)
    wgmma(acc, p, S.T)
    wgmma_wait(0)
    store(y[0, 0], acc)
    """
    made = built(body)
    fence = made.source.index("wgmma_fence();\n")
    assert made.source.index("pin_float(acc);") < fence
    assert made.source.index("pin_unsigned(p);") < fence
    assert made.diagnostics == ()


def test_cost_counts_products_and_operand_bytes() -> None:
    *_, call = product(BF16, 128, 64)
    primitive = lookup("wgmma")
    assert primitive is not None
    assert primitive.cost is not None
    cost = primitive.cost(call, 128)
    assert (cost.tensor, cost.tensor_dtype) == (64 * 128 * 64, "bf16")
    assert cost.smem == (64 + 128) * 64 * 2
    assert isinstance(call.args[3], Const) or call.args[3] is None
    assert logical_shape(call.args[2].type) == (64, 128)
