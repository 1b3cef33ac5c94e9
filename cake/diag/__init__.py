"""Diagnostics: the one type in which every stage of CAKE reports what it found.

A check defines its code once (``define``), reports ``Diagnostic.of(code, message, span)`` into a
``Diagnostics`` collection, and leaves the form (text, JSON lines, explain page) to this package.
"""

from cake.diag.catalogue import (
    Catalogue,
    Code,
    Severity,
    UnknownCodeError,
    all_codes,
    define,
    lookup,
)
from cake.diag.collector import CakeError, Diagnostics
from cake.diag.edits import apply_edits
from cake.diag.explain import explain
from cake.diag.jsonform import from_json, json_lines, to_json
from cake.diag.model import Applicability, Diagnostic, Edit, Fact, Fix, Related, Span
from cake.diag.render import Sources, render_all, render_text, summary_line

__all__ = [
    "Applicability",
    "CakeError",
    "Catalogue",
    "Code",
    "Diagnostic",
    "Diagnostics",
    "Edit",
    "Fact",
    "Fix",
    "Related",
    "Severity",
    "Sources",
    "Span",
    "UnknownCodeError",
    "all_codes",
    "apply_edits",
    "define",
    "explain",
    "from_json",
    "json_lines",
    "lookup",
    "render_all",
    "render_text",
    "summary_line",
    "to_json",
]
