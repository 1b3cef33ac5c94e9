"""The command line: `cake`.

A command lives in the module of its name; :mod:`cake.cli.app` imports it when it is called, so
that `cake --help` loads neither numpy nor the CUDA libraries.
"""

from __future__ import annotations

import click

from cake import __version__
from cake.cli.app import Application

_EPILOG = """\
Exit status: 0 accepted, 1 rejected, 2 wrong use, 3 incomplete, 4 this machine lacks something.
With --json a command prints one JSON document.
"""


@click.group(cls=Application, epilog=_EPILOG)
@click.version_option(__version__, prog_name="cake")
def main() -> None:
    """Check, simulate, build, judge and evolve GPU kernel schedules."""
