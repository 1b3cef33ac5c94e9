"""Diagnostic codes of the language and its types (CK0xx, CK1xx)."""

from __future__ import annotations

from cake.diag import Severity, define

_E = Severity.ERROR


def _code(code: str, name: str, summary: str, page: str) -> str:
    stage = "language" if code < "CK1" else "types"
    define(code=code, name=name, severity=_E, stage=stage, summary=summary, page=page)
    return code


SYNTAX = _code(
    "CK001",
    "syntax-error",
    "the file is not Python syntax",
    "Cake IR uses Python's syntax. The text was handed to Python's parser, which refused it at\n"
    "the place shown. Nothing of the file was executed.",
)
NOT_IN_LANGUAGE = _code(
    "CK002",
    "not-in-language",
    "a Python construct that Cake IR does not have",
    "A schedule is data: it is parsed and never executed, so only the constructs of\n"
    "`docs/grammar.md` exist. The help line says what to write instead.",
)
FOREIGN_IMPORT = _code(
    "CK003",
    "foreign-import",
    "an import other than cake",
    "Only `import cake` and `from cake.language import ...` may stand in a schedule file. They\n"
    "are for editors; CAKE does not execute them, nor anything else in the file.",
)
NO_SCHEDULE = _code(
    "CK004",
    "no-schedule",
    "the file holds no schedule",
    'A schedule is a function with the decorator `@cake.schedule(target="sm_90a")`. The file\n'
    "has none (or is empty).",
)
BAD_HEADER = _code(
    "CK005",
    "bad-header",
    "the decorator or a parameter of a schedule is malformed",
    "A schedule's parameters are `name: Tensor[dtype, dim, ...]` or `name: i32` (also i64,\n"
    "f32), then `*`, then meta parameters `NAME: meta(value, ...) = default`. The decorator\n"
    "names the target.",
)
TOO_LARGE = _code(
    "CK006",
    "program-too-large",
    "elaboration would produce too many statements",
    "`static_range` loops and inline helpers are expanded. The limit protects the compiler; use\n"
    "`range(n, unroll=True)` or a run-time loop for long loops.",
)
BAD_ALLOWANCE = _code(
    "CK007",
    "bad-allowance",
    "a comment that begins with `cake:` is no allowance, or it gives no reason",
    "`# cake: allow CK328 because the order of the sums is free` accepts a finding of the\n"
    "verifier on its line, or, on a line of its own, on the statement that follows. The code and\n"
    "a reason are needed: whoever reads the schedule later must be able to judge whether it\n"
    "still holds.",
)
UNKNOWN_NAME = _code(
    "CK101",
    "unknown-name",
    "a name that is not defined here",
    "A name is declared by its first assignment and lives to the end of that block. Assign it\n"
    "before the loop or branch if it is needed afterwards.",
)
REDEFINED = _code(
    "CK102",
    "redefined",
    "a name that already means something else",
    "Parameters, dimensions, resources and primitives keep their meaning in the whole schedule.",
)
TYPE_CHANGED = _code(
    "CK103",
    "type-changed",
    "an assignment that would change a variable's type",
    "A variable keeps the type of its first assignment. Cast the value, or use another name.",
)
BAD_SUBSCRIPT = _code(
    "CK104",
    "bad-subscript",
    "a subscript that does not fit what it selects from",
    "Tensors take one index an axis; shared-memory views take a stage (if staged), then offsets\n"
    "with compile-time extents (`a : a + 64`); register arrays take one index.",
)
NOT_STATIC = _code(
    "CK105",
    "not-compile-time",
    "a value that must be known at compile time",
    "Shapes, stages, swizzles, extents of views, `static_range` bounds and attributes of\n"
    "primitives are compile-time values: numbers, meta parameters, and arithmetic on them.",
)
BAD_ARGUMENTS = _code(
    "CK106",
    "bad-arguments",
    "a call with missing, unknown or repeated arguments",
    "The help line shows the signature. `cake primitives NAME` prints the whole page.",
)
REQUIREMENT = _code(
    "CK107",
    "requirement-not-met",
    "a require() that this binding of meta parameters does not satisfy",
    "The condition is known at compile time and false, so this combination of meta parameters\n"
    "is not a program.",
)
META_DOMAIN = _code(
    "CK108",
    "meta-outside-domain",
    "a meta parameter bound to a value outside its domain",
    "`meta(...)` lists the values that may be chosen.",
)
WRONG_PLACE = _code(
    "CK109",
    "wrong-place",
    "a construct that is not allowed here",
    "Resources are declared at kernel level, before the roles; primitives with effects stand in\n"
    "the body of a role.",
)
TYPE_ERROR = _code(
    "CK110",
    "type-error",
    "an operand of the wrong type",
    "Every primitive states the types of its operands: `cake primitives NAME`.",
)
BAD_RESOURCE = _code(
    "CK111",
    "bad-resource",
    "a resource declared with a value it cannot have",
    "The message names the value and the limit.",
)
UNSUPPORTED_TARGET = _code(
    "CK201",
    "target-lacks",
    "a primitive that the target does not have",
    "Targets are exact: nothing is lowered silently for another architecture. The help line\n"
    "lists targets that have the instruction.",
)
UNKNOWN_TARGET = _code(
    "CK202",
    "unknown-target",
    "a target that CAKE does not know",
    "`cake targets` lists the targets.",
)
WRONG_UNIT = _code(
    "CK203",
    "wrong-unit",
    "a primitive in a role of the wrong kind of unit",
    "wgmma needs a warpgroup (`role(warpgroups=n)`); mma.sync and ldmatrix run in warps\n"
    "(`role(warps=n)`).",
)
