"""``mma``: acc += A . B by one warp, synchronously, from registers (sm_80 and later)."""

from __future__ import annotations

from typing import Any

from cake.ir.dtypes import TF32, DType
from cake.ir.nodes import Call, Expr, VarRef
from cake.ir.types import Fragment, Void
from cake.ops import check
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    operand,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.matmul import accumulate, wide
from cake.ops.memory_access import per_word, word
from cake.ops.values import from_matrix, to_matrix
from cake.targets import get

K_BYTES = 32
"""Bytes along K that one instruction takes: 16 16-bit, 8 tf32, or 32 8-bit elements."""


# -- typing ----------------------------------------------------------------------------------------


def _typing(t: TypingContext, call: Call) -> Typed:
    acc, a, b = (operand(call, n) for n in ("acc", "a", "b"))
    e, d = check.fragment(t, acc, "the accumulator")
    if not isinstance(e, VarRef):
        t.fail("the accumulator must be a variable", e, helps=("assign it to a name first",))
    left, right = _tile(t, a, "A"), _tile(t, b, "B")
    if (left.layout, right.layout) not in LAYOUTS:
        t.fail(
            f"A has the {left.layout} layout and B the {right.layout} layout, which do not go"
            " together",
            b,
            helps=(
                "what ldmatrix brings goes with a_operand(x) of an acc fragment, or with what it"
                " brings itself",
            ),
        )
    if d.layout != "acc":
        t.fail(f"the accumulator must have the acc layout, got {d}", e)
    if left.shape[1] != right.shape[0]:
        t.fail(
            f"A is {_size(left)} and B is {_size(right)}: the inner dimensions differ",
            b,
            facts={"k_of_a": left.shape[1], "k_of_b": right.shape[0]},
        )
    product = (left.shape[0], right.shape[1])
    if d.shape != product:
        t.fail(f"A . B is {product[0]}x{product[1]}, the accumulator {_size(d)}", e)
    k = K_BYTES // left.dtype.bytes
    form = t.target.mma_form(left.dtype.name, right.dtype.name, d.dtype.name, (16, 8, k))
    if form is None:
        pairs = sorted({f"{f.a} x {f.b} -> {f.acc}" for f in t.target.mma_sync})
        t.fail(
            f"{left.dtype} x {right.dtype} -> {d.dtype} is not admitted on {t.target.name};"
            f" there are {', '.join(pairs)}"
        )
    if left.shape[1] % k:
        t.fail(
            f"K must be a multiple of {k} for {left.dtype}, got {left.shape[1]}",
            facts={"k": left.shape[1], "multiple_of": k},
        )
    return Typed(Void(), call.args)


LAYOUTS = (("acc", "b"), ("a_ldmatrix", "b_ldmatrix"))
"""Layouts of A and B that number K alike."""


def _tile(t: TypingContext, e: Expr | None, name: str) -> Fragment:
    _, fragment = check.fragment(t, e, name)
    admitted = [pair[0 if name == "A" else 1] for pair in LAYOUTS]
    if fragment.layout not in admitted:
        t.fail(
            f"{name} must have the {' or '.join(admitted)} layout, got {fragment}",
            e,
            helps=(f'ldmatrix(..., operand="{name.lower()}") loads it',),
        )
    return fragment


def _size(t: Fragment) -> str:
    return f"{t.shape[0]}x{t.shape[1]}"


# -- effects, meaning, cost ------------------------------------------------------------------------


def _effects(call: Call) -> Effects:
    return (
        *(Access("read", i, "regs") for i in range(3)),
        Access("write", 0, "regs"),
    )


def _operands(call: Call) -> tuple[VarRef, Expr, Expr, Fragment, Fragment, Fragment]:
    acc, a, b = call.args
    assert isinstance(acc, VarRef)
    assert a is not None
    assert b is not None
    assert isinstance(acc.type, Fragment)
    assert isinstance(a.type, Fragment)
    assert isinstance(b.type, Fragment)
    return acc, a, b, acc.type, a.type, b.type


def _meaning(unit: Unit, call: Call) -> None:
    acc, a, b, d, left, right = _operands(call)
    registers: Any = unit.eval(acc)
    x = wide(to_matrix(left, unit.eval(a)), left.dtype)
    y = wide(to_matrix(right, unit.eval(b)), right.dtype)
    k, exact = K_BYTES // left.dtype.bytes, unit.arithmetic.exact
    result = accumulate(to_matrix(d, registers), x, y, k, exact)
    registers[...] = from_matrix(d, result)


