"""Kernel-level expressions as text for the host (:mod:`cake.codegen.hostexpr`)."""

from __future__ import annotations

from collections.abc import Mapping

from cake.codegen.emit_findings import NOT_HOST, fail
from cake.ir.dtypes import F32
from cake.ir.nodes import Call, Const, DimRef, Expr, VarRef
from cake.ir.program import Program

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "mod": "%",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "and_": "and",
    "or_": "or",
}
_FUNCTIONS = frozenset({"min", "max"})


class HostText:
    """Writes expressions of one program; kernel-level values are substituted."""

    def __init__(self, program: Program) -> None:
        self._lets: Mapping[str, Expr] = {let.targets[0]: let.value for let in program.lets}

    def of(self, e: Expr) -> str:
        """The text of ``e``: a number, a name, a call, or in parentheses.

        Raises CakeError (``not-a-host-expression``) for what the host cannot evaluate.
        """
        if getattr(e.type, "dtype", None) == F32:
            fail(NOT_HOST, "the host cannot evaluate a float", e.loc)
        if isinstance(e, Const):
            return str(int(e.value)) if e.value >= 0 else f"({int(e.value)})"
        if isinstance(e, DimRef):
            return e.name
        if isinstance(e, VarRef) and e.name in self._lets:
            return self.of(self._lets[e.name])
        if isinstance(e, Call):
            return self._call(e)
        fail(NOT_HOST, f"the host cannot evaluate a {type(e).__name__}", e.loc)

    def _call(self, e: Call) -> str:
        if e.op == "cast" and e.args[0] is not None:
            return self.of(e.args[0])
        operands = [self.of(a) for a in e.args if a is not None]
        if e.op in _INFIX:
            return f"({operands[0]} {_INFIX[e.op]} {operands[1]})"
        if e.op == "neg":
            return f"(-{operands[0]})"
        if e.op == "not_":
            return f"(not {operands[0]})"
        if e.op in _FUNCTIONS:
            return f"{e.op}({', '.join(operands)})"
        fail(NOT_HOST, f"the host cannot evaluate {e.op}", e.loc, facts={"primitive": e.op})
