"""What a source line looks like on a terminal: safe characters, and columns of known width.

Source text comes from anywhere. Control characters, which could drive the terminal, and direction
marks, which could make code read differently from what it is, are shown as symbols.
"""

import unicodedata
from dataclasses import dataclass

_TAB = " " * 4
# Characters shown of a longer line, and how many of them lead up to the marked place.
_WINDOW = 160
_LEAD = 40

_CUT = "\N{HORIZONTAL ELLIPSIS}"
_CONTROL_PICTURES = 0x2400
_DIRECTION_MARKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLine:
    """A line as shown, of which the terminal columns ``[start, end)``, from 0, are marked."""

    text: str
    start: int
    end: int


def printable(text: str) -> str:
    """``text`` with every character that does not show as itself replaced; newlines stay."""
    return "\n".join("".join(map(_shown, line)) for line in text.split("\n"))


def show_line(line: str, first: int, last: int) -> ShownLine:
    """``line`` ready for printing, with its characters ``[first, last)``, from 0, marked.

    At least one column is marked; a range behind the end of the line marks the column after it.
    """
    first = min(first, len(line))
    last = min(max(last, first), len(line))
    low = max(0, first - _LEAD) if len(line) > _WINDOW else 0
    high = low + _WINDOW
    before = (_CUT if low else "") + printable(line[low:first])
    marked = printable(line[first : min(last, high)])
    after = printable(line[last:high]) + (_CUT if high < len(line) else "")
    start = _columns(before)
    return ShownLine(
        text=before + marked + after, start=start, end=start + max(1, _columns(marked))
    )


def _shown(char: str) -> str:
    if char == "\t":
        return _TAB
    if ord(char) < ord(" "):
        return chr(_CONTROL_PICTURES + ord(char))
    if char in _DIRECTION_MARKS or unicodedata.category(char) in ("Cc", "Cs"):
        return "\N{REPLACEMENT CHARACTER}"
    return char


def _columns(text: str) -> int:
    """Terminal columns of ``text``: none for a combining character, two for a wide one."""
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
