"""Every example of the grammar page is parsed, every refused one is refused as the page says."""

from pathlib import Path
from textwrap import indent

import pytest

from cake.lang.elaborate import parse
from cake.lang.expressions import KERNEL_LEVEL
from tests.docs.sessions import Block, blocks

PAGE = Path(__file__).parents[2] / "docs" / "grammar.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = [block for block in blocks(TEXT) if block.language == "python"]
(FRAME,) = [block.text for block in EXAMPLES if "frame" in block.words]

_BODY = " " * 8 + "...\n"
_FIRST_ROLE = "    feed = role"


def source(block: Block) -> str:
    """The file that an example stands for."""
    if "role" in block.words:
        return FRAME.replace(_BODY, indent(block.text, " " * 8))
    if "kernel" in block.words:
        inserted = indent(block.text, " " * 4) + _FIRST_ROLE
        return FRAME.replace(_BODY, " " * 8 + "pass\n").replace(_FIRST_ROLE, inserted, 1)
    return block.text.replace(_BODY, " " * 8 + "pass\n")


def named(block: Block) -> str:
    return f"line{block.line}"


ACCEPTED = [block for block in EXAMPLES if block.option("refused") is None]
REFUSED = [block for block in EXAMPLES if block.option("refused")]


@pytest.mark.parametrize("block", ACCEPTED, ids=named)
def test_an_example_is_parsed(block: Block) -> None:
    found = parse(source(block), "grammar.md")
    assert [d.message for d in found.diagnostics] == []
    assert found.programs


@pytest.mark.parametrize("block", REFUSED, ids=named)
def test_a_refused_example_is_refused_with_its_code(block: Block) -> None:
    found = parse(source(block), "grammar.md")
    assert {d.code for d in found.diagnostics} == {block.option("refused")}


def test_the_page_names_every_declaration() -> None:
    missing = [name for name in KERNEL_LEVEL if f"{name}(" not in TEXT]
    assert missing == []


@pytest.mark.parametrize(
    "statement",
    [
        "v = f'{a}'",
        "v = {1: 2}",
        "v = {1, 2}",
        "v = (n := 3)",
        "v = await a",
        "v = ids.T.x",
        "try:\n    pass\nfinally:\n    pass",
        "raise ValueError",
        "assert a > 0.0",
        "match lane():\n    case 0:\n        pass",
        "global a",
        "del a",
        "def inner():\n    pass",
        "class Inner:\n    pass",
        "async def inner():\n    pass",
        "import os",
        "for i in range(4):\n    continue",
        "return",
        "v = w = 1",
        "store(y[m, 0], *ids)",
        "store(**ids)",
    ],
)
def test_what_the_page_says_does_not_exist_is_refused(statement: str) -> None:
    block = Block("python", ("role",), statement + "\n", 1)
    found = parse(source(block), "grammar.md")
    assert {d.code for d in found.diagnostics} == {"CK002"}
