"""What the value that a store writes depends on."""

from __future__ import annotations

from cake.ir.nodes import (
    Assign,
    Call,
    Do,
    Expr,
    SetElement,
    Stmt,
    TensorRef,
    VarRef,
    View,
    child_exprs,
    walk_exprs,
    walk_stmts,
)
from cake.ir.types import Scalar
from cake.verify.context import Context
from cake.verify.integers import from_data
from cake.verify.poly import Poly
from cake.verify.sites import Around, Site, controls


def dependencies(ctx: Context, site: Site) -> tuple[Poly, ...]:
    """The integers from which the written value is computed: coordinates of what is loaded, bounds
    of loops, operands of conditions. More than that may be in it, less is not."""
    walk = _Walk(ctx)
    for e in site.call.args:
        if e is not None and not isinstance(e, TensorRef) and e is not ctx.mask_of(site):
            walk.expression(site.role.role, e)
    return tuple(walk.found)


class _Walk:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.found: dict[Poly, None] = {}
        self._names: set[tuple[str, str]] = set()
        self._buffers: set[str] = set()
        self._around: set[int] = set()

    def expression(self, role: str, e: Expr) -> None:
        if isinstance(e.type, Scalar) and (p := self.ctx.integers.poly(e)) is not None:
            self.found[p] = None
            if not any(map(from_data, p.atoms)):
                return
        if isinstance(e, VarRef):
            self._name(role, e.name)
        elif isinstance(e, View):
            self._buffer(e.base)
        for part in child_exprs(e):
            self.expression(role, part)

    def _name(self, role: str, name: str) -> None:
        """Whatever gives a variable its value: assignments, and calls that write its registers."""
        if (role, name) in self._names:
            return
        self._names.add((role, name))
        for site in self.ctx.sites:
            if site.role.role == role and _gives(site.stmt, name):
                self._site(site)
        for s in walk_stmts(self.ctx.program.body_of(role)):
            if _gives(s, name):
                for e in child_exprs(s):
                    self.expression(role, e)
            elif isinstance(s, Assign) and _opens(s, name):
                self._name(role, s.targets[0])
        for let in self.ctx.program.lets:
            if name in let.targets:
                self.expression(role, let.value)

    def _buffer(self, buffer: str) -> None:
        """Whatever writes to a buffer of shared memory, in any role."""
        if buffer in self._buffers:
            return
        self._buffers.add(buffer)
        for site in self.ctx.sites:
            for access, place in site.accesses("smem"):
                if isinstance(place, View) and place.base == buffer and access.action != "read":
                    self._site(site)

    def _site(self, site: Site) -> None:
        for e in child_exprs(site.call):
            self.expression(site.role.role, e)
        for a in site.around:
            self._control(site.role.role, a)

    def _control(self, role: str, a: Around) -> None:
        if id(a.stmt) in self._around:
            return
        self._around.add(id(a.stmt))
        for e in controls(a.stmt):
            self.expression(role, e)


def _opens(s: Assign, name: str) -> bool:
    """Whether a statement is ``target = lanes(name)``: the target's elements are the name's."""
    opened = s.value.args[0] if isinstance(s.value, Call) and s.value.op == "lanes" else None
    return isinstance(opened, VarRef) and opened.name == name


def _gives(s: Stmt, name: str) -> bool:
    """Whether a statement may change what a name holds."""
    if isinstance(s, Assign):
        return name in s.targets
    changed: tuple[Expr | None, ...] = ()
    if isinstance(s, SetElement):
        changed = (s.array, *walk_exprs(s.array))
    elif isinstance(s, Do):
        changed = s.call.args
    return any(isinstance(e, VarRef) and e.name == name for e in changed)
