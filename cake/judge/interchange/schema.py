"""The records of flashinfer-bench's schema, and their JSON."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from cake.codegen.hostexpr import HostExpr, HostExprError
from cake.judge.records import RecordError, decode, encode

DType = Literal[
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float4_e2m1",
    "int64",
    "int32",
    "int16",
    "int8",
    "bool",
]
Language = Literal["python", "triton", "cpp", "cuda", "tilelang"]
TraceStatus = Literal[
    "PASSED",
    "INCORRECT_SHAPE",
    "INCORRECT_NUMERICAL",
    "INCORRECT_DTYPE",
    "RUNTIME_ERROR",
    "COMPILE_ERROR",
    "TIMEOUT",
]
_EVIDENCE: Mapping[str, tuple[bool, bool]] = {
    "PASSED": (True, True),
    "INCORRECT_NUMERICAL": (True, False),
}
"""Whether a status carries correctness and performance; every other one carries neither."""


class InterchangeError(ValueError):
    """Text or a record that the schema does not admit; the message names the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisConst:
    """An extent that every workload of the definition shares."""

    value: int
    description: str | None = None
    type: Literal["const"] = "const"


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisVar:
    """An extent that a workload gives."""

    description: str | None = None
    type: Literal["var"] = "var"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor by the names of its axes; a scalar has no shape."""

    shape: tuple[str, ...] | None
    dtype: DType
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What is computed: axes, inputs, outputs, and a reference in Python with a function ``run``,
    which is text here and never executed."""

    name: str
    op_type: str
    axes: Mapping[str, AxisConst | AxisVar]
    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    reference: str
    tags: tuple[str, ...] = ()
    description: str | None = None
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if both := sorted(self.inputs.keys() & self.outputs.keys()):
            raise InterchangeError(f"{self.name}: both input and output: {', '.join(both)}")
        for name, spec in {**self.inputs, **self.outputs}.items():
            if unknown := [axis for axis in spec.shape or () if axis not in self.axes]:
                raise InterchangeError(f"{self.name}: `{name}` has unknown axes {unknown}")
        if "run" not in _functions(self.name, self.reference):
            raise InterchangeError(f"{self.name}: the reference has no function `run`")
        for text in self.constraints:
            _syntax(self.name, text, "eval")

    def violated(self, axes: Mapping[str, int]) -> tuple[str, ...]:
        """The constraints that do not hold for these extents.

        Those that ask for the contents of tensors, or for more than arithmetic and comparisons of
        axes (:mod:`cake.codegen.hostexpr`), cannot be decided here and are not among them.
        """
        constants = {n: a.value for n, a in self.axes.items() if isinstance(a, AxisConst)}
        known = {**constants, **axes}
        return tuple(text for text in self.constraints if _holds(text, known) is False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of a solution, below the folder that it is built in."""

    path: str
    content: str

    def __post_init__(self) -> None:
        path = PurePosixPath(self.path)
        if not self.path or path.is_absolute() or ".." in path.parts:
            raise InterchangeError(f"source path {self.path!r} leaves the folder of the solution")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSpec:
    """How a solution is built and called: ``entry_point`` is ``FILE::FUNCTION``; with destination
    passing the outputs are the last arguments, else they are returned."""

    language: Language
    target_hardware: tuple[str, ...]
    entry_point: str
    dependencies: tuple[str, ...] = ()
    destination_passing_style: bool = True
    binding: Literal["tvm-ffi", "torch"] | None = None

    def __post_init__(self) -> None:
        if self.entry_point.count("::") != 1:
            raise InterchangeError(f"entry point {self.entry_point!r} is not FILE::FUNCTION")
        if not self.target_hardware:
            raise InterchangeError("a solution names at least one target hardware")


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """An implementation of the definition of that name."""

    name: str
    definition: str
    author: str
    spec: BuildSpec
    sources: tuple[SourceFile, ...]
    description: str | None = None

    def __post_init__(self) -> None:
        paths = [source.path for source in self.sources]
        if len(set(paths)) != len(paths):
            raise InterchangeError(f"{self.name}: two sources have one path")
        entry = self.spec.entry_point.split("::")[0]
        if entry not in paths:
            raise InterchangeError(f"{self.name}: no source is called {entry}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomInput:
    """Numbers that the benchmark draws."""

    type: Literal["random"] = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarInput:
    """A number."""

    value: bool | int | float
    type: Literal["scalar"] = "scalar"


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsInput:
    """A tensor in a file."""

    path: str
    tensor_key: str
    type: Literal["safetensors"] = "safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One problem of a definition."""

    axes: Mapping[str, int]
    inputs: Mapping[str, RandomInput | ScalarInput | SafetensorsInput]
    uuid: str

    def __post_init__(self) -> None:
        if bad := {name: value for name, value in self.axes.items() if value < 0}:
            raise InterchangeError(f"workload {self.uuid}: negative extents {bad}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """Greatest errors; ``extra`` holds what else is known."""

    max_relative_error: float = 0.0
    max_absolute_error: float = 0.0
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """Milliseconds, and how many times as fast as the reference."""

    latency_ms: float = 0.0
    reference_latency_ms: float = 0.0
    speedup_factor: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where it ran."""

    hardware: str
    libs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvaluation:
    """What was found; ``timestamp`` is ISO 8601."""

    status: TraceStatus
    environment: Environment
    timestamp: str
    log: str = ""
    correctness: Correctness | None = None
    performance: Performance | None = None

    def __post_init__(self) -> None:
        wanted = _EVIDENCE.get(self.status, (False, False))
        given = self.correctness is not None, self.performance is not None
        for what, must, has in zip(("correctness", "performance"), wanted, given, strict=True):
            if must != has:
                word = "needs" if must else "has no"
                raise InterchangeError(f"an evaluation that is {self.status} {word} {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A run of a solution on a workload, or a workload alone."""

    definition: str
    workload: Workload
    solution: str | None = None
    evaluation: TraceEvaluation | None = None


Record = TypeVar("Record", Definition, Solution, Workload, Trace)


def dumps(record: Definition | Solution | Workload | Trace) -> str:
    """A record as JSON on one line."""
    return json.dumps(encode(record), allow_nan=False)


def loads(kind: type[Record], text: str) -> Record:
    """The record of that kind in ``text``; raises :class:`InterchangeError`."""
    try:
        return decode(kind, _known(kind, json.loads(text)))
    except (RecordError, RecursionError) as error:
        raise InterchangeError(str(error)) from None
    except json.JSONDecodeError as error:
        raise InterchangeError(f"not JSON: {error}") from None


def read_traces(path: Path) -> Iterator[Trace]:
    """The traces of a JSONL file; raises :class:`InterchangeError` that names the line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield loads(Trace, line)
                except InterchangeError as error:
                    raise InterchangeError(f"{path}:{number}: {error}") from None


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write traces as JSONL."""
    path.write_text("".join(f"{dumps(trace)}\n" for trace in traces), encoding="utf-8")


def _known(kind: Any, value: Any) -> Any:
    """``value`` without entries that the records do not have: later versions may add some."""
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        return {name: _known(hints[name], part) for name, part in value.items() if name in hints}
    options = [arg for arg in get_args(kind) if arg not in (type(None), ...)]
    if isinstance(value, dict) and len(options) == 2 and options[0] is str:
        return {name: _known(options[1], part) for name, part in value.items()}
    if isinstance(value, list) and options:
        return [_known(options[0], part) for part in value]
    chosen = next((o for o in options if _names_type(o, value)), None)
    if chosen is None and len(options) == 1:
        chosen = options[0]
    return value if chosen is None else _known(chosen, value)


def _names_type(option: Any, value: Any) -> bool:
    """Whether a member of a union is the one that the entry ``type`` of ``value`` names."""
    default = getattr(option, "__dataclass_fields__", {}).get("type")
    return default is not None and isinstance(value, dict) and value.get("type") == default.default


def _functions(where: str, text: str) -> set[str]:
    body = _syntax(where, text, "exec").body
    return {node.name for node in body if isinstance(node, ast.FunctionDef)}


def _syntax(where: str, text: str, mode: str) -> Any:
    try:
        return ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InterchangeError(f"{where}: not Python: {error}") from None


def _holds(text: str, axes: Mapping[str, int]) -> bool | None:
    """Whether a constraint holds; None where it cannot be decided."""
    try:
        expression = HostExpr(text)
        return bool(expression.evaluate(axes)) if expression.names <= axes.keys() else None
    except HostExprError:
        return None
