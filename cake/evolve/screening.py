"""The screening of a space: every point elaborated and estimated, and the best of them kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from random import Random
from typing import Any

from cake.diag import CakeError, Diagnostic, to_json
from cake.evolve.findings import NO_CANDIDATES, UNIT_FAILED, error
from cake.evolve.pool import Answer, Pool, Task
from cake.evolve.schema import CandidateRow
from cake.evolve.setting import Setting
from cake.evolve.space import Point, points_of
from cake.evolve.store import Store

SCREEN_BATCH = 16
"""Points of one screening task: enough to hide the pipe, few enough to lose on kill -9."""

LEAST_KEPT = 8
"""Candidates that the estimate leaves at least."""

LEAST_KEPT_OF_VARIANT = 2


def screen_space(store: Store, pool: Pool, go_on: Callable[[int, int], bool]) -> None:
    """Screen every point that is not stored yet; then keep the best by estimate, prune the rest.

    After each batch, once it is stored, ``go_on`` gets the points done and all points; False ends
    the screening early. Nothing happens in a run that has been screened. Raises
    :class:`CakeError` (``no-candidates``) if no point is left.
    """
    if store.fact("screened") is not None:
        return
    setting = store.setting
    points = points_of(setting.variants, setting.seed)
    # In random order a screening that is cut short is still a fair sample.
    Random(setting.seed).shuffle(points)
    stored = store.screened_keys()
    new = [p for p in points if p.key not in stored]
    done = len(points) - len(new)
    for answer in _answers(pool, new):
        batch = answer.task.points
        rows = answer.results or [_lost(p, answer) for p in batch]
        store.add_screened(rows, [p.key for p in batch])
        done += len(batch)
        if not go_on(done, len(points)):
            break
    estimated = store.candidates("estimated")
    if not estimated:
        raise _nothing_left(store, setting)
    kept = _kept(estimated, setting.keep)
    worst = max(c.seconds or 0.0 for c in estimated if c.id in kept)
    reason = f"estimated above {worst * 1e3:.4g} ms"
    store.close_screening(sorted(kept), reason, unscreened=len(points) - done)


def failure_finding(answer: Answer) -> dict[str, Any]:
    """The finding for a task whose process failed, as JSON values."""
    return to_json(Diagnostic.of(UNIT_FAILED, f"{answer.failure}: {answer.detail}"))


def _answers(pool: Pool, points: Sequence[Point]) -> Iterator[Answer]:
    """Answers for all points; those of a batch whose process failed are tried one by one."""
    batches = [points[i : i + SCREEN_BATCH] for i in range(0, len(points), SCREEN_BATCH)]
    again: list[Task] = []
    for answer in pool.run([Task(kind="screen", points=tuple(b)) for b in batches]):
        if answer.failure and len(answer.task.points) > 1:
            again += [Task(kind="screen", points=(p,)) for p in answer.task.points]
        else:
            yield answer
    yield from pool.run(again)


def _nothing_left(store: Store, setting: Setting) -> CakeError:
    reasons = Counter(c.reason for c in store.candidates())
    listed = tuple(f"{n} of the points: {text}" for text, n in reasons.most_common(3))
    where = f"{setting.workload} for {setting.target}, {setting.case.label()}"
    return error(NO_CANDIDATES, f"no point of the space fits {where}", helps=listed)


def _kept(estimated: Sequence[CandidateRow], share: float) -> set[int]:
    """The best share of all, and the best few of each variant."""
    ordered = sorted(estimated, key=lambda c: (c.seconds or 0.0, c.id))
    kept = {c.id for c in ordered[: max(LEAST_KEPT, ceil(share * len(ordered)))]}
    of_variant: Counter[str] = Counter()
    for c in ordered:
        of_variant[c.variant] += 1
        if of_variant[c.variant] <= LEAST_KEPT_OF_VARIANT:
            kept.add(c.id)
    return kept


def _lost(point: Point, answer: Answer) -> dict[str, Any]:
    """The screening of a point whose process failed."""
    return {
        "variant": point.variant,
        "meta": dict(point.meta),
        "status": "invalid",
        "reason": f"{answer.failure}: {answer.detail}",
        "digest": None,
        "seconds": None,
        "bound": None,
        "estimate": None,
        "findings": [failure_finding(answer)],
    }
