"""CUDA of ``wgmma`` and ``wgmma_wait``: descriptors, one function a shape, pinned registers."""

from __future__ import annotations

from cake.ir.dtypes import I32, DType
from cake.ir.nodes import Call, Const, Expr, VarRef, View
from cake.ir.program import Smem
from cake.ir.types import Fragment, SmemView, element_dtype
from cake.ops.base import operand, static
from cake.ops.emit import Emitter
from cake.ops.memory_access import per_word, word
from cake.ops.wgmma_flight import completed_by, owned_before, variable
from cake.ops.wgmma_operand import K_BYTES, MatrixOperand, matrix_operand

_PTX = {"i8": "s8", "u8": "u8", "i32": "s32"}
_DESCRIPTOR = """\
// Matrix descriptor: start address in 16 bytes, and the layout's strides and swizzle mode.
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned start,
                                                                unsigned long long fields) {
  return (start & 0x3ffff) >> 4 | fields;
}"""
_FENCE = """\
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}"""
_COMMIT = """\
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}"""
_WAIT = """\
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory");
}"""


def emit_wgmma(cg: Emitter, call: Call, dest: str | None) -> None:
    """Fence, one instruction for each 32 bytes of K, commit."""
    acc, a, b = variable(operand(call, "acc")), operand(call, "a"), operand(call, "b")
    assert a is not None
    assert isinstance(b, View)
    dtype = element_dtype(a.type)
    assert dtype is not None
    d = cg.array(acc)
    overwrite = operand(call, "init")
    right = _matrix(cg, b, "b")
    left = _matrix(cg, a, "a") if isinstance(a, View) else None
    function = cg.helper(*_function(acc.type, a, b, left, right))
    descriptors = [cg.fresh("b_descriptor")]
    cg.line(f"const unsigned long long {descriptors[0]} = {_descriptor(cg, b, right)};")
    if left is not None:
        descriptors.append(cg.fresh("a_descriptor"))
        cg.line(f"const unsigned long long {descriptors[1]} = {_descriptor(cg, a, left)};")
        registers = ""
    else:
        registers = cg.array(a)
    owned = owned_before(cg.program, cg.role, call)
    if left is None and not (isinstance(a, VarRef) and a.name in owned):
        _pin(cg, registers, word(dtype).c)
    if not _always(overwrite) and acc.name not in owned:
        _pin(cg, d, _c_type(acc))
    cg.line(f"{cg.helper('wgmma_fence', _FENCE)}();")
    for s, step in enumerate(right.steps):
        if left is not None:
            operands = [_advanced(descriptors[1], left.steps[s])]
        else:
            operands = [_bits(dtype, f"{registers}[{4 * s + r}]") for r in range(4)]
        operands.append(_advanced(descriptors[0], step))
        accumulates = "1" if s else _accumulates(cg, overwrite)
        cg.line(f"{function}({', '.join([d, *operands, accumulates])});")
    cg.line(f"{cg.helper('wgmma_commit', _COMMIT)}();")


def emit_wait(cg: Emitter, call: Call, dest: str | None) -> None:
    """Wait, then pin what it hands back, so that reads cannot move above it."""
    cg.helper("wgmma_wait", _WAIT)
    cg.line(f"wgmma_wait<{static(call, 'pending')}>();")
    for acc in completed_by(cg.program, cg.role, call):
        _pin(cg, cg.array(acc), _c_type(acc))


def _bits(dtype: DType, register: str) -> str:
    """A word of A as the 32 bits that the instruction takes."""
    return f"__float_as_uint({register})" if word(dtype).c == "float" else register


def _c_type(acc: VarRef) -> str:
    assert isinstance(acc.type, Fragment)
    return word(acc.type.dtype).c


def _always(init: Expr | None) -> bool:
    return isinstance(init, Const) and bool(init.value)


def _accumulates(cg: Emitter, init: Expr | None) -> str:
    """The scale-d predicate of the first instruction."""
    if init is None or isinstance(init, Const):
        return "0" if _always(init) else "1"
    return f"!{cg.scalar(init)}"


def _matrix(cg: Emitter, view: View, side: str) -> MatrixOperand:
    decl = cg.resource(view.base)
    assert isinstance(decl, Smem)
    return matrix_operand(view, decl, "a" if side == "a" else "b")


