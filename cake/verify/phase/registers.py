"""Registers that asynchronous instructions own for a while, and where a role uses them."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import (
    Assign,
    Block,
    Call,
    Expr,
    For,
    If,
    SetElement,
    Stmt,
    VarRef,
    While,
    walk_exprs,
    walk_stmts,
)
from cake.ir.types import is_array

_TAKERS = frozenset({"wgmma", "tcgen05_wait_ld"})
"""Primitives whose register operands an engine takes, or that wait for one."""


class OwnedRegisters:
    """The variables of a role that wgmma or tcgen05_ld holds at times.

    ``r = lanes(x)`` makes r another name of x.
    """

    def __init__(self, body: Block) -> None:
        self._names = dict(_aliases(body))
        self._owned = frozenset(self._names.get(n, n) for n in _owned(body))

    def uses(self, s: Stmt) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Variables read and written by a statement's own expressions; None if there are none."""
        if not self._owned or (isinstance(s, Assign) and _is_alias(s.value)):
            return None
        reads = (n for e in _operands(s) for n in self._variables(e))
        targets: tuple[str, ...] = ()
        if isinstance(s, Assign):
            targets = tuple(self._names.get(t, t) for t in s.targets)
        elif isinstance(s, SetElement):
            targets = tuple(self._variables(s.array))
        read = tuple(dict.fromkeys(n for n in reads if n in self._owned))
        written = tuple(dict.fromkeys(n for n in targets if n in self._owned))
        return (read, written) if read or written else None

    def _variables(self, e: Expr) -> Iterator[str]:
        for x in (e, *walk_exprs(e)):
            if isinstance(x, VarRef) and is_array(x.type):
                yield self._names.get(x.name, x.name)


def _owned(body: Block) -> Iterator[str]:
    for s in walk_stmts(body):
        for e in walk_exprs(s):
            if isinstance(e, Call) and e.op == "wgmma":
                yield from (a.name for a in e.args[:2] if isinstance(a, VarRef))
        if isinstance(s, Assign) and isinstance(s.value, Call) and s.value.op == "tcgen05_ld":
            yield s.targets[0]


def _aliases(body: Block) -> Iterator[tuple[str, str]]:
    for s in walk_stmts(body):
        if isinstance(s, Assign) and _is_alias(s.value):
            assert isinstance(s.value, Call)
            source = s.value.args[0]
            assert isinstance(source, VarRef)
            yield s.targets[0], source.name


def _is_alias(e: Expr) -> bool:
    return isinstance(e, Call) and e.op == "lanes" and isinstance(e.args[0], VarRef)


def _operands(s: Stmt) -> Iterator[Expr]:
    """Expressions that a statement evaluates in the ordinary way."""
    own: tuple[Expr, ...]
    if isinstance(s, Assign):
        own = (s.value,)
    elif isinstance(s, SetElement):
        own = (s.index, s.value)
    elif isinstance(s, If | While):
        own = (s.cond,)
    elif isinstance(s, For):
        own = (s.start, s.stop, s.step)
    else:
        own = tuple(e for e in walk_exprs(s) if isinstance(e, Call))
    for e in own:
        if isinstance(e, Call) and e.op in _TAKERS:
            yield from (a for a in e.args if a is not None and not isinstance(a, VarRef))
        else:
            yield e
