"""A run in figures: the funnel, the best candidate, and ``summary.json``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cake.evolve.config import Best, Stopped
from cake.evolve.ranking import ranked
from cake.evolve.setting import Setting
from cake.evolve.store import Store

SUMMARY_VERSION = 1

FUNNEL = (
    "points",
    "unscreened",
    "invalid",
    "unfit",
    "duplicate",
    "pruned",
    "kept",
    "rejected",
    "simulation",
    "incorrect",
    "build_failed",
    "crashed",
    "hang",
    "judge",
    "passed",
    "unevaluated",
)
"""Where candidates end, in order: all points; those that the screening did not reach in its time;
four ways out of the screening; those kept; seven
ways to fail an evaluation; those that passed; those that the budget left."""


def funnel(store: Store) -> dict[str, int]:
    """Counts of candidates by :data:`FUNNEL`, zeros included."""
    screened = Counter(c.status for c in store.candidates())
    evaluated = Counter(e.status for e in store.evaluations())
    counts = dict.fromkeys(FUNNEL, 0) | screened | evaluated
    counts["unscreened"] = int(store.fact("unscreened") or 0)
    counts["points"] = sum(screened.values()) + counts["unscreened"]
    counts["unevaluated"] = screened["kept"] - sum(evaluated.values())
    return {name: counts[name] for name in FUNNEL}


def best(store: Store) -> Best | None:
    """The best candidate so far, None if nothing passed."""
    found = ranked(store)
    if not found:
        return None
    row = store.candidate(found[0].candidate)
    assert row.digest is not None
    assert found[0].seconds is not None
    return Best(
        candidate=row.id,
        variant=row.variant,
        meta=row.meta,
        digest=row.digest,
        seconds=found[0].seconds,
        measured=found[0].measured is not None,
        confirmed=row.id in store.confirmations(),
    )


def summary(store: Store, stopped: Stopped, files: list[str]) -> dict[str, Any]:
    """The content of ``summary.json``; paths are relative to the run's folder."""
    setting, winner = store.setting, best(store)
    sessions = store.sessions()
    return {
        "version": SUMMARY_VERSION,
        "workload": setting.workload,
        "target": setting.target,
        "shape": dict(setting.case.shape),
        "dtype": setting.case.dtype,
        "device": setting.device,
        "estimates_for": setting.part,
        "seed": setting.seed,
        "stopped": stopped,
        "funnel": funnel(store),
        "evaluations": len(store.evaluations()),
        "seconds": store.seconds_spent(),
        "sessions": len(sessions),
        "environment": sessions[-1]["environment"] if sessions else {},
        "best": None if winner is None else _best(store, setting, winner),
        "files": files,
    }


def _best(store: Store, setting: Setting, winner: Best) -> dict[str, Any]:
    row = next(e for e in store.evaluations() if e.candidate == winner.candidate)
    return {
        "candidate": winner.candidate,
        "variant": winner.variant,
        "meta": dict(winner.meta),
        "digest": winner.digest,
        "ms": winner.seconds * 1e3,
        "measured": winner.measured,
        "confirmed": winner.confirmed,
        "estimated_ms": None if row.estimated is None else row.estimated * 1e3,
        "bound": row.record.get("bound"),
        "registers": row.record.get("registers"),
        "spill_bytes": row.spill_bytes,
        "tflops": setting.problem.flops / winner.seconds / 1e12,
        "gbytes_per_second": setting.problem.bytes_moved / winner.seconds / 1e9,
    }
