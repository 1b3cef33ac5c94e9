"""Small stand-ins for the stages that call a primitive's facets: typing, simulator, emitter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from cake.codegen.build import BuildResult, compile_cubin
from cake.diag import Span
from cake.ir.dtypes import BOOL, F32, I32, I64, DType, numpy_dtype
from cake.ir.nodes import Call, Const, Expr, Static, VarRef, View
from cake.ir.program import ResourceDecl, Smem
from cake.ir.types import (
    ColVector,
    Fragment,
    RowVector,
    Scalar,
    SmemView,
    StaticType,
    Tuple,
    Type,
    Void,
    element_dtype,
    is_array,
    registers,
)
from cake.ops.base import REQUIRED, Typed, lookup
from cake.ops.elementwise_facets import element_expression, is_fused
from cake.ops.machine import Arithmetic
from cake.simulate.arithmetic import FLOATS
from cake.targets import Target, get

HERE = Span(file="schedule.py", line=1, col=1, end_line=1, end_col=2)


def var(name: str, t: Type) -> VarRef:
    return VarRef(name=name, type=t, loc=HERE)


def number(value: Any, dtype: DType) -> Const:
    return Const(value=value, type=Scalar(dtype), loc=HERE)


def attribute(value: Any) -> Static:
    return Static(value=value, type=StaticType(), loc=HERE)


def view(
    base: str,
    t: SmemView,
    *,
    offsets: Sequence[Expr | int] | None = None,
    stage: Expr | None = None,
) -> View:
    offsets = offsets or (0,) * len(t.shape)
    exprs = tuple(number(o, I32) if isinstance(o, int) else o for o in offsets)
    return View(base=base, stage=stage, offsets=exprs, type=t, loc=HERE)


class Refused(Exception):
    """A typing rule rejected a call."""

    def __init__(self, message: str, helps: Sequence[str], facts: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.helps = helps
        self.facts = facts


@dataclass
class FakeTyping:
    """A typing context of one call."""

    target: Target = field(default_factory=lambda: get("sm_90a"))
    unit_threads: int = 128
    resources: dict[str, ResourceDecl] = field(default_factory=dict)

    def resource(self, name: str) -> ResourceDecl:
        return self.resources[name]

    def fail(
        self,
        message: str,
        at: Expr | None = None,
        *,
        code: str = "CK110",
        helps: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        raise Refused(message, helps, facts or {})

    def coerce(self, e: Expr, dtype: DType) -> Expr:
        if isinstance(e, Static):
            if isinstance(e.value, bool) != (dtype == BOOL):
                self.fail(f"expected {dtype}, got compile-time {e.value!r}", e)
            if isinstance(e.value, float) and not dtype.is_float:
                self.fail(f"expected {dtype}, got the float {e.value!r}", e)
            return number(float(e.value) if dtype.is_float else e.value, dtype)
        found = element_dtype(e.type)
        if found == dtype:
            return e
        if (found, dtype) == (I32, I64) and isinstance(e.type, Scalar):
            return make("cast", e, dtype, typing=self)
        self.fail(f"expected {dtype}, got {found or e.type}", e)


def make(op: str, *args: Any, typing: FakeTyping | None = None, **named: Any) -> Call:
    """Type a call; plain Python values become compile-time attributes."""
    primitive = lookup(op)
    assert primitive is not None, op
    given: list[Any] = list(args)
    for p in primitive.params[len(args) :]:
        given.append(named.pop(p.name, None))
    assert not named, f"{op} has no parameter {', '.join(named)}"
    exprs = tuple(a if a is None or isinstance(a, Expr) else attribute(a) for a in given)
    for p, e in zip(primitive.params, exprs, strict=True):
        assert e is not None or p.default is not REQUIRED, f"{op} needs {p.name}"
    call = Call(op=op, args=exprs, type=Void(), loc=HERE)
    result = primitive.typing(typing or FakeTyping(), call)
    if isinstance(result, Typed):
        return Call(op=op, args=result.args, type=result.type, loc=HERE)
    return Call(op=op, args=exprs, type=result, loc=HERE)


# -- simulator -------------------------------------------------------------------------------------


class Finding(Exception):
    """A meaning reported a finding."""

    def __init__(self, code: str, message: str, facts: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.facts = facts


@dataclass
class FakeUnit:
    """A unit with variables and unstaged shared buffers, whose asynchronous work waits."""

    threads: int = 128
    values: dict[str, Any] = field(default_factory=dict)
    smem: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, ResourceDecl] = field(default_factory=dict)
    active: Any = None
    index: int = 0
    block_rank: int = 0
    arithmetic: Arithmetic = FLOATS
    pending: list[list[tuple[Callable[[], Any], Callable[[Any], None]]]] = field(
        default_factory=lambda: [[]]
    )

    @property
    def mask(self) -> Any:
        return np.ones(self.threads, bool) if self.active is None else self.active

    def eval(self, e: Expr) -> Any:
        if isinstance(e, VarRef):
            return self.values[e.name]
        if isinstance(e, Const):
            dtype = element_dtype(e.type)
            assert dtype is not None
            return np.asarray(e.value, numpy_dtype(dtype))
        assert isinstance(e, Call), e
        return self.run(e)

    def registers(self, e: Expr, *, read: bool) -> Any:
        return self.eval(e)

    def run(self, call: Call) -> Any:
        primitive = lookup(call.op)
        assert primitive is not None
        assert primitive.meaning is not None
        result = primitive.meaning(self, call)  # type: ignore[arg-type]
        if not isinstance(result, Iterator):
            return result
        while True:
            try:
                wait = next(result)
            except StopIteration as stop:
                return stop.value
            assert wait.ready(), wait.what

    def uninitialised(self, t: Type) -> Any:
        dtype = element_dtype(t)
        assert dtype is not None
        poison = np.frombuffer(b"\xfe" * 8, np.uint8).view(numpy_dtype(dtype))[0]
        return np.full((self.threads, registers(t)), poison)

    def resource(self, name: str) -> ResourceDecl:
        return self.resources[name]

    def fail(self, code: str, message: str, **facts: Any) -> NoReturn:
        raise Finding(code, message, facts)

    def smem_read(self, e: Expr, index: Sequence[Any] | None = None, **_: Any) -> Any:
        assert isinstance(e, View)
        assert isinstance(e.type, SmemView)
        starts = [int(self.eval(o)) for o in e.offsets]
        drop = len(starts) - len(e.type.shape)
        lead, inner = starts[:drop], starts[drop:]
        cut = [slice(s, s + n) for s, n in zip(inner, e.type.shape, strict=True)]
        tile = self.smem[e.base][(*lead, *cut)]
        tile = tile.swapaxes(-1, -2) if e.type.transposed else tile
        return tile.copy() if index is None else tile[tuple(index)]

    def issue(
        self, completion: str, fetch: Callable[[], Any], land: Callable[[Any], None], **_: Any
    ) -> None:
        self.pending[-1].append((fetch, land))

    def commit(self, completion: str) -> None:
        self.pending.append([])

    def drained(self, completion: str, pending: int, **_: Any) -> bool:
        while len(self.pending) - 1 > pending:
            for fetch, land in self.pending.pop(0):
                land(fetch())
        return True


# -- emitter ---------------------------------------------------------------------------------------

_C = {"f32": "float", "tf32": "float", "i32": "int", "u32": "unsigned", "i64": "long long"}


def literal(e: Const) -> str:
    """C literal of a number."""
    dtype = element_dtype(e.type)
    if dtype == F32:
        bits = int(np.float32(e.value).view(np.uint32))
        return f"__uint_as_float({bits:#x}u)"
    if dtype == BOOL:
        return "true" if e.value else "false"
    return f"{e.value}" if e.value >= 0 else f"({e.value})"


@dataclass
class FakeEmitter:
    """Collects the code of one kernel; variables are loaded from ``in``, results go to ``out``."""

    target: str = "sm_90a"
    unit_threads: int = 128
    program: Any = None
    role: str = "math"
    resources: dict[str, ResourceDecl] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    count: int = 0

    def resource(self, name: str) -> ResourceDecl:
        return self.resources[name]

    def line(self, text: str) -> None:
        self.lines.append(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(f"{head} {{")
        yield
        self.line("}")

    @contextmanager
    def unrolled(self, count: int, var: str = "i") -> Iterator[None]:
        self.line("#pragma unroll")
        with self.block(f"for (int {var} = 0; {var} < {count}; ++{var})"):
            yield

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}_{self.count}"

    def helper(self, name: str, code: str) -> str:
        assert self.helpers.setdefault(name, code) == code, f"two helpers are called {name}"
        return name

    def words(self, t: Type) -> tuple[str, int]:
        """C type and length of what holds a value."""
        dtype = element_dtype(t)
        assert dtype is not None
        n = registers(t)
        if dtype == BOOL:
            return "bool", n
        if dtype.bits < 32:
            return ("unsigned", n * dtype.bits // 32) if is_array(t) else ("unsigned short", 1)
        return _C[dtype.name], n

    def declare(self, t: Type, name: str) -> None:
        c, n = self.words(t)
        self.line(f"{c} {name}[{n}];" if is_array(t) else f"{c} {name};")

    def scalar(self, e: Expr) -> str:
        if isinstance(e, Const):
            return literal(e)
        if isinstance(e, VarRef):
            return self.variable(e)
        assert isinstance(e, Call)
        return self.emit(e) or ""

    def variable(self, e: VarRef) -> str:
        if e.name not in self.known:
            self.known.add(e.name)
            self.declare(e.type, e.name)
            c, n = self.words(e.type)
            for k in range(n):
                target = f"{e.name}[{k}]" if is_array(e.type) else e.name
                self.line(f"{target} = *({c}*)(in++);")
        return e.name

    def emit(self, call: Call, dest: str | None = None) -> str | None:
        primitive = lookup(call.op)
        assert primitive is not None
        emission = primitive.emission(self.target)
        assert emission is not None
        return emission(self, call, dest)  # type: ignore[arg-type]

    def array(self, e: Expr) -> str:
        if isinstance(e, VarRef):
            return self.variable(e)
        assert isinstance(e, Call)
        return self.emit(e) or ""

    def element(self, e: Expr, i: str, like: Type) -> str:
        if isinstance(e.type, Scalar):
            return self.scalar(e)
        if isinstance(e, Call) and is_fused(e):
            return element_expression(self, e, i, like)  # type: ignore[arg-type]
        name = self.array(e)
        if isinstance(like, Fragment) and not isinstance(e.type, Fragment):
            half = like.shape[1] // 8
            if isinstance(e.type, RowVector):
                i = f"(({i}) / 4 / {half} * 2 + ({i}) % 4 / 2)"
            elif isinstance(e.type, ColVector):
                i = f"(({i}) / 4 % {half} * 2 + ({i}) % 2)"
        dtype = element_dtype(e.type)
        if dtype is not None and dtype.bits == 16:
            return f"(unsigned short)({name}[({i}) >> 1] >> (({i}) & 1) * 16)"
        if dtype is not None and dtype.bits == 8 and dtype != BOOL:
            return f"(unsigned char)({name}[({i}) >> 2] >> (({i}) & 3) * 8)"
        return f"{name}[{i}]"

    def _base(self, e: Expr) -> str:
        assert isinstance(e, View)
        return f"(smem + {1024 * list(self.resources).index(e.base)}u)"

    def smem_address(self, e: Expr, index: Sequence[str] = ()) -> str:
        """Row-major address of an element; enough for code that is compiled and not run."""
        assert isinstance(e, View)
        decl = self.resources[e.base]
        assert isinstance(decl, Smem)
        coords = [self.scalar(o) for o in e.offsets]
        for k, more in enumerate(index):
            coords[len(coords) - len(index) + k] += f" + ({more})"
        flat = "0"
        for extent, c in zip(decl.shape, coords, strict=True):
            flat = f"(({flat}) * {extent} + {c})"
        return f"({self._base(e)} + {flat} * {decl.dtype.bytes})"

    def keep(self, name: str, t: Type) -> None:
        """Store a value to global memory, so that the compiler cannot drop it."""
        items = t.items if isinstance(t, Tuple) else (t,)
        for n, item in zip(name.split(", "), items, strict=True):
            c, count = self.words(item)
            for k in range(count):
                value = f"{n}[{k}]" if is_array(item) else n
                self.line(f"*({c}*)(out++) = {value};")

    def source(self) -> str:
        body = "\n  ".join(self.lines)
        functions = "\n".join(self.helpers.values())
        return f"""{functions}
