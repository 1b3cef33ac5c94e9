"""Findings of the emitter (CK62x)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from cake.diag import CakeError, Code, Diagnostic, Severity, Span, define
from cake.diag.model import Fact

_STAGE = "build"

NO_EMISSION = define(
    code="CK620",
    name="no-emission",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A primitive has no emission for the target.",
    page="""
The primitive is typed and simulated, but nobody has written how it becomes CUDA for this
architecture. `cake primitives` shows which targets each primitive is emitted for.
""",
)

SMEM_EXCEEDED = define(
    code="CK621",
    name="shared-memory-exceeded",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The buffers and barriers of a CTA do not fit into shared memory.",
    page="""
The figure counts all stages, alignment gaps and mbarriers. Take fewer stages or smaller tiles, or
let two buffers share a pool when their lifetimes do not overlap.
""",
)

TOO_MANY_THREADS = define(
    code="CK622",
    name="too-many-threads",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The roles take more threads than a CTA may have.",
    page="""
Warps are counted after alignment: with register budgets, roles of single warps fill whole
warpgroups with idle warps. Merge roles, or give them equal budgets so that they share a warpgroup.
""",
)

NOT_HOST = define(
    code="CK623",
    name="not-a-host-expression",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A grid extent, guard or workspace size uses something that the host cannot evaluate.",
    page="""
The host evaluates integers with + - * // %, comparisons, and, or, not, min, max and cdiv over
dimensions, integer scalars and earlier kernel-level values.
""",
)

TENSOR_RANK = define(
    code="CK624",
    name="tensor-map-rank",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A tensor has more axes than a tensor map can describe.",
    page="""
A tensor map has one to five axes. Merge axes in the caller's view of the tensor, or use cp_async.
""",
)


def fail(
    code: Code,
    message: str,
    span: Span,
    *,
    facts: Mapping[str, Fact] | None = None,
    helps: tuple[str, ...] = (),
) -> NoReturn:
    """Give up with one finding."""
    raise CakeError([Diagnostic.of(code, message, span, facts=facts, helps=helps)])
