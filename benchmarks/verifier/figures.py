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

    The headline counts the mutants of operators that make a program unsafe; those that make it
    compute something else are under ``details``. Rates are shares of the mutants that are not
    equivalent; ``localisation`` is the share of static kills with a place that is the mutated
    statement or its partner. ``unsafe_accepted`` counts verdicts ``accepted``, not ``incomplete``.
    """
    rows = [_argued(f) for f in fates]
    hazards = [r for r in rows if not r["values"]]
    values = [r for r in rows if r["values"]]
    false_alarms = [r for r in valid if r["status"] in ("rejected", "refused")]
    accepted = [r for r in unsafe if r["status"] == "accepted"]
    head = rates(hazards)
    return {
        "mutants": head["mutants"],
        "kill_rate": head["kill_rate"],
        "static_kill_rate": head["static_kill_rate"],
        "valid_generated": len(valid),
        "false_alarms": len(false_alarms),
        "unsafe_generated": len(unsafe),
        "unsafe_accepted": len(accepted),
        "localisation": head["localisation"],
        "operators": _table(hazards, lambda r: r["operator"]),
        "layers": dict(Counter(r["layer"] for r in hazards if not r["argument"])),
        "schedules": _table(hazards, lambda r: r["subject"]),
        "details": {
            "hazards": head,
            "values": rates(values),
            "all": rates(rows),
            "value_operators": _table(values, lambda r: r["operator"]),
            "codes": dict(Counter(r["code"] for r in hazards if _static(r)).most_common()),
            "valid": counted(valid),
            "unsafe": counted(unsafe),
            "false_alarm_examples": _examples(false_alarms),
            "unsafe_accepted_examples": _examples(accepted),
            "survivors": [_short(r) for r in rows if _alive(r) and not r["argument"]],
            "argued": [_short(r) for r in rows if r["argument"] and not r["equivalent"]],
            "decided": dict(Counter(r["equivalent"] for r in rows if r["equivalent"])),
            "dynamic": [_short(r) for r in hazards if r["layer"] == "simulator"],
            "not_localised": [_short(r) for r in rows if _static(r) and not r["localised"]],
            "rejected_equivalents": [_short(r) for r in rows if r["equivalent"] and _static(r)],
        },
    }


def rates(rows: Sequence[Record]) -> dict[str, Any]:
    """Counts and rates of some mutants.

    ``undecided``: static layers neither object nor accept, that is, the build asks for a contract
    or a guard; such a mutant counts as killed only if the simulator kills it.
    """
    real = [r for r in rows if not r["argument"]]
    static = [r for r in real if _static(r)]
    alive = [r for r in real if _alive(r)]
    return {
        "mutants": len(rows),
        "equivalent": len(rows) - len(real),
        "alive": len(alive),
        "alive_undecided": sum(r["verdict"] == "incomplete" for r in alive),
        "kill_rate": _share(len(real) - len(alive), len(real)),
        "static_kill_rate": _share(len(static), len(real)),
        "localisation": _share(sum(bool(r["localised"]) for r in static), len(static)),
        "equivalent_rejected": sum(bool(r["equivalent"]) and _static(r) for r in rows),
    }


def _argued(fate: Record) -> Record:
    """The fate with the reason why it is equivalent, if it is.

    What an operator or the emitted code decides holds for every fate; the argument of a person is
    about a survivor.
    """
    reason = fate["equivalent"] or (argument(fate) if _alive(fate) else None)
    return {**fate, "argument": reason}


def _static(row: Record) -> bool:
    return row["layer"] in STATIC


def _alive(row: Record) -> bool:
    return row["layer"] in ("survivor", "timeout", "crash")


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _table(rows: Sequence[Record], key: Callable[[Record], str]) -> dict[str, dict[str, int]]:
    """Counts of fates per operator or schedule."""
    table: dict[str, Counter[str]] = {}
    for row in rows:
        fate = "equivalent" if row["argument"] else row["layer"]
        table.setdefault(key(row), Counter())[fate] += 1
    return {name: dict(table[name]) for name in sorted(table)}


def _short(row: Record) -> Record:
    names = ("subject", "operator", "layer", "code", "message", "verdict", "argument", "diff")
    return {name: row[name] for name in names if row[name]}


def _examples(rows: Sequence[Record]) -> list[Record]:
    kept: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        kept.setdefault((row["family"], str(row["fault"])), []).append(row)
    return [r for group in kept.values() for r in group[:EXAMPLES]]
