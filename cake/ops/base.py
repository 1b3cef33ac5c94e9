"""What a primitive is: one object with all its facets, and the registry.

A facet that is missing keeps a primitive from registering; a hole is declared with its reason
(``Primitive.holes``). The facets' contexts are protocols: ``typing`` sees a
:class:`TypingContext`, ``meaning`` a :class:`cake.ops.machine.Unit`, ``emit`` a
:class:`cake.ops.emit.Emitter`. None of them imports the stage that implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

from cake.diag import Span
from cake.ir.dtypes import DType
from cake.ir.nodes import Call, Expr
from cake.ir.program import ResourceDecl
from cake.ir.types import Type
from cake.targets.model import Target

if TYPE_CHECKING:
    from cake.ops.emit import Emitter
    from cake.ops.machine import Unit


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""Default of a parameter that must be given."""

ParamKind = Literal["value", "place", "static", "resource"]
"""value: run-time value; place: smem/tmem view or tensor coordinate; static: compile-time
attribute; resource: pipeline, barrier, role, ..."""


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a primitive."""

    name: str
    kind: ParamKind = "value"
    default: Any = REQUIRED
    keyword_only: bool = False


class TypingContext(Protocol):
    """What a typing rule may ask."""

    @property
    def target(self) -> Target: ...

    @property
    def unit_threads(self) -> int:
        """Threads of the unit that executes (32 or 128); 0 outside a role."""
        ...

    def resource(self, name: str) -> ResourceDecl: ...

    def fail(
        self,
        message: str,
        at: Expr | None = None,
        *,
        code: str = "CK110",
        helps: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        """Reject the call with a diagnostic at ``at`` (default: the whole call)."""
        ...

    def coerce(self, e: Expr, dtype: DType) -> Expr:
        """Give an untyped number the dtype; fail on a typed value of another dtype."""
        ...


@dataclass(frozen=True, slots=True)
class Typed:
    """Result of a typing rule: the type, and the operands if the rule changed them."""

    type: Type
    args: tuple[Expr | None, ...]


Space = Literal["smem", "global", "regs", "tmem"]
Completion = Literal["now", "mbarrier", "wgmma", "bulk_group", "cp_async", "tcgen05"]


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of one operand, by which proxy, complete at which event.

    ``operand`` indexes ``Call.args``. ``now``: complete when the statement returns. Otherwise the
    access is in flight until the wait of its completion mechanism.
    """

    action: Literal["read", "write", "atomic"]
    operand: int
    space: Space
    proxy: Literal["generic", "async"] = "generic"
    completes: Completion = "now"


@dataclass(frozen=True, slots=True)
class SyncEffect:
    """A synchronising effect, by name: ``wait``, ``arrive``, ``commit``, ``drain``, ``fence``,
    ``barrier``; ``what`` names the mechanism (a completion, ``pipeline``, ``named``, ``cta``,
    ``cluster``, ``proxy``, ...)."""

    action: Literal["wait", "arrive", "commit", "drain", "fence", "barrier"]
    what: str


STAYS = frozenset(
    {
        SyncEffect("fence", "time"),
        SyncEffect("wait", "time"),
        SyncEffect("fence", "trap"),
        SyncEffect("wait", "registers"),
    }
)
"""Effects that keep a statement where it stands, and order nothing else."""

