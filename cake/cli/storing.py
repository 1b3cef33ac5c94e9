"""The judge's store on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from cake.cli.findings import STORE_UNUSABLE
from cake.cli.output import Output
from cake.cli.status import Failure, Status
from cake.diag import Diagnostic
from cake.judge import Evaluation, Verdict
from cake.judge.store import Store, StoreError, default_folder

F = TypeVar("F", bound=Callable[..., object])


def store_option(function: F) -> F:
    """``--store FOLDER``."""
    option = click.option(
        "--store",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where verdicts are kept. By default $CAKE_STORE_DIR, else the user's data folder.",
    )
    return option(function)


@contextmanager
def opened(folder: Path | None) -> Iterator[Store]:
    """The store; what it cannot do becomes a finding."""
    try:
        with Store(folder or default_folder()) as store:
            yield store
    except StoreError as reason:
        finding = Diagnostic.of(
            STORE_UNUSABLE, str(reason), helps=("name another: --store FOLDER",)
        )
        raise Failure(Status.ENVIRONMENT, finding) from None


def keep(out: Output, folder: Path | None, request: Evaluation, verdict: Verdict) -> int:
    """Keep a verdict and say under which number; the number."""
    with opened(folder) as store:
        number = store.add(request, verdict)
        out.line(f"kept as verdict {number} in {store.folder}")
    return number
