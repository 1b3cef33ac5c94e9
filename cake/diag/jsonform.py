"""Diagnostics as JSON, for agents and for storage."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from cake.diag.catalogue import Severity
from cake.diag.model import Diagnostic, Edit, Fix, Related, Span


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The fields as plain JSON values, with ``name`` and ``fingerprint`` beside them.

    Places have the form ``{"file", "line", "col", "end_line", "end_col"}``, all from 1, the end
    column exclusive. An absent span, label or fix is ``null``, never left out.
    """
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "stage": diagnostic.stage,
        "message": diagnostic.message,
        "span": asdict(diagnostic.span) if diagnostic.span else None,
        "label": diagnostic.label,
        "related": [asdict(related) for related in diagnostic.related],
        "facts": dict(diagnostic.facts),
        "helps": list(diagnostic.helps),
        "fix": _fix_to_json(diagnostic.fix) if diagnostic.fix else None,
        "fingerprint": diagnostic.fingerprint,
    }


def from_json(data: Mapping[str, Any]) -> Diagnostic:
    """The diagnostic that ``to_json`` wrote.

    ``name`` and ``fingerprint`` are derived again, not read. Raises ``ValueError`` for a record
    that lacks a field, or whose severity, places, facts or fix are not of the form written.
    """
    try:
        return Diagnostic(
            code=data["code"],
            severity=Severity(data["severity"]),
            stage=data["stage"],
            message=data["message"],
            span=Span(**data["span"]) if data["span"] is not None else None,
            label=data["label"],
            related=tuple(
                Related(span=Span(**related["span"]), message=related["message"])
                for related in data["related"]
            ),
            facts=data["facts"],
            helps=tuple(data["helps"]),
            fix=_fix_from_json(data["fix"]) if data["fix"] is not None else None,
        )
    except KeyError as error:
        raise ValueError(f"not a diagnostic: field {error} is missing") from error
    except (TypeError, AttributeError) as error:
        raise ValueError(f"not a diagnostic: {error}") from error


def json_lines(diagnostics: Iterable[Diagnostic]) -> str:
    """One JSON object a line, each line ended; the empty text for no diagnostics."""
    return "".join(json.dumps(to_json(found), allow_nan=False) + "\n" for found in diagnostics)


def _fix_to_json(fix: Fix) -> dict[str, Any]:
    return {
        "message": fix.message,
        "applicability": fix.applicability,
        "edits": [asdict(edit) for edit in fix.edits],
    }


def _fix_from_json(data: Mapping[str, Any]) -> Fix:
    return Fix(
        message=data["message"],
        applicability=data["applicability"],
        edits=tuple(
            Edit(span=Span(**edit["span"]), replacement=edit["replacement"])
            for edit in data["edits"]
        ),
    )