Effects = tuple[Access | SyncEffect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Work of one execution by one unit, in machine units; the cost model turns it into time.

    ``tensor``: fused multiply-adds on the tensor core, with ``tensor_dtype``. ``fma``, ``alu``,
    ``sfu``: lane operations on those pipes. ``issue``: warp instructions. ``smem``: bytes moved
    through shared memory. ``gmem_read``/``gmem_write``: global bytes. ``atomics``: lane atomics.
    """

    tensor: int = 0
    tensor_dtype: str | None = None
    fma: int = 0
    alu: int = 0
    sfu: int = 0
    issue: int = 0
    smem: int = 0
    gmem_read: int = 0
    gmem_write: int = 0
    atomics: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            tensor=self.tensor + other.tensor,
            tensor_dtype=self.tensor_dtype or other.tensor_dtype,
            fma=self.fma + other.fma,
            alu=self.alu + other.alu,
            sfu=self.sfu + other.sfu,
            issue=self.issue + other.issue,
            smem=self.smem + other.smem,
            gmem_read=self.gmem_read + other.gmem_read,
            gmem_write=self.gmem_write + other.gmem_write,
            atomics=self.atomics + other.atomics,
        )


TypingRule = Callable[[TypingContext, Call], Type | Typed]
Meaning = Callable[["Unit", Call], Any]
Emit = Callable[["Emitter", Call, str | None], str | None]
CostRule = Callable[[Call, int], Cost]


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """One operation of the language.

    ``requires``: capability of the target (attribute of ``Target`` that must be truthy), or None.
    ``convergent``: all threads of the unit must execute it together. ``units``: which kinds of
    unit may execute it ("warp", "warpgroup"). ``cost`` takes the call and the unit's threads.
    ``emit`` maps a target name prefix ("sm_90", "" for any) to its emission.
    """

    name: str
    params: tuple[Param, ...]
    doc: str
    source: str
    typing: TypingRule
    effects: Callable[[Call], Effects]
    meaning: Meaning | None
    cost: CostRule | None
    emit: Mapping[str, Emit]
    requires: str | None = None
    convergent: bool = False
    units: frozenset[str] = frozenset({"warp", "warpgroup"})
    outside_roles: bool = False
    holes: Mapping[str, str] = field(default_factory=dict)

    def param_index(self, name: str) -> int:
        """Position of a parameter in ``Call.args``."""
        for i, p in enumerate(self.params):
            if p.name == name:
                return i
        raise KeyError(name)

    def emission(self, target: str) -> Emit | None:
        """The emission for a target: the longest matching prefix."""
        best = max((p for p in self.emit if target.startswith(p)), key=len, default=None)
        return None if best is None else self.emit[best]


_REGISTRY: dict[str, Primitive] = {}


class IncompletePrimitive(Exception):
    """A primitive lacks a facet without saying why."""


def register(primitive: Primitive) -> Primitive:
    """Add a primitive to the language.

    Raises:
        IncompletePrimitive: a facet is missing and no hole gives the reason.
        ValueError: the name is taken.
    """
    missing = [
        facet
        for facet, present in (
            ("meaning", primitive.meaning is not None),
            ("cost", primitive.cost is not None),
            ("emit", bool(primitive.emit)),
            ("source", bool(primitive.source)),
            ("doc", bool(primitive.doc)),
        )
        if not present and facet not in primitive.holes
    ]
    if missing:
        raise IncompletePrimitive(f"primitive {primitive.name} lacks {', '.join(missing)}")
    if primitive.name in _REGISTRY:
        raise ValueError(f"primitive {primitive.name} is registered twice")
    _REGISTRY[primitive.name] = primitive
    return primitive


def lookup(name: str) -> Primitive | None:
    """The primitive called ``name``, or None."""
    return _REGISTRY.get(name)


def all_primitives() -> tuple[Primitive, ...]:
    """Every primitive, by name."""
    return tuple(_REGISTRY[n] for n in sorted(_REGISTRY))


def operand(call: Call, name: str) -> Expr | None:
    """The operand of ``call`` for parameter ``name`` (None if omitted)."""
    primitive = _REGISTRY[call.op]
    return call.args[primitive.param_index(name)]


def static(call: Call, name: str) -> Any:
    """The compile-time value given for parameter ``name``, or its default."""
    from cake.ir.nodes import Const, Static

    primitive = _REGISTRY[call.op]
    i = primitive.param_index(name)
    e = call.args[i]
    if isinstance(e, Static | Const):
        return e.value
    default = primitive.params[i].default
    return None if default is REQUIRED else default


def pending(call: Call) -> int:
    """Groups that a draining primitive leaves unfinished: none, unless it says so."""
    primitive = _REGISTRY[call.op]
    leaves = any(p.name == "pending" for p in primitive.params)
    return int(static(call, "pending")) if leaves else 0


def no_effects(call: Call) -> Effects:
    """Effects of a pure primitive."""
    return ()


def at(call: Call, *names: str) -> tuple[Expr | None, ...]:
    """Several operands of a call by parameter name."""
    return tuple(operand(call, n) for n in names)


__all__ = [
    "REQUIRED",
    "STAYS",
    "Access",
    "Cost",
    "Effects",
    "Emit",
    "IncompletePrimitive",
    "Param",
    "Primitive",
    "Span",
    "SyncEffect",
    "Typed",
    "TypingContext",
    "all_primitives",
    "at",
    "lookup",
    "no_effects",
    "operand",
    "pending",
    "register",
    "static",
]
