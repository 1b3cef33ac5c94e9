"""Workloads on the command line: which problem is meant, and `cake workload`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from cake.cli.output import Output
from cake.cli.status import Status
from cake.kernels import Misfit
from cake.workloads import (
    Case,
    Contract,
    ContractError,
    Shape,
    UnknownWorkloadError,
    get,
    names,
    problem,
)
from cake.workloads.contract import SHAPE_SETS, Scalar
from cake.workloads.scaffold import ScaffoldError, create

F = TypeVar("F", bound=Callable[..., object])

shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="DIM=N,...",
    help="Extents and parameters of the problem, such as M=256,N=256,K=64.",
)
dtype_option = click.option(
    "--dtype", help="Element types, by the contract's name for them, such as bf16."
)
family_option = click.option(
    "--family", "families", multiple=True, help="A family of inputs of the contract."
)

set_option = click.option(
    "--set", "shape_set", type=click.Choice(SHAPE_SETS), help="All shapes of a set of the contract."
)


def workload_option(*, required: bool) -> Callable[[F], F]:
    """``--workload NAME``."""
    return click.option(
        "--workload",
        type=click.Choice(names()),
        required=required,
        help="The contract that says what is computed.",
    )


@contextmanager
def usage_errors() -> Iterator[None]:
    """Requests that a contract or a schedule's guards do not admit are wrong use."""
    try:
        yield
    except (ContractError, UnknownWorkloadError, Misfit) as error:
        raise click.UsageError(str(error)) from None


def contract_of(name: str) -> Contract:
    """The contract called ``name``."""
    with usage_errors():
        return get(name)


def cases_of(
    contract: Contract,
    shapes: tuple[str, ...],
    dtype: str | None,
    shape_set: str | None = None,
) -> tuple[Case, ...]:
    """The problems asked for: those given, a whole set, or the first of the small ones.

    ``dtype`` chooses among a set; for given shapes it is that of the first small one by default.
    """
    if shapes and shape_set:
        raise click.UsageError("--shape and --set do not go together")
    rows = contract.shapes[shape_set or "small"]
    if shapes:
        chosen = dtype or rows[0].dtype
        cases = tuple(Case(shape=parse_shape(text), dtype=chosen) for text in shapes)
    else:
        cases = tuple(case for case in rows if dtype in (None, case.dtype))
        cases = cases if shape_set else cases[:1]
    if not cases:
        admitted = ", ".join(sorted({case.dtype for case in rows}))
        raise click.UsageError(f"{contract.name} has such shapes of {admitted}, not of {dtype}")
    with usage_errors():
        for case in cases:
            problem(contract, case.shape, case.dtype)
    return cases


def parse_shape(text: str) -> Shape:
    """``M=64,N=128,eps=1e-5`` as a mapping; raises :class:`click.BadParameter`."""
    shape: dict[str, Scalar] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or not name.isidentifier() or not value:
            raise click.BadParameter(f"{part!r} is not of the form DIM=N", param_hint="'--shape'")
        if name in shape:
            raise click.BadParameter(f"{name} is set twice", param_hint="'--shape'")
        shape[name] = _scalar(value)
    return shape


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def shape_text(shape: Mapping[str, Scalar]) -> str:
    """A shape as ``--shape`` takes it."""
    return ",".join(f"{name}={value}" for name, value in shape.items())


@click.group("workload", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> Status | None:
    """List the workloads, or make the files of a new one."""
    if ctx.invoked_subcommand is not None:
        return None
    out = Output("workload", as_json=as_json)
    found = [get(name) for name in names()]
    out.table(("workload", "what"), [(contract.name, contract.title) for contract in found])
    titles = [{"name": contract.name, "title": contract.title} for contract in found]
    return out.finish(Status.ACCEPTED, {"workloads": titles})


@command.command("new")
@click.argument("name")
@click.option("--title", help="What it computes, in a few words.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to make it in. By default the package of this CAKE, where it is found.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def new(name: str, title: str | None, into: Path | None, as_json: bool) -> Status:
    """Make the files of a workload: contract, inputs, reference, shapes.

    What is made is whole and holds, for squares of numbers; change it line by line.
    """
    out = Output("workload", as_json=as_json)
    try:
        folder = create(name, title or f"The workload {name}", into)
    except ScaffoldError as error:
        raise click.UsageError(str(error)) from None
    files = sorted(path.name for path in folder.iterdir())
    out.line(f"made {folder}: {', '.join(files)}")
    out.line("then: cake judge FILE --workload NAME; python -m cake.workloads.page")
    return out.finish(Status.ACCEPTED, {"folder": str(folder), "files": files})
