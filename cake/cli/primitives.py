"""`cake primitives`: the operations of the language."""

from __future__ import annotations

import difflib
from typing import Any

import click

from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.status import Status
from cake.lang.calls import signature
from cake.lang.page import admitted, documentation, entry, facets, summary
from cake.ops.base import REQUIRED, Primitive, all_primitives, lookup
from cake.targets import names


@cake_command("primitives")
@click.argument("name", required=False)
def command(out: Output, name: str | None) -> Status:
    """List the primitives of the language, or print one.

    With NAME: signature, meaning, parameters, targets, facets and source.
    """
    if name is None:
        primitives = all_primitives()
        out.table(
            ("primitive", "targets", "what it does"),
            [(signature(p), _targets(p), summary(p)) for p in primitives],
        )
        return out.finish(Status.ACCEPTED, {"primitives": [_document(p) for p in primitives]})
    found = lookup(name)
    if found is None:
        known = [p.name for p in all_primitives()]
        near = difflib.get_close_matches(name, known, 3) or [k for k in known if name in k][:3]
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise click.UsageError(f"there is no primitive {name}{hint}")
    out.line(entry(found).rstrip("\n"))
    out.line()
    out.table(("facet", ""), list(facets(found).items()))
    return out.finish(Status.ACCEPTED, _document(found))


def _targets(p: Primitive) -> str:
    targets = admitted(p)
    return "all" if targets == names() else " ".join(targets) or "none"


def _document(p: Primitive) -> dict[str, Any]:
    return {
        "name": p.name,
        "signature": signature(p),
        "doc": documentation(p),
        "params": [
            {
                "name": q.name,
                "kind": q.kind,
                "required": q.default is REQUIRED,
                "default": None if q.default is REQUIRED else q.default,
                "keyword_only": q.keyword_only,
            }
            for q in p.params
        ],
        "units": sorted(p.units),
        "convergent": p.convergent,
        "requires": p.requires,
        "targets": list(admitted(p)),
        "facets": facets(p),
        "holes": dict(p.holes),
        "source": p.source,
    }
