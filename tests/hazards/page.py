"""``docs/hazards.md``: what shows each hazard. Run ``python -m tests.hazards.page > FILE``."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hazards.catalogue import Case, cases, corpus
from tests.hazards.entries import ENTRIES, Entry
from tests.hazards.verdicts import objected, run, said

_HEAD = """\
# Hazards

Made by `python -m tests.hazards.page > docs/hazards.md` from the corpus in `tests/hazards`; do not
edit. The names are those of the project's catalogue of hazards of hardware-explicit GPU kernels.
Each hazard that a schedule can have is shown by bad schedules, which are refused, and by good
ones, which are not; both run as tests. They are examples of a rule (`docs/rules.md`), tests of the
phase simulation (`tests/verify_phase`), or files of `tests/hazards/schedules`.
"""


def page() -> str:
    """The text of ``docs/hazards.md``."""
    shown = [e for e in ENTRIES if e.expressible]
    never = [e for e in ENTRIES if e.never]
    missing = [e for e in ENTRIES if e.missing]
    refused = sum(not c.good for c in corpus())
    return "\n".join(
        [
            _HEAD,
            f"{len(ENTRIES)} hazards: {len(shown)} are shown by {refused} bad and"
            f" {len(corpus()) - refused} good schedules, {len(never)} cannot be written, and"
            f" {len(missing)} need a primitive that is not there yet.",
            "\n## Shown by schedules\n",
            *_table(("hazard", "schedules", "found as"), (_shown(e) for e in shown)),
            "\n## Impossible by construction\n",
            *_table(("hazard", "why"), ((e.name, e.never) for e in never)),
            "\n## Waiting for a primitive\n",
            *_table(("hazard", "primitive"), ((e.name, e.missing) for e in missing)),
        ]
    )


def _shown(entry: Entry) -> tuple[str, str, str]:
    own = tuple(cases(entry))
    sources = dict.fromkeys(_source(c) for c in own)
    found = dict.fromkeys(_found(c) for c in own if not c.good)
    return entry.name, ", ".join(sources), ", ".join(found)


def _source(case: Case) -> str:
    kind, _, code = case.source.partition(" ")
    return f"[{code}](rules.md)" if kind == "rule" else f"`{case.source}`"


def _found(case: Case) -> str:
    """The code of the first finding, or that it is not found yet."""
    verdict = said(case)
    code = case.source.removeprefix("rule ")
    if verdict.errors:
        return next((d.code for d in verdict.errors if d.code == code), verdict.errors[0].code)
    if objected(case, verdict):
        return code
    ran = run(case) if any(e.runtime for e in ENTRIES if e.name == case.hazard) else ""
    return f"{ran} (simulator)" if ran else "**not found yet**"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(row) + " |"


if __name__ == "__main__":
    print(page())
