"""Figures of the verifier from the fates of mutants and the verdicts on generated schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.verifier.equivalent import argument
from benchmarks.verifier.judge import STATIC
from benchmarks.verifier.verdicts import counted

Record = dict[str, Any]
EXAMPLES = 3
"""Texts kept of each kind of wrong verdict on generated schedules."""


def figures(
    fates: Sequence[Record], valid: Sequence[Record], unsafe: Sequence[Record]
) -> dict[str, Any]:
    """The content of docs/perf/verifier.json.

    ``kill_rate`` and ``static_kill_rate`` are shares of the mutants that are not argued to be
    equivalent; ``static_kill_rate_unsafe`` leaves out those that only compute something else.
    ``localisation`` is the share of static kills with a place that is the mutated
    statement or its partner. ``unsafe_accepted`` counts verdicts `accepted`, not `incomplete`.
    """
    # A text that was thrown twice is one schedule.
    valid, unsafe = _different(valid), _different(unsafe)
    rows = [{**f, "argument": f["equivalent"] or argument(f)} for f in fates]
    # What the operator keeps is equivalent; a single argument counts only for a survivor.
    real = [r for r in rows if not r["equivalent"] and not (_alive(r) and r["argument"])]
    static = [r for r in real if r["layer"] in STATIC]
    # A wrong result of an otherwise safe program is beyond layers that know no reference.
    unsafe_mutants = [r for r in real if not _alive(r) and r["code"] != "value"]
    false_alarms = [r for r in valid if r["status"] in ("rejected", "refused")]
    accepted = [r for r in unsafe if r["status"] == "accepted"]
    return {
        "mutants": len(rows),
        "equivalent": len(rows) - len(real),
        "kill_rate": _share(sum(not _alive(r) for r in real), len(real)),
        "static_kill_rate": _share(len(static), len(real)),
        "static_kill_rate_unsafe": _share(len(static), len(unsafe_mutants)),
        "valid_generated": len(valid),
        "false_alarms": len(false_alarms),
        "unsafe_generated": len(unsafe),
        "unsafe_accepted": len(accepted),
        "localisation": _share(sum(bool(r["localised"]) for r in static), len(static)),
        "equivalent_rejected": sum(r["layer"] in STATIC for r in rows if r["equivalent"]),
        "operators": _table(rows, lambda r: r["operator"]),
        "layers": dict(Counter(r["layer"] for r in real)),
        "codes": dict(Counter(r["code"] for r in static).most_common()),
        "schedules": _table(rows, lambda r: r["subject"]),
        "valid": counted(valid),
        "unsafe": counted(unsafe),
        "false_alarm_examples": _examples(false_alarms),
        "unsafe_accepted_examples": _examples(accepted),
        "survivors": [_short(r) for r in real if _alive(r)],
        "argued": [_short(r) for r in rows if _alive(r) and r["argument"] and not r["equivalent"]],
        "dynamic": [_short(r) for r in real if r["layer"] == "simulator"],
        "not_localised": [_short(r) for r in static if not r["localised"]],
        "rejected_equivalents": [
            _short(r) for r in rows if r["equivalent"] and r["layer"] in STATIC
        ],
    }


def _different(rows: Sequence[Record]) -> list[Record]:
    return list({r["text"]: r for r in rows}.values())


def _alive(row: Record) -> bool:
    return row["layer"] in ("survivor", "timeout", "crash")


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _table(rows: Sequence[Record], key: Callable[[Record], str]) -> dict[str, dict[str, int]]:
    """Counts of fates per operator or schedule; ``equivalent`` are argued survivors."""
    table: dict[str, Counter[str]] = {}
    for row in rows:
        equivalent = _alive(row) and row["argument"]
        table.setdefault(key(row), Counter())["equivalent" if equivalent else row["layer"]] += 1
    return {name: dict(table[name]) for name in sorted(table)}


def _short(row: Record) -> Record:
    names = ("subject", "operator", "layer", "code", "message", "verdict", "argument", "diff")
    return {name: row[name] for name in names if row[name]}


def _examples(rows: Sequence[Record]) -> list[Record]:
    kept: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        kept.setdefault((row["family"], str(row["fault"])), []).append(row)
    return [r for group in kept.values() for r in group[:EXAMPLES]]
