"""The events that lead to a finding, drawn for a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cake.report.timeline import Kind, Timeline

_STYLES: dict[Kind, str] = {"wait": "cyan", "signal": "green", "work": "", "stuck": "bold red"}


def drawn(t: Timeline, *, width: int, color: bool) -> str:
    """A timeline as text: a column for each actor, time downward, line numbers on the left."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("line", justify="right", style="dim", no_wrap=True)
    for name in t.columns:
        table.add_column(Text(name))
    for s in t.steps:
        cells = [Text() for _ in t.columns]
        cells[s.column] = Text(s.text, style=_STYLES[s.kind])
        table.add_row(str(s.line), *cells)
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=color, no_color=not color)
    console.print(table, highlight=False)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
