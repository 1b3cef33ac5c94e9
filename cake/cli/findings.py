"""Findings of the command line (CK95x)."""

from __future__ import annotations

from cake.diag import Code, Severity, define


def _code(code: str, name: str, stage: str, summary: str, page: str) -> Code:
    return define(
        code=code, name=name, severity=Severity.ERROR, stage=stage, summary=summary, page=page
    )


UNREADABLE = _code(
    "CK951",
    "schedule-file-unreadable",
    "environment",
    "The schedule file cannot be read.",
    """
It does not exist, is a folder, or may not be read by this user. `-` reads the schedule from the
standard input.
""",
)

NOT_TEXT = _code(
    "CK952",
    "schedule-file-not-utf8",
    "language",
    "The schedule file is not UTF-8 text.",
    """
A schedule file is text in UTF-8. The finding names the first byte that is not. Convert files of
another encoding (`iconv -f latin1 -t utf-8`); a cubin or an archive is no schedule.
""",
)

UNWRITABLE = _code(
    "CK953",
    "output-unwritable",
    "environment",
    "An output cannot be written.",
    """
The disk is full, the folder may not be written, or the name belongs to something else. Files are
written whole or not at all: nothing half-written is left behind.
""",
)

SIMULATED_WRONG = _code(
    "CK954",
    "simulated-result-wrong",
    "simulate",
    "The simulated result differs from the workload's reference by more than the contract allows.",
    """
The schedule ran to its end without a finding, but computes something else than the contract asks
for. The message names the worst element with its expected and its computed value. Look at the
indices first: tails, masks, and the order of axes.
""",
)

ORDER_DEPENDENT = _code(
    "CK955",
    "order-dependent-result",
    "simulate",
    "The simulated result depends on the order in which asynchronous work completes.",
    """
Two orders of completion gave different bits. For a kernel that adds with atomics that is expected;
anywhere else a wait, a barrier or a fence is missing. `--arithmetic ring` tells the two apart:
there sums do not round, so what still differs between orders is a fault.
""",
)

MODULE_MISSING = _code(
    "CK956",
    "module-missing",
    "environment",
    "A Python package that CAKE depends on is not installed.",
    """
CAKE is incomplete in this environment: it was installed without its dependencies, or another
Python than the one it was installed for runs it. Install it anew (`pip install cake-ir`), or call
the `cake` of the right environment. `cake doctor` lists what is there.
""",
)

JUDGE_UNAVAILABLE = _code(
    "CK957",
    "judge-unavailable",
    "environment",
    "The judge cannot work on this machine.",
    """
The device that was asked for does not exist here, or the judge's process could not be started. No
candidate has been run. `cake doctor` says what is missing; `--device cpu` judges by simulation.
""",
)

NOT_PASSED = _code(
    "CK958",
    "judge-not-passed",
    "judge",
    "The judge did not pass the schedule.",
    """
The status says how it failed: `refused` (its guards do not admit the problem), `build_failed`,
`incorrect` (another result than the reference, a written guard, a modified input), `crashed`, or
`hang`. The message has the case, the input family and the seed with which it can be repeated:
`cake judge FILE --workload NAME --shape ... --family ... --seed ...`.
""",
)

OUTSIDE_DOMAIN = define(
    code="CK959",
    name="outside-domain",
    severity=Severity.NOTE,
    stage="judge",
    summary="The schedule's own guards do not admit a problem.",
    page="""
The schedule passed every problem that it admits; this one is refused by its `require(...)` guards,
its element types or the shapes of its tensors. Another variant, or other meta parameters, may admit
it. The answer is incomplete (exit status 3), not a rejection.
""",
)

TWIN_MISJUDGED = _code(
    "CK960",
    "twin-misjudged",
    "judge",
    "The judge's self-test failed: a cheating twin was not caught, or an honest one did not pass.",
    """
Verdicts of this machine cannot be trusted until it is clear why. Where the kernel does not grant
namespaces (`unprivileged_userns_clone`, some containers), the class `escape` fails: candidates in
Python are then held by limits of resources alone, and each verdict says so.
""",
)

REPLAY_DIFFERS = _code(
    "CK961",
    "replay-differs",
    "judge",
    "A stored verdict did not come out again.",
    """
The candidate was judged again on the stored cases with the stored seeds, and something else was
decided. On another device, or with another CAKE, that is possible; on the same ones the candidate
depends on something that is not an input, or the judge has a fault.
""",
)

STORE_UNUSABLE = _code(
    "CK962",
    "store-unusable",
    "environment",
    "The judge's store cannot be read or written.",
    """
The message names the folder and the reason: a full disk, missing rights, a damaged file, a store of
a newer CAKE, or a number that is not in it. Everything that was reported as kept is still there.
""",
)
