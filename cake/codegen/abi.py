"""The interface of a compiled kernel: what the host must know to launch it.

A :class:`KernelAbi` is data. It is stored as JSON beside the cubin, so that a kernel can be loaded
by a process that has never seen its schedule. Host expressions are kept as text in the grammar of
:mod:`cake.codegen.hostexpr`; the names they may use are the dimension symbols, the integer scalars
and :data:`DEVICE_NAMES`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from cake.codegen.hostexpr import HostExpr, HostExprError
from cake.diag import Span
from cake.ir.dtypes import DTYPES

FORMAT = 1
MAX_THREADS = 1024  # CUDA C++ Programming Guide, table "Technical specifications"

SCALAR_DTYPES = ("i32", "i64", "f32")
INTEGER_SCALARS = ("i32", "i64")

# What a host expression may ask about the device that the kernel is launched on.
DEVICE_NAMES = frozenset({"device_sms"})


class AbiError(ValueError):
    """An interface that contradicts itself, or JSON text that does not hold one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor argument; a dimension is a number or a symbol that the argument binds.

    Symbols that occur more than once must be bound to one value. ``align`` is the least alignment
    of the first element, in bytes.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    writable: bool
    align: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSpec:
    """A scalar argument: i32, i64 or f32."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerArg:
    """The address of a tensor's first element (8 bytes)."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DimArg:
    """The value of a dimension symbol."""

    symbol: str
    dtype: Literal["i32", "i64"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrideArg:
    """The stride of one axis of a tensor, in elements (i64).

    The launch refuses strides that are not a multiple of ``multiple``: vector accesses need that.
    """

    tensor: str
    axis: int
    multiple: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArg:
    """A scalar argument, in its own dtype."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMapArg:
    """A 128-byte tensor map (``__grid_constant__``) over a view of a tensor.

    ``axes`` are the tensor's axes that the view keeps, outermost first; ``box`` has one extent
    (elements) for each. A left-out axis is folded into the next kept axis to its right, which the
    launch allows only where the strides make that one regular axis. ``dims`` narrows the extents
    of the view; without it they are the (folded) extents of the tensor. ``dtype`` is the element
    type of the map, of the size of the tensor's. ``l2_promotion`` is in bytes, 0 for none. ``oob``
    says what a box reads outside the view. (CUDA driver API, cuTensorMapEncodeTiled.)
    """

    tensor: str
    box: tuple[int, ...]
    axes: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...] | None = None
    swizzle: Literal[0, 32, 64, 128] = 0
    l2_promotion: Literal[0, 64, 128, 256] = 128
    oob: Literal["zero", "nan"] = "zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceArg:
    """The address of a workspace (8 bytes)."""

    name: str


Arg: TypeAlias = PointerArg | DimArg | StrideArg | ScalarArg | TensorMapArg | WorkspaceArg


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Device memory that the runtime provides; ``bytes`` is a host expression.

    ``zeroed``: every launch finds the bytes zero. They are cleared once, when they are allocated;
    the kernel itself restores the zeros that it has overwritten.
    """

    name: str
    bytes: str
    zeroed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition that the arguments of a launch must meet, with its place in the schedule."""

    text: str
    message: str
    file: str
    line: int
    col: int
    end_line: int
    end_col: int

    @property
    def span(self) -> Span:
        """The place of the ``require`` that asked for this guard."""
        return Span(
            file=self.file,
            line=self.line,
            col=self.col,
            end_line=self.end_line,
            end_col=self.end_col,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAbi:
    """The interface of one kernel.

    ``name`` is the entry's unmangled symbol, ``target`` the architecture that the cubin is built
    for, ``args`` the parameters in order. ``grid`` counts thread blocks (not clusters) along x, y
    and z; a grid with a zero launches nothing. ``block`` is threads, ``smem_bytes`` the dynamic
    shared memory. ``pdl`` asks for programmatic stream serialisation. ``min_blocks`` is the number
    of blocks per SM that the kernel was bounded for. Raises :class:`AbiError` naming every
    contradiction.
    """

    name: str
    target: str
    tensors: tuple[TensorSpec, ...]
    scalars: tuple[ScalarSpec, ...]
    args: tuple[Arg, ...]
    workspaces: tuple[Workspace, ...]
    guards: tuple[Guard, ...]
    grid: tuple[str, str, str]
    cluster: tuple[int, int, int] | None
    block: int
    smem_bytes: int
    pdl: bool
    min_blocks: int

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise AbiError(f"kernel `{self.name}`: " + "; ".join(problems))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The dimension symbols in the order in which the tensors name them first."""
        found = (dim for t in self.tensors for dim in t.shape if isinstance(dim, str))
        return tuple(dict.fromkeys(found))

    def tensor(self, name: str) -> TensorSpec:
        """The tensor argument of that name."""
        return next(t for t in self.tensors if t.name == name)

    def scalar(self, name: str) -> ScalarSpec:
        """The scalar argument of that name."""
        return next(s for s in self.scalars if s.name == name)

    def to_json(self) -> str:
        """Canonical JSON text: equal interfaces give equal text."""
        data = asdict(self) | {"format": FORMAT}
        data["args"] = [{"kind": type(arg).__name__} | asdict(arg) for arg in self.args]
        return json.dumps(data, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> KernelAbi:
        """The interface written by :meth:`to_json`; raises :class:`AbiError` for other text."""
        try:
            data = json.loads(text)
            if data.pop("format") != FORMAT:
                raise AbiError(f"the interface is not in format {FORMAT}; build the kernel again")
            return _from_data(data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, AbiError):
                raise
            raise AbiError(f"not a kernel interface: {error!r}") from None


_ARGS: dict[str, type[Arg]] = {
    kind.__name__: kind
    for kind in (PointerArg, DimArg, StrideArg, ScalarArg, TensorMapArg, WorkspaceArg)
}


def _tuples(value: Any) -> Any:
    """``value`` with every list turned into a tuple, as the dataclasses hold them."""
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    return value


def _from_data(data: dict[str, Any]) -> KernelAbi:
    def each(name: str, kind: type[Any]) -> tuple[Any, ...]:
        return tuple(_build(kind, entry) for entry in data.pop(name))

    args = tuple(_build(_ARGS[entry.pop("kind")], entry) for entry in data.pop("args"))
    return KernelAbi(
        tensors=each("tensors", TensorSpec),
        scalars=each("scalars", ScalarSpec),
        workspaces=each("workspaces", Workspace),
        guards=each("guards", Guard),
        args=args,
        **{name: _tuples(value) for name, value in data.items()},
    )


def _build(kind: type[Any], entry: Mapping[str, Any]) -> Any:
    return kind(**{name: _tuples(value) for name, value in entry.items()})


def _problems(abi: KernelAbi) -> Iterator[str]:
    """What contradicts itself in ``abi``, a sentence each."""
    names = [item.name for group in (abi.tensors, abi.scalars, abi.workspaces) for item in group]
    for name, count in Counter([*names, *abi.symbols, *DEVICE_NAMES]).items():
        if count > 1:
            yield f"the name `{name}` is taken twice"
    for tensor in abi.tensors:
        if tensor.dtype not in DTYPES:
            yield f"tensor `{tensor.name}`: unknown dtype {tensor.dtype!r}"
        if tensor.align < 1 or tensor.align & (tensor.align - 1):
            yield f"tensor `{tensor.name}`: alignment {tensor.align} is not a power of two"
    for scalar in abi.scalars:
        if scalar.dtype not in SCALAR_DTYPES:
            yield f"scalar `{scalar.name}`: dtype {scalar.dtype!r} is not one of {SCALAR_DTYPES}"
    if not 1 <= abi.block <= MAX_THREADS:
        yield f"a block of {abi.block} threads; the limits are 1 and {MAX_THREADS}"
    for arg in abi.args:
        yield from _arg_problems(abi, arg)
    yield from _expression_problems(abi)


def _arg_problems(abi: KernelAbi, arg: Arg) -> Iterator[str]:
    ranks = {t.name: len(t.shape) for t in abi.tensors}
    match arg:
        case PointerArg(tensor=name) | StrideArg(tensor=name) | TensorMapArg(tensor=name) if (
            name not in ranks
        ):
            yield f"{arg} refers to no tensor"
        case StrideArg(tensor=name, axis=axis) if not 0 <= axis < ranks[name]:
            yield f"{arg}: tensor `{name}` has {ranks[name]} axes"
        case StrideArg(multiple=multiple) if multiple < 1:
            yield f"{arg}: `multiple` must be at least 1"
        case TensorMapArg():
            yield from _map_problems(arg, abi.tensor(arg.tensor))
        case DimArg(symbol=symbol) if symbol not in abi.symbols:
            yield f"{arg}: no tensor has a dimension `{symbol}`"
        case ScalarArg(name=name) if name not in {s.name for s in abi.scalars}:
            yield f"{arg} refers to no scalar"
        case WorkspaceArg(name=name) if name not in {w.name for w in abi.workspaces}:
            yield f"{arg} refers to no workspace"


def _map_problems(arg: TensorMapArg, tensor: TensorSpec) -> Iterator[str]:
    where = f"tensor map over `{tensor.name}`"
    rank = len(tensor.shape)
    if not 1 <= len(arg.axes) <= 5:
        yield f"{where}: {len(arg.axes)} axes; a tensor map has 1 to 5"
    if len(set(arg.axes)) != len(arg.axes) or not all(0 <= axis < rank for axis in arg.axes):
        yield f"{where}: axes {arg.axes} are not distinct axes of a tensor of rank {rank}"
    if len(arg.box) != len(arg.axes) or len(arg.dims or arg.axes) != len(arg.axes):
        yield f"{where}: axes {arg.axes}, box {arg.box} and dims {arg.dims} differ in length"
    sizes = {DTYPES[name].bits if name in DTYPES else name for name in (arg.dtype, tensor.dtype)}
    if len(sizes) != 1:
        yield f"{where}: dtype {arg.dtype!r} does not have the size of {tensor.dtype!r}"
    # JSON from a file may hold any value.
    if arg.swizzle not in (0, 32, 64, 128) or arg.l2_promotion not in (0, 64, 128, 256):
        yield f"{where}: no swizzle {arg.swizzle} or no L2 promotion {arg.l2_promotion}"
    if arg.oob not in ("zero", "nan"):
        yield f"{where}: nothing is filled with {arg.oob!r} outside the view"


def _expression_problems(abi: KernelAbi) -> Iterator[str]:
    integers = {scalar.name for scalar in abi.scalars if scalar.dtype in INTEGER_SCALARS}
    known = DEVICE_NAMES | integers | set(abi.symbols)
    for what, text in _expressions(abi):
        try:
            unknown = HostExpr(text).names - known
        except HostExprError as error:
            yield f"{what}: {error}"
            continue
        if unknown:
            yield f"{what} `{text}` uses unknown names {', '.join(sorted(unknown))}"


def _expressions(abi: KernelAbi) -> Iterator[tuple[str, str]]:
    yield from ((f"grid {axis}", text) for axis, text in zip("xyz", abi.grid, strict=True))
    yield from (("guard", guard.text) for guard in abi.guards)
    yield from ((f"size of workspace `{w.name}`", w.bytes) for w in abi.workspaces)
    for arg in abi.args:
        if isinstance(arg, TensorMapArg):
            yield from ((f"dims of the map over `{arg.tensor}`", text) for text in arg.dims or ())
