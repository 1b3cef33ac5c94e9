"""transpose and b_operand: values, the registers they name, whole programs."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cake.ir.dtypes import BF16, F16, F32
from cake.ir.types import Fragment
from cake.ops.values import from_matrix, to_matrix
from tests.ops.fakes import FakeTyping, FakeUnit, Refused, make, var
from tests.ops.schedules import accepted, cuda, message, run
from tests.ops.tracing import Tracer

WARP = FakeTyping(unit_threads=32)


def block_word(t: Fragment, row: int, column: int) -> tuple[int, bool]:
    """Word of the 8x8 block, and whether a lane's row in it is the tile's column."""
    registers = from_matrix(t, np.arange(t.shape[0] * t.shape[1]).reshape(t.shape))
    cell = row * 8 * t.shape[1] + column * 8
    (where,) = np.nonzero(registers[0] == cell)
    return int(where[0]) // 2, bool(registers[0, where[0] + 1] != cell + 1)


@pytest.mark.parametrize(
    ("op", "shape", "options"),
    [
        ("transpose", (32, 16), {}),
        ("b_operand", (32, 24), {}),
        ("b_operand", (32, 48), {"transposed": True}),
    ],
)
def test_every_block_goes_where_the_layout_has_it(
    op: str, shape: tuple[int, int], options: dict[str, Any]
) -> None:
    source = Fragment(BF16, shape, "acc", 1)
    call = make(op, var("x", source), **options, typing=WARP)
    assert isinstance(call.type, Fragment)
    turned = op == "transpose" or bool(options)
    matrix = np.random.default_rng(1).integers(0, 99, shape).astype(ml_dtypes.bfloat16)
    got = FakeUnit(threads=32, values={"x": from_matrix(source, matrix)}).run(call)
    np.testing.assert_array_equal(to_matrix(call.type, got), matrix.T if turned else matrix)
    # The emitted moves, block by block: a block is turned over unless only its number changes.
    cg = Tracer(unit_threads=32, known={"x"})
    cg.emit(call)
    (statement, loops), *more = [t for t in cg.traced if " = " in t[0]]
    assert not more
    to, value = statement.removesuffix(";").replace("/", "//").split(" = ")
    for r in range(loops[0][1]):
        for c in range(loops[1][1]):
            names = dict(zip((loops[0][0], loops[1][0]), (r, c), strict=True))
            at = eval(to[to.index("[") + 1 : -1], dict(names))
            read = eval(value[value.index("[") + 1 : value.index("]")], dict(names))
            place = (c, r) if turned else (r, c)
            expected, flipped = block_word(call.type, *place)
            assert (at, read) == (expected, block_word(source, r, c)[0])
            assert value.startswith("movmatrix") == (turned != flipped)


@pytest.mark.parametrize(
    ("op", "fragment", "said"),
    [
        ("transpose", Fragment(F32, (16, 16), "acc", 1), "takes a 16-bit fragment of the acc"),
        ("transpose", Fragment(F16, (16, 24), "acc", 1), "a multiple of 16, got 24"),
        ("b_operand", Fragment(F16, (16, 16), "b", 1), "takes a 16-bit fragment of the acc"),
    ],
)
def test_wrong_operands_are_refused(op: str, fragment: Fragment, said: str) -> None:
    with pytest.raises(Refused, match=said):
        make(op, var("x", fragment), typing=WARP)


def test_a_warpgroup_has_no_such_move() -> None:
    body = "h = fragment(bf16, (64, 16), fill=0.0)\nk = transpose(h)"
    assert "cannot run in a warpgroup" in message(body, role="warpgroups=1")


PARAMS = "x: Tensor[f32, 32, 16], y: Tensor[f32, 4, 32, 32]"
CHAIN = """
t = lane()
acc = fragment(f32, (32, 16))
own = lanes(acc)
for i in range(16, unroll=True):
    own[i] = load(x[t, i])
a = cast(acc, bf16)
store(y[0, 0, 0], cast(transpose(a), f32))
gram = fragment(f32, (32, 32), fill=0.0)
mma(gram, a, b_operand(a, transposed=True))
store(y[1, 0, 0], gram)
inner = fragment(f32, (16, 16), fill=0.0)
mma(inner, transpose(a), b_operand(a))
store(y[2, 0, 0], inner)
"""


def test_products_of_products_stay_in_registers() -> None:
    t = Fragment(F32, (32, 16), "acc", 1)
    matrix = np.random.default_rng(2).integers(-4, 5, (32, 16)).astype(np.float32)
    arrays = {"x": from_matrix(t, matrix), "y": np.zeros((4, 32, 32), np.float32)}
    made = accepted(CHAIN, params=PARAMS, target="sm_80")
    run(made, arrays)
    y = arrays["y"]
    np.testing.assert_array_equal(y[0, :16, :32], matrix.T)
    np.testing.assert_array_equal(y[1], matrix @ matrix.T)
    np.testing.assert_array_equal(y[2, :16, :16], matrix.T @ matrix)
    text = cuda(made)
    assert "movmatrix.sync.aligned.m8n8.trans.b16" in text
    assert "shared" not in text
