"""The application: commands loaded when they are called, and every way to end with a status."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from cake.cli.findings import MODULE_MISSING
from cake.cli.output import Output
from cake.cli.signals import interruption, terminable
from cake.cli.status import Failure, Status, status_of
from cake.diag import CakeError, Diagnostic

COMMANDS = {
    "check": "Check a schedule file: language, types, rules.",
    "simulate": "Run a schedule on the CPU and look for faults.",
    "show": "Print a schedule as IR, CUDA, PTX or SASS.",
    "build": "Compile a schedule to a cubin, with facts and findings.",
    "judge": "Decide whether a kernel computes what a workload asks for.",
    "bench": "Time a kernel against a baseline on this machine's GPU.",
    "compare": "Is A faster than B, by how much, and how sure is that?",
    "replay": "Judge a stored candidate again, with the seeds of then.",
    "selftest": "Check the judge by cheating and by honest candidates.",
    "evolve": "Search for the fastest schedule of a workload.",
    "workload": "List the workloads, or make the files of a new one.",
    "explain": "Print the page of a finding.",
    "rules": "List the rules of the verifier.",
    "primitives": "List the primitives of the language, or print one.",
    "targets": "List the targets, or print the figures of one.",
    "doctor": "Say what this machine can do, and what to install for the rest.",
}
"""Every command, in the module of its name below this package."""


class Application(click.Group):
    """`cake`: a group that imports a command when it is called, and owns the exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"cake.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> Any:
        """Run, and leave the process with the command's status."""
        for stream in (sys.stdout, sys.stderr):
            # A terminal of another encoding shows `?` for what it lacks; it is no reason to fail.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        with terminable():
            status = self.run(list(sys.argv[1:] if args is None else args))
        sys.exit(status)

    def run(self, args: list[str]) -> int:
        """The status of the command in ``args``."""
        name = next((arg for arg in args if not arg.startswith("-")), "")
        out = Output(name, as_json="--json" in args)
        try:
            status = self._status(args, out)
            # What stays in the buffer would be lost, or fail, after the status is decided.
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError as error:
            _abandon_stdout()
            if error.errno == errno.EPIPE:
                return Status.PIPE_CLOSED
            what = f"cannot use {error.filename}" if error.filename else "cannot write the output"
            click.echo(f"error: {what}: {error.strerror or error}", err=True)
            return Status.ENVIRONMENT
        return status

    def _status(self, args: list[str], out: Output) -> int:
        try:
            with self.make_context("cake", args) as ctx:
                return int(self.invoke(ctx) or 0)
        except click.exceptions.Exit as end:
            return end.exit_code
        except click.UsageError as error:
            return _refused(error, out)
        except (KeyboardInterrupt, click.Abort):
            status = interruption()
            click.echo(f"\n{status.word}", err=True)
            return out.finish(status)
        except Failure as failure:
            return _failed(failure.status, failure.diagnostics, out, failure.sources)
        except CakeError as error:
            return _failed(status_of(error.diagnostics), error.diagnostics, out, error.sources)
        except OSError:
            raise
        except RecursionError:
            return _failed(Status.REJECTED, [_too_deep()], out)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] == "cake":
                return _fault(error, out)
            return _failed(Status.ENVIRONMENT, [_missing(error)], out)
        except Exception as error:
            return _fault(error, out)


def _refused(error: click.UsageError, out: Output) -> Status:
    """Wrong use: click's message, or a document that holds it."""
    if out.as_json:
        return out.finish(Status.USAGE, {"message": error.format_message()})
    error.show()
    return Status.USAGE


def _failed(
    status: Status,
    diagnostics: Sequence[Diagnostic],
    out: Output,
    sources: Mapping[str, str] | None = None,
) -> Status:
    """The findings with the lines that they speak of, and the document."""

    def source(file: str) -> str | None:
        if sources and file in sources:
            return sources[file]
        with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as text:
            return text.read()
        return None

    out.findings(diagnostics, source, err=True)
    return out.finish(status, diagnostics=diagnostics)


def _too_deep() -> Diagnostic:
    """Every stage walks expressions recursively; Python bounds the depth."""
    limit = sys.getrecursionlimit()
    return Diagnostic.of(
        import_module("cake.lang.codes").TOO_LARGE,
        "an expression, or blocks within blocks, nest deeper than the compiler can follow",
        facts={"recursion_limit": limit},
        helps=("assign parts of a long expression to names of their own",),
    )


def _missing(error: ModuleNotFoundError) -> Diagnostic:
    return Diagnostic.of(
        MODULE_MISSING,
        f"the Python package {error.name} is not installed for {sys.executable}",
        facts={"module": error.name, "python": sys.executable},
        helps=("pip install cake-ir",),
    )


def _fault(error: Exception, out: Output) -> Status:
    """An error that nobody foresaw: never to be taken for a verdict on the program."""
    traceback.print_exc()
    message = "this is a fault of CAKE, not of your input; please report it with the lines above"
    click.echo(f"\nerror: {message}", err=True)
    return out.finish(Status.FAULT, {"message": f"{type(error).__name__}: {error}"})


def _abandon_stdout() -> None:
    """Send what is still buffered nowhere: flushing it at exit would fail once more."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