def _cost(call: Call, threads: int) -> Cost:
    _, _, _, d, left, _ = _operands(call)
    (m, n), k = d.shape, left.shape[1]
    per = 16 * 8 * K_BYTES // left.dtype.bytes
    return Cost(tensor=m * n * k, tensor_dtype=left.dtype.name, issue=m * n * k // per)


# -- emission --------------------------------------------------------------------------------------

# The instruction's fragments pair a slot of K in A with the same slot in B; which element of K a
# slot holds does not matter to the sum. The 16-bit layouts and those of ldmatrix are the
# instruction's. In acc and b fragments of tf32 and 8-bit types a lane's elements fill the slots in
# its own order, the same in A and in B.


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    acc, a, b, d, left, right = _operands(call)
    names = cg.array(acc), cg.array(a), cg.array(b)
    function = cg.helper(*_function(cg.target, d, left, right))
    s, m, n = cg.fresh("s"), cg.fresh("m"), cg.fresh("n")
    atoms_k, atoms_n = left.shape[1] // 8, d.shape[1] // 8
    steps = left.shape[1] * left.dtype.bytes // K_BYTES
    d_at = f"({m} * {atoms_n} + {n}) * {4 // per_word(d.dtype)}"
    native = left.dtype.bits == 16 or left.layout == "a_ldmatrix"
    if native:
        a_at = f"({m} * {2 * steps} + {s} * 2) * 2"
        b_at = f"({s} * {atoms_n} + {n}) * 2"
    elif left.dtype == TF32:
        a_at = f"({m} * {atoms_k} + {s}) * 4"
        b_at = f"({s} / 2 * {atoms_n} + {n}) * 4 + {s} % 2 * 2"
    else:
        a_at = f"{m} * {atoms_k} + {s} * 4"
        b_at = f"{s} * {2 * atoms_n} + {n}"
    apart = left.dtype.bits == 8 and not native
    second = f", {names[2]}[{b_at} + {atoms_n}]" if apart else ""
    first = f"{names[2]}[{b_at}]" if apart else f"{names[2]} + {b_at}"
    with cg.unrolled(steps, s), cg.unrolled(d.shape[0] // 16, m), cg.unrolled(atoms_n, n):
        cg.line(f"{function}({names[0]} + {d_at}, {names[1]} + {a_at}, {first}{second});")


def _function(target: str, d: Fragment, left: Fragment, right: Fragment) -> tuple[str, str]:
    """A function around one instruction: (name, code)."""
    k = K_BYTES // left.dtype.bytes
    form = get(target).mma_form(left.dtype.name, right.dtype.name, d.dtype.name, (16, 8, k))
    assert form is not None
    acc = _ptx(d.dtype)
    kinds = f"{acc}.{_ptx(left.dtype)}.{_ptx(right.dtype)}.{acc}"
    kind = f".kind::{form.kind}" if form.kind else ""
    name = f"mma_{form.shape}_{kinds[: kinds.rindex('.')].replace('.', '_')}"
    if left.layout == "a_ldmatrix":
        name += "_ldmatrix"
    w, count = word(d.dtype), 4 // per_word(d.dtype)
    parameters, a, b = _sources(left)
    sums = ", ".join(f"%{i}" for i in range(count))
    places = [f"%{count + i}" for i in range(6)]
    outputs = ", ".join(f'"+{w.constraint}"(d[{i}])' for i in range(count))
    inputs = ", ".join(f'"r"({x})' for x in (*a, *b))
    code = f"""\
__device__ __forceinline__ void {name}({w.c}* d, {parameters}) {{
  asm("mma.sync.aligned.{form.shape}.row.col{kind}.{kinds} "
      "{{{sums}}}, {{{", ".join(places[:4])}}}, {{{", ".join(places[4:])}}}, {{{sums}}};"
      : {outputs}
      : {inputs});
}}"""
    return name, code


def _ptx(dtype: DType) -> str:
    return {"i8": "s8", "i32": "s32"}.get(dtype.name, dtype.name)


def _sources(left: Fragment) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Parameters of the function, and its operands for A and B."""
    native = left.dtype.bits == 16 or left.layout == "a_ldmatrix"
    if left.dtype == TF32:
        order = (0, 1, 2, 3) if native else (0, 2, 1, 3)
        a = tuple(f"__float_as_uint(a[{i}])" for i in order)
        return (
            "const float* a, const float* b",
            a,
            tuple(f"__float_as_uint(b[{i}])" for i in (0, 1)),
        )
    if native:
        words = tuple(f"a[{i}]" for i in range(4))
        return "const unsigned* a, const unsigned* b", words, ("b[0]", "b[1]")
    pairs = tuple(
        f"__byte_perm(a[{i}], a[{i + 1}], {s})" for i in (0, 2) for s in ("0x5410", "0x7632")
    )
    return "const unsigned* a, unsigned b0, unsigned b1", pairs, ("b0", "b1")


register(
    Primitive(
        name="mma",
        params=(Param("acc"), Param("a"), Param("b")),
        doc="""acc (M, N) += A (M, K) . B (K, N) from register fragments of one warp.

``acc`` is an f32 (i32 for i8 and u8) fragment variable; f16 for f16 and fp8 operands as well, half
the registers. ``a`` is a fragment of the acc layout and ``b`` of the b layout, or both are what
ldmatrix brings: bf16, f16, tf32, i8, u8, and e4m3, e5m2 where the target has the instruction. M is
a multiple of 16, N of 8, K of 16 (of 32 for 8-bit types). The sums of each instruction (16, 8 or 32
of K) are rounded to the type of ``acc``; their order within one is not specified.""",
        source="PTX ISA, mma.sync.aligned.m16n8k8, m16n8k16, m16n8k32",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="mma_sync",
        convergent=True,
        units=frozenset({"warp"}),
    )
)
