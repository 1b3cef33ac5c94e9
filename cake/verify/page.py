"""``docs/rules.md``: every rule with its page and examples. Run ``python -m cake.verify.page``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cake.verify import all_rules
from cake.verify.rule import Rule

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"

_HEAD = """\
# Rules of the verifier

Generated from the rules by `python -m cake.verify.page`; do not edit. Each rule is one file of
`cake/verify/rules`, whose docstring is the page here and in `cake explain CODE`. The bad example is
reported by exactly this rule, on the line that carries its code; the good one is accepted by all
rules. Both run as tests. How the verifier works: `docs/design/verifier.md`.

Rules marked *contested* report what the manual asks for and what established kernels do without. At
level `idiom` they are notes.
"""


def page() -> str:
    """The text of ``docs/rules.md``."""
    return "\n".join([_HEAD, *_table(), *(line for r in all_rules() for line in _rule(r))]) + "\n"


def _table() -> Iterator[str]:
    yield "| Code | Name | Gate | Severity |"
    yield "|---|---|---|---|"
    for r in all_rules():
        contested = ", contested" if r.contested else ""
        link = f"[{r.code}](#{r.code.lower()}-{r.name})"
        yield f"| {link} | {r.name} | {r.gate} | {r.entry.severity}{contested} |"


def _rule(r: Rule) -> Iterator[str]:
    yield f"\n## {r.code} {r.name}\n"
    yield f"*{r.gate}, layer {r.layer}, {r.entry.severity}{', contested' if r.contested else ''}*\n"
    yield r.entry.page
    for title, text in (("Bad", r.bad), ("Good", r.good)):
        yield f"\n{title}:\n\n```python\n{text.strip()}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
