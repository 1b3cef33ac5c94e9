"""Source text as lines and offsets, split where the Python parser splits it.

``str.splitlines`` also splits at form feeds and Unicode separators, which would shift every line
number after one.
"""

import re

_LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(source: str) -> list[str]:
    """The lines of ``source`` without their ends; the empty text has one empty line."""
    return _LINE_END.split(source)


def line_starts(source: str) -> list[int]:
    """The offset at which each line of ``source`` starts."""
    return [0, *(end.end() for end in _LINE_END.finditer(source))]
