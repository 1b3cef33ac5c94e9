"""The explain page of a code."""

import difflib
import inspect
from collections.abc import Sequence

from cake.diag.catalogue import Code, UnknownCodeError, all_codes, lookup

_SUGGESTIONS = 3


def explain(code_or_name: str) -> str:
    """The Markdown page of a code, given by code or name in any case.

    Only codes whose defining modules are imported are known. Raises ``UnknownCodeError`` with the
    nearest entries as ``suggestions``.
    """
    try:
        entry = lookup(code_or_name)
    except UnknownCodeError as error:
        raise UnknownCodeError(code_or_name, _nearest(code_or_name, all_codes())) from error
    page = inspect.cleandoc(entry.page)
    # A page that is a docstring begins with the summary already.
    body = page if page.startswith(entry.summary) else f"{entry.summary}\n\n{page}"
    return (
        f"# {entry.code}: {entry.name}\n\n"
        f"{entry.severity.capitalize()}, reported by stage `{entry.stage}`.\n\n"
        f"{body}\n"
    )


def _nearest(text: str, entries: Sequence[Code]) -> tuple[Code, ...]:
    """Entries whose name holds ``text``, then those with a similar code or name."""
    spellings = {entry.code.lower(): entry for entry in entries}
    spellings |= {entry.name: entry for entry in entries}
    wanted = text.lower()
    holding = [spelling for spelling in spellings if wanted and wanted in spelling]
    similar = difflib.get_close_matches(wanted, spellings, n=_SUGGESTIONS)
    nearest = dict.fromkeys(spellings[spelling] for spelling in holding + similar)
    return tuple(nearest)[:_SUGGESTIONS]