def _descriptor(cg: Emitter, view: Expr, matrix: MatrixOperand) -> str:
    name = cg.helper("matrix_descriptor", _DESCRIPTOR)
    return f"{name}({cg.smem_address(view)}, {matrix.fields:#x}ull)"


def _advanced(descriptor: str, step: int) -> str:
    return f"{descriptor} + {step >> 4}" if step else descriptor


def _pin(cg: Emitter, array: str, c_type: str) -> None:
    """Registers have their values here: what precedes is done, what follows reads these.

    Without it the compiler may compute an accumulator, even a constant one, behind the fence, or
    read it in front of the wait.
    """
    letter = "f" if c_type == "float" else "r"
    name = f"pin_{c_type}"
    code = f"""\
template <int n>
__device__ __forceinline__ void {name}({c_type} (&r)[n]) {{
#pragma unroll
  for (int i = 0; i < n; ++i) asm volatile("" : "+{letter}"(r[i]) :: "memory");
}}"""
    cg.line(f"{cg.helper(name, code)}({array});")


def _name(dtype: DType) -> str:
    return _PTX.get(dtype.name, dtype.name)


def _function(
    acc: object, a: Expr, b: View, left: MatrixOperand | None, right: MatrixOperand
) -> tuple[str, str]:
    """A function around one instruction: (name, code). ``left`` is None for A in registers."""
    assert isinstance(acc, Fragment)
    assert isinstance(a.type, SmemView | Fragment)
    assert isinstance(b.type, SmemView)
    n, k = acc.shape[1], K_BYTES // b.type.dtype.bytes
    kinds = f"{_name(acc.dtype)}.{_name(a.type.dtype)}.{_name(b.type.dtype)}"
    majors = [right.k_major] if left is None else [left.k_major, right.k_major]
    name = f"wgmma_m64n{n}k{k}_{kinds.replace('.', '_')}{'_rs' if left is None else ''}"
    if not all(majors):
        name += "_" + "".join("k" if m else "t" for m in majors)
    modifiers = "" if acc.dtype == I32 else ", 1, 1"
    if b.type.dtype.bits == 16:
        modifiers += "".join(f", {int(not m)}" for m in majors)
    instruction = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{kinds}"
    return name, _code(name, acc, instruction, left is None, modifiers)


def _code(name: str, acc: Fragment, instruction: str, from_registers: bool, modifiers: str) -> str:
    """The function's text: accumulators first, then A, B and the predicate as operands."""
    w, count = word(acc.dtype), acc.registers // per_word(acc.dtype)
    sources = [f"a{r}" for r in range(4)] if from_registers else ["a"]
    places = [f"%{count + i}" for i in range(len(sources) + 2)]
    a_text = "{" + ", ".join(places[:4]) + "}" if from_registers else places[0]
    kind = "unsigned" if from_registers else "unsigned long long"
    parameters = [f"{kind} {s}" for s in sources] + ["unsigned long long b", "int accumulate"]
    inputs = [f'"{"r" if from_registers else "l"}"({s})' for s in sources]
    inputs += ['"l"(b)', '"r"(accumulate)']
    names = _wrapped([f"%{i}" for i in range(count)])
    registers = _wrapped([f'"+{w.constraint}"(d[{i}])' for i in range(count)])
    outputs = "\n        ".join(line.rstrip() for line in registers)
    text = "\n".join(f'      "{line}"' for line in ["{" + names[0], *names[1:]])
    return f"""\
__device__ __forceinline__ void {name}(
    {w.c} (&d)[{count}], {", ".join(parameters)}) {{
  asm volatile(
      "{{\\n.reg .pred p;\\nsetp.ne.b32 p, {places[-1]}, 0;\\n"
      "{instruction} "
{text}
      "}}, {a_text}, {places[-2]}, p{modifiers};\\n}}"
      : {outputs}
      : {", ".join(inputs)});
}}"""


def _wrapped(items: list[str]) -> list[str]:
    """Lines of eight items with commas between all of them."""
    rows = [", ".join(items[i : i + 8]) for i in range(0, len(items), 8)]
    return [f"{row}, " for row in rows[:-1]] + rows[-1:]
