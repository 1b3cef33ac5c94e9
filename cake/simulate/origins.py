"""Where data should have come from: the statements that write a buffer or tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cake.diag import Related
from cake.ir.nodes import Call, TensorRef, View, walk_calls
from cake.ir.program import Program
from cake.ops.base import Access, lookup

MAX_WRITERS = 3
"""Statements that a finding lists."""


def writers(programs: Iterable[Program], name: str) -> tuple[Related, ...]:
    """Where a shared buffer or a global tensor is written, the first few places."""
    found: dict[object, Related] = {}
    for program in programs:
        for role in program.roles:
            for call in walk_calls(role.body):
                if name in _written(call):
                    message = f"role {role.role} writes {name} here"
                    found.setdefault(call.loc, Related(span=call.loc, message=message))
    return tuple(found.values())[:MAX_WRITERS]


def _written(call: Call) -> Iterator[str]:
    """Buffers and tensors that a call writes."""
    primitive = lookup(call.op)
    for effect in () if primitive is None else primitive.effects(call):
        if isinstance(effect, Access) and effect.action != "read":
            place = call.args[effect.operand]
            if isinstance(place, View):
                yield place.base
            elif isinstance(place, TensorRef):
                yield place.tensor
