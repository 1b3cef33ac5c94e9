"""How a direct CUDA candidate is launched: JSON in the first comment of its source.

    /* cake {"entry": "softmax", "grid": ["M"], "block": 128, "args": ["x", "y", "M", "N"]} */

One kernel's entries stand at the top, those of several in a list ``launches``, in their order:

* ``entry``: the ``extern "C"`` function; ``block``: threads, along x.
* ``grid``: one to three numbers or formulas over extents, parameters and ``device_sms``.
* ``args``: names of tensors and workspaces (addresses), extents and parameters (``int`` or
  ``float``). Left out: all tensors in the order of the contract, then all extents.
* ``smem``: bytes of dynamic shared memory; ``cluster``: blocks along x, y and z.

``workspaces`` maps names to formulas of bytes; they are zero before every call. ``options`` are
NVRTC options of those that :data:`OPTIONS` admits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from cake.codegen.abi import (
    AbiError,
    Arg,
    KernelAbi,
    PointerArg,
    ScalarArg,
    ScalarSpec,
    TensorSpec,
)
from cake.codegen.hostexpr import HostExpr, HostExprError
from cake.judge.candidate import BuildError
from cake.workloads import Problem

OPTIONS = re.compile(r"--use_fast_math|--maxrregcount=\d+|--fmad=(true|false)|-D\w+(=[\w.+-]*)?")
"""Options that change how code is generated; none that reads or writes a file."""

_HEADER = re.compile(r"\s*/\*\s*cake\b(?P<json>.*?)\*/", re.DOTALL)
_LAUNCH = frozenset({"entry", "grid", "block", "args", "smem", "cluster"})
_TOP = frozenset({"launches", "workspaces", "options"})
_ALIGNMENT = 16  # bytes; the judge's tensors have 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel: its interface, and the values of its scalar arguments."""

    abi: KernelAbi
    scalars: Mapping[str, int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The launches of a candidate in order, its ``workspaces`` in bytes, its NVRTC ``options``."""

    launches: tuple[Launch, ...]
    workspaces: Mapping[str, int]
    options: tuple[str, ...]


def with_manifest(source: str, manifest: str) -> str:
    """A source with the text of a manifest file as its first comment.

    The line that it takes is made up for, so that messages keep their lines.
    """
    if "*/" in manifest:
        raise BuildError("the manifest holds `*/`, which would end the comment that carries it")
    return f"/* cake {' '.join(manifest.split())} */\n#line 1\n{source}"


def read_manifest(source: str, problem: Problem, *, target: str, sms: int) -> Manifest:
    """The manifest in ``source`` at ``problem``, on a device of ``sms`` multiprocessors.

    Raises :class:`BuildError` that names the entry and what it admits.
    """
    raw = _parsed(source)
    numbers = {**problem.env(), "device_sms": sms}
    workspaces = {
        name: _number(f"workspaces.{name}", text, numbers)
        for name, text in _mapping("workspaces", raw.get("workspaces", {})).items()
    }
    options = raw.get("options", [])
    for option in options:
        if not isinstance(option, str) or not OPTIONS.fullmatch(option):
            raise BuildError(f"manifest: option {option!r} is not one of {OPTIONS.pattern}")
    entries = raw.get("launches")
    if entries is None:
        entries = [{key: value for key, value in raw.items() if key not in _TOP}]
    elif extra := sorted(raw.keys() - _TOP):
        raise BuildError(f"manifest: {', '.join(extra)} belongs into `launches`")
    if not isinstance(entries, list) or not entries:
        raise BuildError("manifest: `launches` has to be a list of at least one launch")
    launches = tuple(_launch(entry, problem, target, numbers, workspaces) for entry in entries)
    return Manifest(launches=launches, workspaces=workspaces, options=tuple(options))


def _parsed(source: str) -> dict[str, Any]:
    found = _HEADER.match(source)
    if found is None:
        raise BuildError(
            "the source does not begin with a manifest; put a .json file beside it, or write "
            '/* cake {"entry": "kernel", "grid": ["cdiv(M, 128)"], "block": 128} */'
        )
    try:
        raw = json.loads(found["json"])
    except (ValueError, RecursionError) as error:
        raise BuildError(f"manifest: not JSON: {error}") from None
    return dict(_mapping("the manifest", raw))


def _mapping(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BuildError(f"manifest: {what} has to be an object")
    return value


def _number(what: str, value: object, numbers: Mapping[str, int]) -> int:
    """A number or a formula, at least 0."""
    try:
        number = value if type(value) is int else HostExpr(cast("str", value)).evaluate(numbers)
    except (HostExprError, TypeError, AttributeError) as error:
        raise BuildError(f"manifest: {what}: {error}") from None
    if number < 0:
        raise BuildError(f"manifest: {what} is {number}; it has to be at least 0")
    return number


def _launch(
    raw: object,
    problem: Problem,
    target: str,
    numbers: Mapping[str, int],
    workspaces: Mapping[str, int],
) -> Launch:
    entry = _mapping("a launch", raw)
    if unknown := sorted(entry.keys() - _LAUNCH):
        raise BuildError(f"manifest: unknown entries {', '.join(unknown)}")
    if missing := sorted({"entry", "grid", "block"} - entry.keys()):
        raise BuildError(f"manifest: a launch lacks {', '.join(missing)}")
    name, grid = entry["entry"], entry["grid"]
    if not isinstance(name, str) or not name.isidentifier():
        raise BuildError(f"manifest: entry {name!r} is not the name of a function")
    if not isinstance(grid, list) or not 1 <= len(grid) <= 3:
        raise BuildError("manifest: grid has to be a list of one to three numbers or formulas")
    blocks = [str(_number(f"grid[{i}]", text, numbers)) for i, text in enumerate(grid)]
    args = entry.get("args", [*(s.name for s in problem.contract.tensors), *problem.dims])
    scalars = {**problem.env(), **problem.parameters}
    tensors, typed = _arguments(args, problem, workspaces)
    try:
        abi = KernelAbi(
            name=name,
            target=target,
            tensors=tuple(tensors),
            scalars=tuple(typed),
            args=tuple(_passed(arg, tensors) for arg in args),
            workspaces=(),
            guards=(),
            grid=cast("tuple[str, str, str]", (*blocks, "1", "1")[:3]),
            cluster=cast("tuple[int, int, int] | None", _triple(entry.get("cluster"))),
            block=_number("block", entry["block"], numbers),
            smem_bytes=_number("smem", entry.get("smem", 0), numbers),
            pdl=False,
            min_blocks=1,
        )
    except AbiError as error:
        raise BuildError(f"manifest: {error}") from None
    return Launch(abi=abi, scalars={s.name: cast("float", scalars[s.name]) for s in typed})


def _triple(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 3 or any(type(v) is not int for v in value):
        raise BuildError("manifest: cluster has to be a list of three integers")
    return tuple(value)


def _arguments(
    args: object, problem: Problem, workspaces: Mapping[str, int]
) -> tuple[list[TensorSpec], list[ScalarSpec]]:
    """The tensors and scalars that ``args`` name, each once."""
    contract = {spec.name: spec for spec in problem.contract.tensors}
    numbers = {**problem.env(), **problem.parameters}
    tensors, scalars = [], []
    if not isinstance(args, list):
        raise BuildError("manifest: args has to be a list of names")
    for name in dict.fromkeys(args):
        if name in contract:
            symbol = contract[name].dtype
            dtype = problem.contract.dtypes[problem.dtype].get(symbol, symbol)
            shape, writable = problem.shape_of(name), contract[name].role != "input"
        elif name in workspaces:
            dtype, shape, writable = "u8", (workspaces[name],), True
        elif isinstance(numbers.get(name), int | float):
            kind = "i32" if isinstance(numbers[name], int) else "f32"
            scalars.append(ScalarSpec(name=name, dtype=kind))
            continue
        else:
            known = ", ".join([*contract, *workspaces, *numbers])
            raise BuildError(f"manifest: args names {name!r}; known are {known}")
        tensors.append(
            TensorSpec(name=name, dtype=dtype, shape=shape, writable=writable, align=_ALIGNMENT)
        )
    return tensors, scalars


def _passed(name: str, tensors: list[TensorSpec]) -> Arg:
    return PointerArg(tensor=name) if name in {t.name for t in tensors} else ScalarArg(name=name)
