"""`cake explain`: the page of a finding."""

from __future__ import annotations

import sys

import click

from cake.cli.options import cake_command
from cake.cli.output import Output, colored
from cake.cli.status import Status
from cake.codes import explain
from cake.diag import UnknownCodeError, lookup


@cake_command("explain")
@click.argument("code")
def command(out: Output, code: str) -> Status:
    """Print the page of a finding.

    CODE is a code (CK412) or its name, in any case. docs/codes.md has all of them.
    """
    try:
        page = explain(code)
    except UnknownCodeError as error:
        raise click.UsageError(f"{error}; docs/codes.md lists all") from None
    found = lookup(code)
    if colored(sys.stdout) and not out.as_json:
        from rich.console import Console
        from rich.markdown import Markdown

        Console(width=100).print(Markdown(page))
    else:
        out.line(page.rstrip("\n"))
    entries = {
        "code": found.code,
        "name": found.name,
        "severity": found.severity.value,
        "stage": found.stage,
        "summary": found.summary,
        "page": page,
    }
    return out.finish(Status.ACCEPTED, entries)
