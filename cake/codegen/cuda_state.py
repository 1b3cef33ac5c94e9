"""What the parts of one kernel share while it is written: names, helpers, arguments asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cake.codegen.cuda_names import Names
from cake.codegen.cuda_text import CInt
from cake.codegen.emit_findings import TENSOR_RANK, fail
from cake.ir.nodes import Call, TensorRef, walk_calls
from cake.ir.program import Program, TensorParam, WorkspaceDecl
from cake.ops.base import Access, lookup
from cake.ops.layout import SmemLayout, smem_layout
from cake.ops.warps import WarpPlan, warp_plan

MAX_MAP_RANK = 5  # CUDA driver API, cuTensorMapEncodeTiled


@dataclass(frozen=True, slots=True)
class MapKey:
    """A tensor map asked for: boxes of ``box`` elements, with a swizzle in bytes.

    ``outside``: what elements outside the tensor read as, "zero" or "nan".
    """

    tensor: str
    box: tuple[int, ...]
    swizzle: int
    outside: str


def writes_global(call: Call) -> bool:
    """Whether a call writes global memory or updates it."""
    return any(True for _ in _written_by(call))


def _written_by(call: Call) -> Iterable[str]:
    primitive = lookup(call.op)
    for effect in () if primitive is None else primitive.effects(call):
        if isinstance(effect, Access) and effect.space == "global" and effect.action != "read":
            place = call.args[effect.operand]
            if isinstance(place, TensorRef):
                yield place.tensor


def written_tensors(program: Program) -> frozenset[str]:
    """Tensors and workspaces that the kernel writes."""
    calls = (call for role in program.roles for call in walk_calls(role.body))
    return frozenset(name for call in calls for name in _written_by(call))


@dataclass(slots=True)
class KernelState:
    """One kernel being written.

    ``offsets`` are the C constants of places in shared memory (buffers, ``ring_full``,
    ``ring_empty``, barriers), ``strides`` those of tensor axes, ``extents`` those of the tiles.
    ``maps``, ``pointers`` and ``alignments`` (bytes) grow as primitives ask for tensor maps,
    pointers and vector accesses; ``locals`` are names that emission gave to variables of its own.
    """

    program: Program
    names: Names
    layout: SmemLayout
    plan: WarpPlan
    written: frozenset[str]
    offsets: dict[str, str] = field(default_factory=dict)
    strides: dict[tuple[str, int], str] = field(default_factory=dict)
    extents: list[CInt] = field(default_factory=list)
    helpers: dict[str, str] = field(default_factory=dict)
    maps: dict[MapKey, str] = field(default_factory=dict)
    pointers: dict[str, None] = field(default_factory=dict)
    alignments: dict[str, int] = field(default_factory=dict)
    locals: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, program: Program, taken: Iterable[str] = ()) -> KernelState:
        """The state before anything is written; ``taken`` are names to keep away from."""
        kernel = cls(
            program=program,
            names=Names(taken),
            layout=smem_layout(program),
            plan=warp_plan(program),
            written=written_tensors(program),
        )
        for name in (*(p.name for p in program.params), *program.dims):
            kernel.names.of(name)
        layout = kernel.layout
        rings = [f"{ring}_{side}" for ring in layout.full for side in ("full", "empty")]
        for name in (*layout.buffers, *rings, *layout.barriers):
            kernel.offsets[name] = kernel.names.fresh(f"{name}_at")
        for tensor in (*program.tensors, *program.find(WorkspaceDecl)):
            for axis in range(len(tensor.shape) - 1):
                stride = kernel.names.fresh(f"{tensor.name}_stride_{axis}")
                kernel.strides[tensor.name, axis] = stride
        return kernel

    def helper(self, name: str, code: str) -> str:
        """Define a ``__device__`` function once."""
        if self.helpers.setdefault(name, code) != code:
            raise ValueError(f"two primitives define the helper {name} differently")
        return name

    def tensor(self, name: str) -> TensorParam | WorkspaceDecl:
        """A tensor parameter or a workspace."""
        for workspace in self.program.find(WorkspaceDecl):
            if workspace.name == name:
                assert isinstance(workspace, WorkspaceDecl)
                return workspace
        return self.program.tensor(name)

    def pointer(self, tensor: str) -> str:
        """The kernel parameter that points to a tensor's first element."""
        self.pointers[tensor] = None
        return self.names.of(tensor)

    def tensor_map(
        self, tensor: str, box: tuple[int, ...], swizzle: int, outside: str = "zero"
    ) -> str:
        """The kernel parameter that holds a tensor map."""
        decl = self.program.tensor(tensor)
        if len(decl.shape) > MAX_MAP_RANK:
            fail(
                TENSOR_RANK,
                f"{tensor} has {len(decl.shape)} axes; a tensor map has at most {MAX_MAP_RANK}",
                decl.loc,
                facts={"tensor": tensor, "rank": len(decl.shape), "limit": MAX_MAP_RANK},
            )
        key = MapKey(tensor, box, swizzle, outside)
        if key not in self.maps:
            self.maps[key] = self.names.permanent(f"{tensor}_map")
        return self.maps[key]

    def require_alignment(self, tensor: str, bytes: int) -> None:
        """Note an alignment that the launch must check."""
        self.alignments[tensor] = max(bytes, self.alignments.get(tensor, 1))
