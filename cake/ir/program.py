"""Resources, parameters and the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cake.diag import Span
from cake.ir.dtypes import DType
from cake.ir.nodes import Assign, Block, Expr, Node, RoleBody


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorParam(Node):
    """A global tensor argument; a dimension is an int or the name of a run-time dimension."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalarParam(Node):
    """A run-time scalar argument (i32, i64 or f32)."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Meta(Node):
    """A bound ``meta`` parameter: its domain is the search space."""

    name: str
    domain: tuple[Any, ...]
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guard(Node):
    """``require(cond)`` over run-time dimensions: a launch guard of the dispatcher."""

    cond: Expr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResourceDecl(Node):
    """A named declaration."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool(ResourceDecl):
    """A block of shared memory in which the author places views at byte offsets."""

    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Smem(ResourceDecl):
    """A shared-memory buffer of ``stages`` equal tiles.

    ``swizzle`` 0 means row-major. 32, 64 or 128 means the TMA swizzle of that many bytes over
    column blocks of ``swizzle`` bytes: block b holds columns [b*w, (b+1)*w) of all rows, row after
    row, 16-byte chunks XORed by the row (PTX ISA, "Swizzling modes"). ``pool``/``offset`` place it
    by hand; otherwise the compiler places it.
    """

    dtype: DType
    shape: tuple[int, ...]
    stages: int | None
    swizzle: int
    pool: str | None
    offset: int | None

    @property
    def tile_bytes(self) -> int:
        """Bytes of one stage."""
        n = self.dtype.bits
        for d in self.shape:
            n *= d
        return (n + 7) // 8


PAIR = 2
"""CTAs of a pair: the cluster whose tensor cores work together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tmem(ResourceDecl):
    """Tensor memory: ``stages`` tiles of 128 lanes by shape[1] elements (sm_100a, sm_103a).

    ``pair``: the two CTAs of a cluster have one tile each, and compute both together.
    """

    dtype: DType
    shape: tuple[int, int]
    stages: int | None
    pair: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Role(ResourceDecl):
    """A group of consecutive warps with one body.

    ``units`` bodies run, each on a warp or a warpgroup. ``regs`` is the setmaxnreg budget.
    """

    units: int
    warpgroup: bool
    regs: int | None

    @property
    def warps(self) -> int:
        return self.units * (4 if self.warpgroup else 1)

    @property
    def unit_threads(self) -> int:
        return 128 if self.warpgroup else 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pipeline(ResourceDecl):
    """A ring: equal stages of one or more buffers, one full and one empty barrier a stage.

    ``multicast``: fills are multicast within the cluster, so the empty barrier of every CTA
    collects the consumers of all CTAs. ``pair``: the CTAs of a pair fill their stages each, and the
    consumer of the leading CTA, whose full barrier counts both fills, uses them for both.
    """

    buffers: tuple[str, ...]
    stages: int
    producer: str
    consumer: str
    multicast: bool
    pair: bool = False

    @property
    def clustered(self) -> bool:
        """Whether the CTAs of a cluster wait for each other in this ring."""
        return self.multicast or self.pair


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Barrier(ResourceDecl):
    """Raw mbarriers, one for each slot, with a declared arrival count a phase."""

    slots: int
    arrivals: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedBarrier(ResourceDecl):
    """``slots`` hardware barriers (bar.sync id, threads); ids are given by lowering.

    ``threads`` counts the threads that take part in one generation.
    """

    threads: int
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid(ResourceDecl):
    """One CTA for each point of ``extents`` (outermost first); ``vars`` are its coordinates.

    ``raster`` > 1 walks the last axis in bands of that many tiles of the axis before it, so that
    CTAs resident together share operands in L2.
    """

    vars: tuple[str, ...]
    extents: tuple[Expr, ...]
    raster: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tiles(ResourceDecl):
    """A persistent tile set over ``extents`` (outermost first), strided over resident CTAs."""

    extents: tuple[Expr, ...]
    raster: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cluster(ResourceDecl):
    """Thread-block cluster shape along the linear grid: ``size`` consecutive CTAs."""

    size: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkspaceDecl(ResourceDecl):
    """Global scratch memory owned by the runtime; ``zeroed`` once, the kernel keeps it so."""

    dtype: DType
    shape: tuple[Expr, ...]
    zeroed: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaunchOptions(ResourceDecl):
    """``launch(min_blocks=..., pdl=...)``: CTAs per SM asked of the compiler; dependent launch."""

    min_blocks: int
    pdl: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Allowance(Node):
    """``# cake: allow CODE because REASON``: a finding that the author accepts on the lines from
    ``line`` to ``last``.

    ``shared``: it stands outside the schedule, in a helper that others may use as well.
    """

    code: str
    reason: str
    line: int
    last: int
    shared: bool

    def covers(self, place: Span) -> bool:
        """Whether something at ``place`` begins or ends on these lines."""
        return any(self.line <= line <= self.last for line in (place.line, place.end_line))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Program(Node):
    """One kernel, fully elaborated: meta parameters bound, inline functions expanded.

    ``allowances`` belong to the text, not to what the program means: they are not compared.
    """

    name: str
    target: str
    params: tuple[TensorParam | ScalarParam, ...]
    metas: tuple[Meta, ...]
    guards: tuple[Guard, ...]
    lets: tuple[Assign, ...]
    resources: tuple[ResourceDecl, ...]
    roles: tuple[RoleBody, ...]
    allowances: tuple[Allowance, ...] = field(default=(), compare=False)

    def resource(self, name: str) -> ResourceDecl:
        """The resource called ``name`` (KeyError if there is none)."""
        for r in self.resources:
            if r.name == name:
                return r
        raise KeyError(name)

    def find(self, kind: type[Any]) -> tuple[Any, ...]:
        """All resources of a class, in source order."""
        return tuple(r for r in self.resources if isinstance(r, kind))

    def tensor(self, name: str) -> TensorParam:
        """The tensor parameter called ``name`` (KeyError if there is none)."""
        for p in self.params:
            if isinstance(p, TensorParam) and p.name == name:
                return p
        raise KeyError(name)

    @property
    def tensors(self) -> tuple[TensorParam, ...]:
        return tuple(p for p in self.params if isinstance(p, TensorParam))

    @property
    def dims(self) -> tuple[str, ...]:
        """Run-time dimension names in order of first appearance."""
        seen: dict[str, None] = {}
        for t in self.tensors:
            for d in t.shape:
                if isinstance(d, str):
                    seen[d] = None
        return tuple(seen)

    @property
    def bindings(self) -> Mapping[str, Any]:
        """Meta parameter values by name."""
        return {m.name: m.value for m in self.metas}

    def role_decls(self) -> tuple[Role, ...]:
        """Declared roles in order; warps are assigned in this order after alignment."""
        return self.find(Role)

    def body_of(self, role: str) -> Block:
        """The body of a role (empty if it has none)."""
        for r in self.roles:
            if r.role == role:
                return r.body
        return ()
