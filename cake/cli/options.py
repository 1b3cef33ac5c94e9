"""Options that several commands share, and the values that they take."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from cake.cli.output import Output
from cake.cli.status import Status
from cake.targets import names

F = TypeVar("F", bound=Callable[..., Any])


def cake_command(name: str) -> Callable[[Callable[..., Status]], click.Command]:
    """A command of `cake`: takes ``--json`` and hands the function its :class:`Output`."""

    def make(function: Callable[..., Status]) -> click.Command:
        @wraps(function)
        def call(*, as_json: bool, **arguments: Any) -> Status:
            return function(Output(name, as_json=as_json), **arguments)

        flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
        return click.command(name)(flag(call))

    return make


def extent(text: str) -> int:
    """A non-negative integer below 2^31."""
    value = int(text)
    if not 0 <= value < 2**31:
        raise ValueError(text)
    return value


def meta_value(text: str) -> Any:
    """A value of a meta parameter: an int, a float, True, False, an element type, or a string."""
    from cake.ir.dtypes import DTYPES

    if text in ("True", "False"):
        return text == "True"
    if text in DTYPES:
        return DTYPES[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    if not text:
        raise ValueError(text)
    return text


def settings(*flags: str, kind: Callable[[str], Any], wanted: str, help: str) -> Callable[[F], F]:
    """An option that may be given several times, each ``NAME=VALUE``.

    The command gets a dictionary. ``kind`` makes a value of the text and raises ``ValueError``;
    ``wanted`` says what it takes.
    """

    def parse(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for text in given:
            name, equals, value = text.partition("=")
            if not equals or not name.isidentifier():
                raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", ctx, param)
            if name in found:
                raise click.BadParameter(f"{name} is set twice", ctx, param)
            try:
                found[name] = kind(value)
            except ValueError:
                problem = f"{name}: {value!r} is not {wanted}"
                raise click.BadParameter(problem, ctx, param) from None
        return found

    return click.option(*flags, multiple=True, metavar="NAME=VALUE", callback=parse, help=help)


def schedule_options(function: F) -> F:
    """FILE, ``--meta`` and ``--target``, as every command on a schedule file takes them."""
    meta = settings(
        "--meta", kind=meta_value, wanted="a value", help="Bind a meta parameter: NAME=VALUE."
    )
    target = click.option(
        "--target",
        type=click.Choice(names()),
        help="Elaborate for this target in place of the schedule's own.",
    )
    return click.argument("file")(meta(target(function)))


level_option = click.option(
    "--level",
    type=click.Choice(("strict", "idiom")),
    default="strict",
    show_default=True,
    help="idiom: findings that established kernels live with are notes.",
)
