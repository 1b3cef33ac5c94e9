"""Values of expressions: what a unit, and the host before the launch, compute with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NoReturn, cast

import numpy as np

from cake.diag import Related
from cake.ir.dtypes import numpy_dtype
from cake.ir.nodes import (
    Call,
    Const,
    DimRef,
    Element,
    Expr,
    Node,
    ResourceRef,
    Static,
    VarRef,
)
from cake.ir.program import Program, ResourceDecl
from cake.ir.types import Scalar, Type, element_dtype, is_array, registers
from cake.ops.base import lookup
from cake.ops.machine import Wait
from cake.simulate.arithmetic import FLOATS, Floats
from cake.simulate.codes import BAD_REGISTER, DIVERGED, NOT_SIMULATED
from cake.simulate.errors import Finding
from cake.simulate.registers import RegisterState

POISON_INTEGER = 0x5A
"""What an unwritten integer register holds: fits every width and is no plausible index."""


@lru_cache(maxsize=4096)
def _constant(e: Const) -> Any:
    assert isinstance(e.type, Scalar)
    return numpy_dtype(e.type.dtype).type(e.value)


class Evaluator:
    """Variables of ``threads`` threads in lock-step, under a stack of masks."""

    def __init__(
        self,
        program: Program,
        scalars: Mapping[str, Any],
        variables: Mapping[str, Any],
        threads: int = 1,
        arithmetic: Floats = FLOATS,
    ) -> None:
        self.program = program
        self.scalars = scalars
        self.variables: dict[str, Any] = dict(variables)
        self.threads = threads
        self.arithmetic = arithmetic
        self.masks: list[Any] = [np.ones(threads, np.bool_)]
        self.registers_held = RegisterState()
        self.place: Node | None = None

    @property
    def mask(self) -> Any:
        """Active threads."""
        return self.masks[-1]

    @property
    def diverged(self) -> bool:
        """Are some threads inactive?"""
        return len(self.masks) > 1 and not self.mask.all()

    def facts(self) -> dict[str, Any]:
        """Who evaluates, for findings."""
        return {}

    def fail(
        self, code: str, message: str, *, related: tuple[Related, ...] = (), **facts: Any
    ) -> NoReturn:
        raise Finding(code, message, facts, related=related)

    def locate(self, finding: Finding, place: Node | None = None) -> Finding:
        """Give a finding the place of a statement (default: the one being executed)."""
        place = place or self.place
        return finding if place is None else finding.at(place.loc, self.facts())

    def resource(self, name: str) -> ResourceDecl:
        return self.program.resource(name)

    # -- expressions ---------------------------------------------------------------------------

    def eval(self, e: Expr) -> Any:
        handler = _HANDLERS.get(type(e))
        if handler is None:
            raise TypeError(f"{type(e).__name__} is a place, not a value")
        return handler(self, e)

    def _const(self, e: Const) -> Any:
        return self.arithmetic.settle(_constant(e))

    def _variable(self, e: VarRef) -> Any:
        value = self.variables[e.name]
        if self.registers_held.watched and np.ndim(value) == 2:
            self.registers_held.check_read(e.name, value, self._rows())
        return value

    def _dimension(self, e: DimRef) -> Any:
        return self.scalars[e.name]

    def _call(self, e: Call) -> Any:
        result = self.call(e)
        if not inspect.isgenerator(result):
            return self.settled(e, result)
        try:
            while True:
                wait = next(result)
                if isinstance(wait, Wait) and not wait.ready():
                    message = f"{e.op} waits inside an expression: assign its result to a name"
                    self.fail(NOT_SIMULATED, message, primitive=e.op)
        except StopIteration as stop:
            return self.settled(e, stop.value)

    def settled(self, e: Call, value: Any) -> Any:
        """What a primitive has computed, as the arithmetic represents it."""
        return self.arithmetic.result(e, value, self.eval)

    def call(self, e: Call) -> Any:
        """Start a primitive: its value, or a generator that returns it."""
        primitive = lookup(e.op)
        assert primitive is not None
        if primitive.meaning is None:
            self.fail(NOT_SIMULATED, f"{e.op} has no meaning in the simulator", primitive=e.op)
        if primitive.convergent and self.diverged:
            active = int(self.mask.sum())
            self.fail(
                DIVERGED,
                f"{active} of {self.threads} threads reach {e.op}, which all execute together",
                primitive=e.op,
                active=active,
            )
        return primitive.meaning(cast(Any, self), e)

    # -- registers -----------------------------------------------------------------------------

    def uninitialised(self, t: Type) -> Any:
        """A new register array that nothing has written yet: NaN, or a marked integer."""
        dtype = element_dtype(t)
        assert dtype is not None
        assert is_array(t)
        poison = float("nan") if dtype.is_float else POISON_INTEGER
        array = np.full((self.threads, registers(t)), poison, numpy_dtype(dtype))
        return self.registers_held.fresh(array, None if self.place is None else self.place.loc)

    def registers(self, e: Expr, *, read: bool) -> Any:
        """The array itself of a register variable; ``read``: its present contents count."""
        if not isinstance(e, VarRef):
            return self.eval(e)
        array = self.variables[e.name]
        if read:
            self.registers_held.check_written(e.name, array, ...)
        return array

    def _element(self, e: Element) -> Any:
        name, array = self._array(e.base)
        index = self._index(e.index, array.shape[1])
        if self.registers_held.watched:
            self.registers_held.check_read(name, array, self._elements(index))
        if isinstance(index, int):
            return array[:, index].copy()
        return array[np.arange(self.threads), index]

    def assign_element(self, base: Expr, at: Expr, value: Any) -> None:
        """``base[at] = value`` in the active threads."""
        name, array = self._array(base)
        where = self._elements(self._index(at, array.shape[1]))
        if self.registers_held.watched:
            self.registers_held.write(name, array, where)
        array[where] = value if np.ndim(value) == 0 else value[where[0]]

    def assign(self, name: str, value: Any) -> None:
        """Assign to an existing variable: in place for arrays, in the active threads."""
        old = self.variables[name]
        if np.ndim(old) == 2:
            self.registers_held.write(name, old, self._rows())
            old[self._rows()] = value[self._rows()]
        elif self.diverged:
            self.variables[name] = np.where(self.mask, value, old).astype(np.asarray(old).dtype)
        else:
            self.variables[name] = value

    def _rows(self) -> Any:
        """Index of the active threads' part of an array."""
        return self.mask if self.diverged else slice(None)

    def _elements(self, index: Any) -> tuple[Any, Any]:
        """Index of one element in each active thread."""
        if isinstance(index, int):
            return self._rows(), index
        threads = np.flatnonzero(self.mask)
        return threads, index[threads]

    def _array(self, base: Expr) -> tuple[str, Any]:
        if isinstance(base, VarRef):
            return base.name, self.variables[base.name]
        return "the array", self.eval(base)

    def _index(self, e: Expr, length: int) -> Any:
        """The index of an element: an int, or one for each thread (0 where it is masked off)."""
        index = self.eval(e)
        if np.ndim(index) == 0:
            index = int(index)
            low = high = index
        else:
            index = np.where(self.mask, index, 0)
            low, high = int(index.min()), int(index.max())
        if low < 0 or high >= length:
            bad = low if low < 0 else high
            self.fail(
                BAD_REGISTER,
                f"register {bad} is outside an array of {length}",
                index=bad,
                length=length,
            )
        return index


_HANDLERS: Mapping[type[Expr], Callable[[Evaluator, Any], Any]] = {
    Const: Evaluator._const,
    Static: lambda self, e: e.value,
    VarRef: Evaluator._variable,
    DimRef: Evaluator._dimension,
    Element: Evaluator._element,
    Call: Evaluator._call,
    ResourceRef: lambda self, e: e.name,
}
