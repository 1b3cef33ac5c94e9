"""Host expressions: values against Python's own, and everything outside the grammar refused."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.codegen.hostexpr import MAX_TEXT, HostExpr, HostExprError

NAMES = ("M", "N", "device_sms")

Pair = tuple[str, str]  # an expression of the grammar, and Python text with the same value


def pairs() -> st.SearchStrategy[Pair]:
    def same(template: str, *inner: Pair) -> Pair:
        return template.format(*(p[0] for p in inner)), template.format(*(p[1] for p in inner))

    def extend(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
        operators = st.sampled_from(["+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">="])
        functions = st.sampled_from(["min", "max", "cdiv"])
        return st.one_of(
            st.builds(lambda op, a, b: same(f"({{}} {op} {{}})", a, b), operators, inner, inner),
            st.builds(lambda f, a, b: same(f"{f}({{}}, {{}})", a, b), functions, inner, inner),
            st.builds(lambda a, b, c: same("({} <= {} < {})", a, b, c), inner, inner, inner),
            st.builds(lambda a: same("(-{})", a), inner),
            st.builds(lambda a: same("(not {})", a), inner),
            st.builds(logical, st.sampled_from(["and", "or"]), inner, inner),
        )

    leaves = st.integers(0, 1 << 40).map(str) | st.sampled_from(NAMES)
    return st.recursive(leaves.map(lambda leaf: (leaf, leaf)), extend, max_leaves=12)


def logical(op: str, a: Pair, b: Pair) -> Pair:
    return f"({a[0]} {op} {b[0]})", f"int(bool({a[1]} {op} {b[1]}))"


def exact_cdiv(a: int, b: int) -> int:
    return math.ceil(Fraction(a, b))


@given(pair=pairs(), values=st.tuples(*[st.integers(-(1 << 33), 1 << 33)] * 3))
def test_agrees_with_python(pair: Pair, values: tuple[int, ...]) -> None:
    text, python_text = pair
    env = dict(zip(NAMES, values, strict=True))
    try:
        expected = eval(python_text, {"cdiv": exact_cdiv}, env)
    except ZeroDivisionError:
        with pytest.raises(HostExprError, match="division by zero"):
            HostExpr(text).evaluate(env)
        return
    actual = HostExpr(text).evaluate(env)
    assert type(actual) is int
    assert actual == expected


def test_logical_operators_give_truth_values_and_short_circuit() -> None:
    guard = HostExpr("N == 0 or M % N == 0")
    assert guard.evaluate({"M": 12, "N": 0}) == 1
    assert guard.evaluate({"M": 12, "N": 5}) == 0
    assert HostExpr("7 and 5").evaluate({}) == 1
    assert HostExpr("M != 0 and 8 // M > 1").evaluate({"M": 0}) == 0


def test_names_and_equality() -> None:
    expr = HostExpr(" cdiv(M, 128) * N ")
    assert expr.names == {"M", "N"}
    assert expr == HostExpr("cdiv(M, 128) * N")
    assert expr != HostExpr("cdiv(M, 64) * N")
    assert len({expr, HostExpr("cdiv(M, 128) * N")}) == 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("__import__('os').system('true')", "__import__"),
        ("M + N.real", "N.real"),
        ("1 + M ** 2", "M ** 2"),
        ("M + 1.5", "1.5"),
        ("M + True", "True"),
        ("M if N else 2", "M if"),
        ("M + [1][0]", "[1]"),
        ("2 * min(M)", "min(M)"),
        ("2 * cdiv(M, N, 2)", "cdiv("),
        ("1 + max(M, key=N)", "max("),
        ("M + min(*N)", "min("),
        ("1 * (M in N)", "M in N"),
        ("1 + (M := 2)", "M :="),
        ("M / 2", "M / 2"),
    ],
)
def test_refuses_what_is_outside_the_grammar(text: str, place: str) -> None:
    with pytest.raises(HostExprError) as caught:
        HostExpr(text)
    offset = caught.value.offset
    assert offset <= text.index(place) + len(place)
    lines = str(caught.value).splitlines()
    assert text in lines[-2]
    assert lines[-1].index("^") == lines[-2].index(text) + offset


@pytest.mark.parametrize("text", ["", "(", "M +", "1 2", "M\nN", "9" * 5000, "é + 1", "(" * 300])
def test_malformed_text_is_an_error_of_its_own_kind(text: str) -> None:
    with pytest.raises(HostExprError):
        HostExpr(text)


def test_deep_nesting_is_refused_and_does_not_crash() -> None:
    with pytest.raises(HostExprError):
        HostExpr("-" * (MAX_TEXT + 1) + "1")
    deep = "(" * 150 + "M" + " + 1)" * 150
    assert HostExpr(deep).evaluate({"M": 0}) == 150


def test_missing_name_is_named_with_the_known_ones() -> None:
    with pytest.raises(HostExprError) as caught:
        HostExpr("M + K").evaluate({"M": 1, "N": 2})
    assert "no value for `K`" in str(caught.value)
    assert "known names: M, N" in str(caught.value)
    assert caught.value.offset == 4


def test_division_by_zero_gives_the_values() -> None:
    with pytest.raises(HostExprError, match="division by zero with M = 4, N = 0"):
        HostExpr("cdiv(M, N)").evaluate({"M": 4, "N": 0})
