"""The judge's front door."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from cake.judge.evaluation import Evaluation
from cake.judge.link import Link
from cake.judge.session import Session
from cake.judge.verdict import Verdict
from cake.workloads import get, problem


def judge(evaluation: Evaluation) -> Verdict:
    """Judge one candidate in one fresh child process.

    Inputs, expected values and verdicts stay in this process; the child owns nothing but the
    candidate. Nothing that the candidate does makes this function raise. The request itself
    does: :class:`cake.workloads.ContractError` for a case or family that the contract does not
    have, :class:`cake.judge.JudgeUnavailable` for a device or runner that is missing here.
    """
    contract = get(evaluation.workload)
    for case in evaluation.cases:
        problem(contract, case.shape, case.dtype)
    for family in evaluation.families:
        contract.family(family)
    if evaluation.timing is not None:
        contract.family(evaluation.timing.family)
    start = time.monotonic()
    with TemporaryDirectory(prefix="cake-judge-", ignore_cleanup_errors=True) as folder:
        # One folder below it for each child: what one may write, another does not see.
        scratch = Path(folder).resolve() / "candidate"
        scratch.mkdir()
        with Link(evaluation, evaluation.candidate, scratch) as link:
            session = Session(evaluation, link, scratch)
            session.run()
            return session.verdict(time.monotonic() - start)
