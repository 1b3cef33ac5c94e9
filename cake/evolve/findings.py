"""Findings of the search (CK82x)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cake.diag import CakeError, Code, Diagnostic, Fact, Severity, define

_STAGE = "evolve"

NO_CANDIDATES = define(
    code="CK820",
    name="no-candidates",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="There is no schedule from which a search could start.",
    page="""
No shipped schedule serves this workload, target and shape, and no file was given that does. The
message says why each file was left out. Name a schedule file of your own, another target or another
shape.
""",
)

RUN_EXISTS = define(
    code="CK821",
    name="run-exists",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The folder holds a run already.",
    page="""
A run is never overwritten. Resume it, or name another folder.
""",
)

RUN_IN_USE = define(
    code="CK822",
    name="run-in-use",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="Another process works on this run.",
    page="""
One process at a time may write a run. The lock ends with the process that holds it, however that
ends; nothing has to be removed by hand.
""",
)

NOT_A_RUN = define(
    code="CK823",
    name="not-a-run",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The folder holds no run that this version of CAKE can read.",
    page="""
A run is a folder with a file `run.sqlite`. Its format has a version; a run of another version is
read by the CAKE that wrote it. A damaged file is named by what SQLite says of it.
""",
)

STORE_FAILED = define(
    code="CK824",
    name="run-not-writable",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The run's folder cannot be written, most often because the disk is full.",
    page="""
Every evaluation is stored in a transaction before it is reported, so nothing that was reported is
lost. Free some space (or mend what the message names) and resume the run: it goes on with the
evaluation that could not be stored.
""",
)

NO_GPU = define(
    code="CK825",
    name="no-gpu-for-target",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A measurement was asked for, but no GPU here runs code for the target.",
    page="""
Code for one architecture is measured on that architecture alone. Without `--device cuda` the search
works on the CPU: it verifies, simulates, builds and estimates.
""",
)

BAD_BUDGET = define(
    code="CK826",
    name="bad-budget",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A figure of the search lies outside its range.",
    page="""
Evaluations, seconds and workers are positive; the share of candidates to keep is above 0 and at
most 1.
""",
)

WRONG_RESULT = define(
    code="CK830",
    name="wrong-result",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A simulated candidate computed something else than the reference.",
    page="""
The candidate ran without a finding of the simulator, and its outputs differ from the float64
reference by more than the contract allows. The message names the worst element.
""",
)

DOES_NOT_FIT = define(
    code="CK831",
    name="does-not-fit",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="A candidate does not admit the problem, or exceeds an SM.",
    page="""
A guard (`require`) does not hold at the shape of the search, a tensor has other axes or another
type than the contract, or one CTA takes more shared memory, threads or registers than there are.
""",
)

UNIT_FAILED = define(
    code="CK832",
    name="evaluation-process-failed",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The process that evaluated a candidate ended, or was ended, without an answer.",
    page="""
Candidates are evaluated in processes of their own, limited in time and memory. The search goes on
without the candidate; the message has the end of what the process printed.
""",
)

JUDGED = define(
    code="CK833",
    name="judge-refused-candidate",
    severity=Severity.ERROR,
    stage=_STAGE,
    summary="The judge did not pass a candidate on the GPU.",
    page="""
The candidate was verified, simulated and built, and then failed on the device. The message has the
judge's verdict. A difference between simulator and GPU is a bug of CAKE: please report it.
""",
)


def error(
    code: Code,
    message: str,
    *,
    helps: tuple[str, ...] = (),
    facts: Mapping[str, Fact] | None = None,
) -> CakeError:
    """The exception that carries one finding without a place in a schedule."""
    return CakeError([Diagnostic.of(code, message, helps=helps, facts=facts)])


def how_to_resume(folder: Path) -> str:
    """The command that goes on with a run."""
    return f"cake evolve --resume {folder}"