extern "C" __global__ void kernel(long long* in, long long* out) {{
  extern __shared__ __align__(1024) unsigned char shared[];
  const unsigned smem = (unsigned)__cvta_generic_to_shared(shared);
  const int lane = threadIdx.x % 32, warp_in_unit = threadIdx.x / 32 % 4;
  const int unit_thread = threadIdx.x % {self.unit_threads}, unit = 0, cta_rank = 0;
  in += threadIdx.x * 4096; out += threadIdx.x * 4096;
  {body}
}}
"""

    def build(self) -> BuildResult:
        return compile_cubin(
            self.source(), name="kernel", target=self.target, options=["-fmad=false"],
            include_cuda_headers=False, want_ptx=True,
        )  # fmt: skip


def compiled(call: Call, *, target: str = "sm_90a", **emitter: Any) -> tuple[str, BuildResult]:
    """Emit a call into a kernel that keeps its result, and compile it; returns text and build."""
    cg = FakeEmitter(target=target, **emitter)
    result = cg.emit(call)
    if not isinstance(call.type, Void):
        if is_array(call.type) or isinstance(call.type, Tuple):
            assert result is not None
            cg.keep(result, call.type)
        else:
            c, _ = cg.words(call.type)
            cg.line(f"*({c}*)(out++) = {result};")
    return "\n".join(cg.lines), cg.build()
