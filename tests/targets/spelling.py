"""Instruction forms spelled as PTX, for the tests that put them to ptxas."""

from __future__ import annotations

from cake.targets.forms import BITS, BlockScaledForm, MmaForm, Tcgen05Form, WgmmaForm

_PTX_TYPES = {"i8": "s8", "i32": "s32"}


def ptx_type(dtype: str) -> str:
    return _PTX_TYPES.get(dtype, dtype)


def vector(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{i}" for i in range(count)) + "}"


def _registers(rows: int, columns: int, dtype: str) -> int:
    """32-bit registers (64-bit for f64) per lane; FP4 and FP6 of .kind::f8f6f4 fill bytes."""
    width = 64 if dtype == "f64" else 32
    bits = 8 if dtype in ("e2m1", "e2m3", "e3m2") else BITS[dtype]
    return max(1, rows * columns * bits // 32 // width)


def mma(form: MmaForm, *, memory: bool = False) -> str:
    """``mma.sync``; with ``memory`` the operands come from and go to ``[%0]``."""
    width = "f64" if form.acc == "f64" else "b32"
    counts = {
        "a": _registers(form.m, form.k, form.a),
        "b": _registers(form.k, form.n, form.b),
        "c": _registers(form.m, form.n, form.acc),
    }
    declare = f".reg .{width} " + ", ".join(f"{x}<{n}>" for x, n in counts.items()) + ";"
    cells = [f"{x}{i}" for x, n in counts.items() for i in range(n)]
    load = "".join(f"ld.global.{width} {c}, [%0+{8 * i}];" for i, c in enumerate(cells))
    store = "".join(
        f"st.global.{width} [%0+{8 * i}], {c};" for i, c in enumerate(cells) if c[0] == "c"
    )
    kind = f".kind::{form.kind}" if form.kind else ""
    op = f".{form.op}.popc" if form.op else ""
    types = ".".join(ptx_type(t) for t in (form.acc, form.a, form.b, form.acc))
    a, b, c = (vector(x, n) for x, n in counts.items())
    body = f"mma.sync.aligned.{form.shape}.row.col{kind}.{types}{op} {c}, {a}, {b}, {c};"
    return declare + (load + body + store if memory else body)


def block_scaled(form: BlockScaledForm) -> str:
    types = ".".join(ptx_type(t) for t in (form.acc, form.a, form.b, form.acc, form.scale))
    return (
        ".reg .b32 a<4>, b<2>, c<4>;"
        f"mma.sync.aligned.{form.shape}.row.col.kind::{form.kind}.block_scale"
        f".scale_vec::{form.scale_vec}X.{types} "
        f"{vector('c', 4)}, {vector('a', 4)}, {vector('b', 2)}, {vector('c', 4)}, "
        "{sa}, {0, 0}, {sb}, {0, 0};"
    )


def wgmma(
    form: WgmmaForm, n: int, *, a_in_registers: bool = False, transposed: bool = False
) -> str:
    """``wgmma.mma_async``; ``transposed`` asks for MN-major operands in shared memory."""
    count = n // 4 if form.acc == "f16" else n // 2
    types = ".".join(ptx_type(t) for t in (form.acc, form.a, form.b))
    op = f".{form.op}.popc" if form.op else ""
    immediates = ["p"]
    if form.acc in ("f16", "f32"):
        immediates += ["1", "1"]
    if form.mn_major or transposed:
        immediates += [str(int(transposed))] * (1 if a_in_registers else 2)
    a = vector("a", 4) if a_in_registers else "s0"
    return (
        f".reg .b32 a<4>, d<{count}>; wgmma.fence.sync.aligned;"
        f"wgmma.mma_async.sync.aligned.m{form.m}n{n}k{form.k}.{types}{op} "
        f"{vector('d', count)}, {a}, s1, {', '.join(immediates)};"
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    )


def tcgen05(kind: str, cta_group: int, *, block: int | None = None, a_in_tmem: bool = False) -> str:
    """``tcgen05.mma``; ``block`` is the number of elements of k per scale."""
    a = "[r1]" if a_in_tmem else "s0"
    scaled = "" if block is None else f".block_scale.block{block}"
    scales = "" if block is None else " [sa], [sb],"
    return f"tcgen05.mma.cta_group::{cta_group}.kind::{kind}{scaled} [r0], {a}, s1, r2,{scales} p;"


def tcgen05_spellings(form: Tcgen05Form) -> list[str]:
    """Every spelling of a form that ptxas can tell apart."""
    blocks: list[int | None] = [block for _, block in form.scales]
    return [
        tcgen05(form.kind, form.cta_group, block=block, a_in_tmem=a_in_tmem)
        for block in blocks or [None]
        for a_in_tmem in (False, True)
    ]
