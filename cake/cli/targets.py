"""`cake targets`: the figures of the architectures."""

from __future__ import annotations

import click

from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.status import Status
from cake.targets import UnknownTarget, get, names
from cake.targets.page import Row, describe

_COLUMNS = ("smem_per_cta", "smem_per_sm", "warps_per_sm", "ctas_per_sm", "cluster_max_portable")


@cake_command("targets")
@click.argument("name", required=False)
def command(out: Output, name: str | None) -> Status:
    """List the targets, or print the figures of one.

    Every figure has its source. Targets are exact: nothing is lowered silently for another
    architecture.
    """
    if name is not None:
        return _one(out, name)
    targets = [get(n) for n in names()]
    rows = []
    for target in targets:
        figures = {row.name: row.text for row in describe(target)}
        parts = ", ".join(part.name for part in target.parts)
        rows.append((target.name, *(figures[c] for c in _COLUMNS), parts))
    out.table(("target", *_COLUMNS, "devices"), rows)
    entries = [{"name": t.name, "devices": [p.name for p in t.parts]} for t in targets]
    return out.finish(Status.ACCEPTED, {"targets": entries})


def _one(out: Output, name: str) -> Status:
    try:
        target = get(name)
    except UnknownTarget as error:
        raise click.UsageError(str(error)) from None
    rows = describe(target)
    out.table(
        ("figure", "value", "source"), [(row.name, row.text, str(row.source)) for row in rows]
    )
    return out.finish(Status.ACCEPTED, {"name": name, "figures": [_figure(row) for row in rows]})


def _figure(row: Row) -> dict[str, object]:
    return {
        "name": row.name,
        "value": row.value,
        "unit": row.unit,
        "text": row.text,
        "source": str(row.source),
    }
