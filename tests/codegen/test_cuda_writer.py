"""Lines lead back to the author's; definitions appear where they are used."""

from __future__ import annotations

from cake.codegen.cuda_writer import (
    Definition,
    Writer,
    line_places,
    render,
    without_line_directives,
)
from cake.codegen.ptxas import Place
from cake.diag import Span


def at(line: int, file: str = "k.py") -> Span:
    return Span(file=file, line=line, col=1, end_line=line, end_col=2)


def test_every_code_line_has_the_authors_number() -> None:
    w = Writer(at(4))
    w.line("a;")
    w.loc = at(5)
    w.line("b;")
    w.comment("c = d")
    w.line("c;")
    w.line("#pragma unroll")
    source = render(w.lines)
    assert source.splitlines() == [
        '#line 4 "k.py"',
        "a;",
        "b;",
        "// c = d",
        '#line 5 "k.py"',
        "c;",
        '#line 5 "k.py"',
        "#pragma unroll",
    ]
    code = [p.line for p in line_places(source)[:-1]]
    assert code == [4, 5, 6, 5, 5]
    assert without_line_directives(source).splitlines()[2] == "// c = d"


def test_file_names_are_escaped() -> None:
    w = Writer(at(1, 'a "b"\\c.py'))
    w.line("x;")
    source = render(w.lines)
    assert source.startswith('#line 1 "a \\"b\\"\\\\c.py"\n')
    assert line_places(source)[0] == Place(file='a "b"\\c.py', line=1)


def test_comments_cannot_swallow_code() -> None:
    w = Writer(at(1))
    w.comment("a\nb \\")
    assert [line.text for line in w.lines] == ["// a b /"]


def test_unused_definitions_are_left_out() -> None:
    w = Writer(at(1))
    definitions = [
        Definition("a", "int", "1"),
        Definition("b", "int", "a + 1"),
        Definition("c", "int", "b"),
    ]
    with w.headed(definitions):
        w.comment("c")
        w.line("use(b);")
    assert [line.text for line in w.lines] == [
        "const int a = 1;",
        "const int b = a + 1;",
        "// c",
        "use(b);",
    ]


def test_an_equal_block_is_reopened() -> None:
    w = Writer(at(1))
    with w.block("if (leader)"):
        w.line("a;")
    w.comment("next")
    assert w.reopen("if (leader)")
    assert [(line.text, line.depth) for line in w.lines] == [
        ("if (leader) {", 0),
        ("a;", 1),
        ("// next", 1),
    ]
    assert not w.reopen("if (leader)")


def test_else_joins_the_block_before() -> None:
    w = Writer(at(1))
    with w.block("if (a)"):
        w.line("x;")
    with w.block("else"):
        w.line("y;")
    assert [line.text for line in w.lines] == ["if (a) {", "x;", "} else {", "y;", "}"]
