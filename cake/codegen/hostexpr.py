"""Expressions that the host evaluates at launch: grid sizes, guards, workspace sizes, box bounds.

The text is a small part of Python's expression grammar::

    expr := int | name | expr (+ | - | * | // | %) expr | -expr
          | expr (== | != | < | <= | > | >=) expr ...      chained as in Python
          | expr and expr | expr or expr | not expr        short-circuit, value 0 or 1
          | cdiv(expr, expr) | min(expr, ...) | max(expr, ...)

It is parsed by :mod:`ast`, checked against that list and compiled to closures. It is never handed
to ``eval``: the text may come from a file on disk or from a candidate that nobody trusts.
Division rounds towards minus infinity, as Python's ``//`` does.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

Env = Mapping[str, int]
_Closure = Callable[[Env], int]

MAX_TEXT = 4096  # Deep nesting costs Python stack; no launch expression comes near this length.

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


# name -> (function, least number of arguments, greatest number of arguments)
_FUNCTIONS: dict[str, tuple[Callable[..., int], int, int]] = {
    "cdiv": (_cdiv, 2, 2),
    "min": (min, 2, 16),
    "max": (max, 2, 16),
}


class HostExprError(ValueError):
    """A host expression that is malformed, or that cannot be evaluated.

    The message shows the text with a caret below the offending place; ``text`` and ``offset``
    (characters from the start) carry the same place for tools.
    """

    def __init__(self, text: str, offset: int, problem: str) -> None:
        self.text = text
        self.offset = offset
        self.problem = problem
        super().__init__(f"{problem}\n    {text}\n    {' ' * offset}^")


class HostExpr:
    """A parsed host expression; equal to another one with the same text.

    ``names`` are the names that :meth:`evaluate` needs. Raises :class:`HostExprError` when the
    text is not in the grammar of this module.
    """

    __slots__ = ("_closure", "names", "text")

    text: str
    names: frozenset[str]

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        self.names, self._closure = _parse(self.text)

    def evaluate(self, env: Env) -> int:
        """The value under ``env``; conditions give 0 or 1.

        Raises :class:`HostExprError` for a name that ``env`` lacks and for division by zero.
        """
        try:
            return self._closure(env)
        except KeyError as missing:
            name = missing.args[0]
            problem = f"no value for `{name}`; known names: {_listed(env)}"
            raise HostExprError(self.text, max(self.text.find(str(name)), 0), problem) from None
        except ZeroDivisionError:
            values = ", ".join(f"{n} = {env[n]}" for n in sorted(self.names)) or "no names"
            raise HostExprError(self.text, 0, f"division by zero with {values}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostExpr) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"HostExpr({self.text!r})"


def _listed(env: Env) -> str:
    return ", ".join(sorted(env)) or "none"


def _parse(text: str) -> tuple[frozenset[str], _Closure]:
    if len(text) > MAX_TEXT:
        raise HostExprError(
            text[:60] + "...", 0, f"{len(text)} characters; the limit is {MAX_TEXT}"
        )
    if not text.isascii():
        raise HostExprError(text, 0, "only ASCII text is allowed")
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        offset = max((error.offset or 1) - 1, 0)
        raise HostExprError(text, offset, f"not an expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise HostExprError(text, 0, f"not an expression: {error}") from None
    compiler = _Compiler(text)
    try:
        closure = compiler.compile(tree.body)
    except RecursionError:
        raise HostExprError(text, 0, "nested too deeply") from None
    return frozenset(compiler.names), closure


class _Compiler:
    """Turns the ast of one expression into nested closures."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: set[str] = set()

    def fail(self, node: ast.AST, problem: str) -> HostExprError:
        return HostExprError(self.text, getattr(node, "col_offset", 0), problem)

    def compile(self, node: ast.expr) -> _Closure:
        match node:
            case ast.Constant(value=value) if type(value) is int:
                return _constant(value)
            case ast.Name(id=name):
                self.names.add(name)
                return operator.itemgetter(name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _binary(_BINARY[type(op)], self.compile(left), self.compile(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.compile(operand)
                return lambda env: -inner(env)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.compile(operand)
                return lambda env: int(not inner(env))
            case ast.BoolOp(op=op, values=values):
                return _logical(isinstance(op, ast.And), [self.compile(v) for v in values])
            case ast.Compare():
                return self.comparison(node)
            case ast.Call():
                return self.call(node)
        allowed = "integers, names, + - * // %, comparisons, and/or/not, cdiv, min, max"
        raise self.fail(node, f"`{type(node).__name__}` is not allowed; use {allowed}")

    def comparison(self, node: ast.Compare) -> _Closure:
        operands = [self.compile(operand) for operand in (node.left, *node.comparators)]
        tests: list[_Closure] = []
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if type(op) not in _COMPARE:
                raise self.fail(node, f"comparison `{type(op).__name__}` is not allowed")
            tests.append(_comparison(_COMPARE[type(op)], left, right))
        return tests[0] if len(tests) == 1 else _logical(True, tests)

    def call(self, node: ast.Call) -> _Closure:
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
            raise self.fail(node, f"only {', '.join(_FUNCTIONS)} can be called")
        function, least, greatest = _FUNCTIONS[node.func.id]
        if node.keywords or not least <= len(node.args) <= greatest:
            wanted = str(least) if least == greatest else f"{least} to {greatest}"
            raise self.fail(node, f"`{node.func.id}` takes {wanted} positional arguments")
        arguments = [self.compile(argument) for argument in node.args]
        if len(arguments) == 2:
            return _binary(function, *arguments)
        return lambda env: function(*[argument(env) for argument in arguments])


def _constant(value: int) -> _Closure:
    return lambda env: value


def _binary(function: Callable[[int, int], int], left: _Closure, right: _Closure) -> _Closure:
    return lambda env: function(left(env), right(env))


def _comparison(function: Callable[[int, int], bool], left: _Closure, right: _Closure) -> _Closure:
    return lambda env: int(function(left(env), right(env)))


def _logical(conjunction: bool, terms: list[_Closure]) -> _Closure:
    if conjunction:
        return lambda env: int(all(term(env) for term in terms))
    return lambda env: int(any(term(env) for term in terms))
