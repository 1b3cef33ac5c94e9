"""Verdicts once more, from nothing but what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from cake.judge.evaluation import Evaluation
from cake.judge.parent import judge
from cake.judge.records import encode
from cake.judge.verdict import CaseResult, Verdict
from cake.workloads import get


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The verdicts of now, one a case, and where they differ from that of then."""

    verdicts: tuple[Verdict, ...]
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.differences


def replay(request: Evaluation, then: Verdict) -> Replay:
    """Judge the stored candidate again on the stored cases with the seeds of then.

    Results have to be equal to the last bit where the contract is deterministic; else their
    statuses have to be. Times are not taken again. Raises what :func:`cake.judge.judge` raises.
    """
    verdicts: list[Verdict] = []
    differences: list[str] = []
    exact = get(request.workload).determinism == "bitwise"
    for case in request.cases:
        before = [result for result in then.results if result.case == case]
        seed = max((result.seed for result in before), default=0)
        now = judge(replace(request, cases=(case,), seed=seed, timing=None))
        verdicts.append(now)
        differences += _differences(before, now.results, exact)
        if now.results and now.results[-1].status in ("crashed", "hang"):
            break  # then, too, nothing came after it
    return Replay(verdicts=tuple(verdicts), differences=tuple(differences))


def _differences(
    before: Sequence[CaseResult], now: Sequence[CaseResult], exact: bool
) -> Iterator[str]:
    for old, new in zip_longest(before, now):
        if old is None or new is None:
            result = old or new
            word = "not reached again" if new is None else "not reached then"
            yield f"{result.case.label()}, {result.family or 'build'}: {word}"
        elif _essence(old, exact) != _essence(new, exact):
            yield f"{old.case.label()}, {old.family or 'build'}: {_short(old)}; now {_short(new)}"


def _essence(result: CaseResult, exact: bool) -> str:
    """What has to come out again: messages may name processes and addresses."""
    parts = [result.family, result.status]
    if exact:
        parts += [json.dumps(encode(result.findings)), json.dumps(encode(result.comparison))]
    return "\n".join(parts)


def _short(result: CaseResult) -> str:
    first = result.detail.partition("\n")[0]
    return f"{result.status}: {first}" if first else result.status
