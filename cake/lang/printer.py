"""IR to source. ``parse(print_program(p))`` has the same structure as ``p``.

The printed text is canonical: it is what a program's identity is computed from.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

from cake.ir.dtypes import DType
from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Const,
    DimRef,
    Do,
    Element,
    Expr,
    For,
    If,
    Node,
    ResourceRef,
    RoleBody,
    SetElement,
    Static,
    Stmt,
    TensorRef,
    TileLoop,
    VarRef,
    View,
    While,
)
from cake.ir.program import (
    Barrier,
    Cluster,
    Grid,
    LaunchOptions,
    NamedBarrier,
    Pipeline,
    Pool,
    Program,
    ResourceDecl,
    Role,
    Smem,
    TensorParam,
    Tiles,
    Tmem,
    WorkspaceDecl,
)
from cake.ir.types import SmemView, TmemView
from cake.ops.base import lookup

_BINARY = {
    "add": ("+", 6),
    "sub": ("-", 6),
    "mul": ("*", 7),
    "div": ("/", 7),
    "floordiv": ("//", 7),
    "mod": ("%", 7),
    "lt": ("<", 4),
    "le": ("<=", 4),
    "gt": (">", 4),
    "ge": (">=", 4),
    "eq": ("==", 4),
    "ne": ("!=", 4),
    "and_": ("and", 2),
    "or_": ("or", 1),
}
_ATOM = 10
_WITH_BODY = (For, TileLoop, While, If, Bracket, RoleBody)
_INDENT = "    "


def print_program(p: Program) -> str:
    """Canonical source of a program."""
    return _Printer(p).program()


def digest(p: Program) -> str:
    """Identity of a program: sha256 of its canonical source (64 hex digits)."""
    return hashlib.sha256(print_program(p).encode()).hexdigest()


def print_expr(p: Program, e: Expr) -> str:
    """Source text of an expression of ``p``."""
    return _Printer(p).expr(e)


class _Printer:
    def __init__(self, program: Program) -> None:
        self.p = program
        self.lines: list[str] = []

    def program(self) -> str:
        p = self.p
        self.lines.append(f'@cake.schedule(target="{p.target}")')
        self.line(p, f"def {p.name}(", 0)
        for q in p.params:
            self.line(q, f"{self.param(q)},", 1)
        if p.metas:
            self.lines.append(_INDENT + "*,")
        for m in p.metas:
            domain = ", ".join(map(self.value, m.domain))
            self.line(m, f"{m.name}: meta({domain}) = {self.value(m.value)},", 1)
        self.lines.append("):")
        for g in p.guards:
            self.line(g, f"require({self.expr(g.cond)})", 1)
        late = self.late_lets()
        for let in p.lets[:late]:
            self.line(let, f"{let.targets[0]} = {self.expr(let.value)}", 1)
        for r in p.resources:
            self.line(r, self.resource(r), 1)
        for let in p.lets[late:]:
            self.line(let, f"{let.targets[0]} = {self.expr(let.value)}", 1)
        for role in p.roles:
            unit = f" as {role.unit}" if role.unit else ""
            self.line(role, f"with {role.role}{unit}:", 1)
            self.block(role.body, 2)
        return "\n".join(self.lines) + "\n"

    def line(self, node: Node, text: str, depth: int) -> None:
        """A line, below the allowances for the author's lines of a node."""
        end = node.loc.line if isinstance(node, _WITH_BODY) else node.loc.end_line
        for a in self.p.allowances:
            of_head = node is not self.p and a.line <= self.p.loc.line <= a.last
            if a.line <= end and node.loc.line <= a.last and not of_head:
                self.lines.append(f"{_INDENT * depth}# cake: allow {a.code} because {a.reason}")
        self.lines.append(_INDENT * depth + text)

    def late_lets(self) -> int:
        """Index of the first kernel-level value that needs the grid's coordinates."""
        grids: tuple[Grid, ...] = self.p.find(Grid)
        names = {v for g in grids for v in g.vars}
        from cake.ir.nodes import walk_exprs

        for i, let in enumerate(self.p.lets):
            if any(isinstance(e, VarRef) and e.name in names for e in walk_exprs(let)):
                return i
        return len(self.p.lets)

    def param(self, q: Any) -> str:
        if isinstance(q, TensorParam):
            dims = ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in q.shape)
            return f"{q.name}: Tensor[{q.dtype}, {dims}]"
        return f"{q.name}: {q.dtype}"

    # -- resources -----------------------------------------------------------------------------

    def resource(self, r: ResourceDecl) -> str:
        if isinstance(r, Grid):
            raster = f", raster={r.raster}" if r.raster > 1 else ""
            extents = ", ".join(self.expr(e) for e in r.extents)
            return f"{', '.join(r.vars)} = grid({extents}{raster})"
        if isinstance(r, Cluster):
            return f"cluster({r.size})"
        if isinstance(r, LaunchOptions):
            return f"launch(min_blocks={r.min_blocks}, pdl={r.pdl})"
        return f"{r.name} = {self.declaration(r)}"

    def declaration(self, r: ResourceDecl) -> str:
        if isinstance(r, Smem):
            extra = f", stages={r.stages}" if r.stages is not None else ""
            extra += f", swizzle={r.swizzle}" if r.swizzle else ""
            extra += f", pool={r.pool}, offset={r.offset}" if r.pool else ""
            return f"smem({r.dtype}, {self.value(r.shape)}{extra})"
        if isinstance(r, Tmem):
            extra = f", stages={r.stages}" if r.stages is not None else ""
            extra += ", pair=True" if r.pair else ""
            return f"tmem({r.dtype}, {self.value(r.shape)}{extra})"
        if isinstance(r, Pool):
            return f"pool({r.bytes})"
        if isinstance(r, Role):
            regs = f", regs={r.regs}" if r.regs is not None else ""
            return f"role({'warpgroups' if r.warpgroup else 'warps'}={r.units}{regs})"
        if isinstance(r, Pipeline):
            extra = ", multicast=True" if r.multicast else ""
            extra += ", pair=True" if r.pair else ""
            buffers = ", ".join(r.buffers)
            return f"pipeline({buffers}, producer={r.producer}, consumer={r.consumer}{extra})"
        if isinstance(r, Barrier):
            return f"barrier(slots={r.slots}, arrivals={r.arrivals})"
        if isinstance(r, NamedBarrier):
            slots = f", slots={r.slots}" if r.slots > 1 else ""
            return f"named_barrier(threads={r.threads}{slots})"
        if isinstance(r, Tiles):
            raster = f", raster={r.raster}" if r.raster > 1 else ""
            return f"persistent({', '.join(self.expr(e) for e in r.extents)}{raster})"
        assert isinstance(r, WorkspaceDecl)
        extents = "".join(self.expr(e) + ", " for e in r.shape)
        zeroed = ", zeroed=True" if r.zeroed else ""
        return f"workspace({r.dtype}, ({extents}){zeroed})"

    # -- statements ----------------------------------------------------------------------------

    def block(self, body: Block, depth: int) -> None:
        if not body:
            self.lines.append(_INDENT * depth + "pass")
        for s in body:
            self.statement(s, depth)

    def statement(self, s: Stmt, depth: int) -> None:
        if isinstance(s, Assign):
            self.line(s, f"{', '.join(s.targets)} = {self.right_side(s)}", depth)
        elif isinstance(s, SetElement):
            target = f"{self.expr(s.array, _ATOM)}[{self.expr(s.index)}]"
            self.line(s, f"{target} = {self.expr(s.value)}", depth)
        elif isinstance(s, Do):
            self.line(s, self.expr(s.call), depth)
        elif isinstance(s, If):
            self.line(s, f"if {self.expr(s.cond)}:", depth)
            self.block(s.then, depth + 1)
            if s.orelse:
                self.lines.append(f"{_INDENT * depth}else:")
                self.block(s.orelse, depth + 1)
        else:
            self.line(s, self.head(s), depth)
            body = getattr(s, "body", ())
            self.block(body, depth + 1)

    def right_side(self, s: Assign) -> str:
        if isinstance(s.value, Const):
            return f"var({s.value.type}, {self.expr(s.value)})"
        return self.expr(s.value)

    def head(self, s: Stmt) -> str:
        if isinstance(s, For):
            bounds = f"{self.expr(s.start)}, {self.expr(s.stop)}, {self.expr(s.step)}"
            unroll = ", unroll=True" if s.unroll else ""
            return f"for {s.var} in range({bounds}{unroll}):"
        if isinstance(s, TileLoop):
            return f"for {', '.join(s.vars)} in {s.tiles}:"
        if isinstance(s, While):
            return f"while {self.expr(s.cond)}:"
        assert isinstance(s, Bracket)
        return f"with {s.pipeline}.{s.side}() as {s.slot}:"

    # -- expressions ---------------------------------------------------------------------------

    def expr(self, e: Expr, parent: int = 0) -> str:
        if isinstance(e, Const | Static):
            text = self.value(e.value)
            return f"({text})" if text.startswith("-") and parent > 0 else text
        if isinstance(e, VarRef | DimRef | ResourceRef):
            return e.name
        if isinstance(e, TensorRef):
            return f"{e.tensor}[{', '.join(self.expr(i) for i in e.index)}]"
        if isinstance(e, Element):
            return f"{self.expr(e.base, _ATOM)}[{self.expr(e.index)}]"
        if isinstance(e, View):
            return self.view(e)
        assert isinstance(e, Call)
        return self.call(e, parent)

    def call(self, e: Call, parent: int) -> str:
        if e.op in _BINARY:
            symbol, level = _BINARY[e.op]
            left, right = e.args
            assert left is not None
            assert right is not None
            # Comparisons chain in Python, so both sides of one are parenthesised if compared.
            low = level + 1 if level == 4 else level
            text = f"{self.expr(left, low)} {symbol} {self.expr(right, level + 1)}"
            return f"({text})" if level < parent else text
        primitive = lookup(e.op)
        assert primitive is not None
        parts = []
        keywords = False
        for p, a in zip(primitive.params, e.args, strict=True):
            if a is None:
                keywords = True
            elif keywords or p.keyword_only:
                keywords = True
                parts.append(f"{p.name}={self.expr(a)}")
            else:
                parts.append(self.expr(a))
        return f"{e.op}({', '.join(parts)})"

    def view(self, e: View) -> str:
        decl = self.p.resource(e.base)
        text = e.base if e.stage is None else f"{e.base}[{self.expr(e.stage)}]"
        if isinstance(e.type, TmemView):
            return text
        assert isinstance(e.type, SmemView)
        assert isinstance(decl, Smem)
        shape = e.type.shape
        dropped = len(decl.shape) - len(shape)
        parts = []
        for axis, offset in enumerate(e.offsets):
            if axis < dropped:
                parts.append(self.expr(offset))
                continue
            extent = shape[axis - dropped]
            whole = extent == decl.shape[axis] and isinstance(offset, Const) and offset.value == 0
            parts.append(":" if whole else self.slice(offset, extent))
        while parts and parts[-1] == ":":
            parts.pop()
        if parts:
            text += f"[{', '.join(parts)}]"
        return text + (".T" if e.type.transposed else "")

    def slice(self, offset: Expr, extent: int) -> str:
        if isinstance(offset, Const):
            return f"{offset.value} : {offset.value + extent}"
        start = self.expr(offset, 6)
        return f"{start} : {start} + {extent}"

    def value(self, v: object) -> str:
        if isinstance(v, DType):
            return v.name
        if isinstance(v, tuple):
            items = ", ".join(map(self.value, v))
            return f"({items},)" if len(v) == 1 else f"({items})"
        if isinstance(v, float):
            if math.isnan(v):
                return "nan"
            return ("-" if v < 0 else "") + "inf" if math.isinf(v) else repr(v)
        return repr(v)
