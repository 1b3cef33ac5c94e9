"""A run that is written into its database without a search."""

from pathlib import Path
from typing import Any

from cake.diag import Diagnostic, Span, to_json
from cake.evolve import Budget, Store
from cake.evolve.findings import DOES_NOT_FIT, WRONG_RESULT
from cake.evolve.schema import EvaluationRow
from cake.evolve.setting import Setting
from cake.evolve.space import Point, Variant, variants_of
from cake.judge import Summary, TimingResult, Verdict
from cake.workloads import Case, get, problem
from tests.kernels.samples import SCALE, file

CASE = Case(shape={"M": 64, "D": 128}, dtype="bf16")
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> \"quoted\" & 'single'"


def finding(code: Any, message: str) -> dict[str, Any]:
    span = Span(file=f"folder/{HOSTILE}.py", line=3, col=1, end_line=3, end_col=2)
    return to_json(Diagnostic.of(code, message, span))


def estimate(seconds: float) -> dict[str, Any]:
    kernel = {
        "kernel": HOSTILE,
        "seconds": seconds,
        "bound": "hbm",
        "ctas": 64,
        "waves": 0.5,
        "occupancy": {
            "threads": 32,
            "ctas": 8,
            "limiter": "CTAs",
            "smem_bytes": 0,
            "registers": 32,
        },
        "resources": [
            {"name": "hbm", "work": 1e6, "unit": "B", "seconds": seconds, "exposed": seconds},
            {"name": "alu", "work": 0.0, "unit": "lane operations", "seconds": 0.0, "exposed": 0.0},
        ],
        "assumptions": [HOSTILE],
    }
    return {"seconds": seconds, "bound": "hbm", "kernels": [kernel]}


def variant() -> Variant:
    """A variant whose every string is hostile; its text still elaborates."""
    text = SCALE + f"\n# {HOSTILE}\n"
    instance = problem(get("rmsnorm"), CASE.shape, CASE.dtype)
    return variants_of([file(text, name=HOSTILE)], instance)[0]


def screened(warps: int, status: str, seconds: float | None, reason: str = "") -> dict[str, Any]:
    return {
        "variant": HOSTILE,
        "meta": {"T": "bf16", "WARPS": warps, "DP": 128},
        "status": status,
        "reason": reason,
        "digest": f"digest {warps}" if seconds else None,
        "seconds": seconds,
        "bound": "hbm",
        "estimate": estimate(seconds) if seconds else None,
        "findings": [finding(DOES_NOT_FIT, reason)] if reason else [],
    }


def made_run(folder: Path, *, measured: bool) -> Path:
    """Three points: one unfit, one wrong, one that passes."""
    setting = Setting(
        workload="rmsnorm",
        target="sm_90a",
        case=CASE,
        part="H200 SXM",
        device="cuda" if measured else "cpu",
        baseline=None,
        seed=0,
        keep=1.0,
        variants=(variant(),),
    )
    rows = [
        screened(1, "unfit", None, f"a CTA needs 300000 bytes; {HOSTILE}"),
        screened(2, "estimated", 3e-6),
        screened(4, "estimated", 2e-6),
    ]
    with Store.create(folder, setting, Budget()) as store:
        session = store.begin_session({"compiler": HOSTILE, "gpu": "none"})
        keys = [Point(variant=r["variant"], meta=r["meta"]).key for r in rows]
        store.add_screened(rows, keys)
        store.close_screening([2, 3], "")
        wrong = finding(WRONG_RESULT, HOSTILE)
        store.finish(evaluation(2, "incorrect", findings=[wrong]), session, 1.0)
        store.finish(evaluation(3, "passed", measured=2.5e-6 if measured else None), session, 2.0)
        store.add_confirmation(3, "passed", "")
        store.end_session(session, 3.0, "exhausted")
    return folder


def evaluation(
    candidate: int, status: str, *, measured: float | None = None, findings: Any = ()
) -> EvaluationRow:
    passed = status == "passed"
    verdict = judged(measured).to_json() if measured else None
    return EvaluationRow(
        verdict=verdict,
        candidate=candidate,
        status=status,
        detail="" if passed else HOSTILE,
        estimated=2e-6 if passed else None,
        measured=measured,
        spill_bytes=0,
        wall_seconds=1.0,
        record={
            "findings": list(findings),
            "estimate": estimate(2e-6) if passed else None,
            "registers": {"squares": 20, "scale": 22},
            "bound": "hbm",
        },
    )


def judged(seconds: float) -> Verdict:
    """A verdict with times of a candidate and a baseline that takes twice as long."""
    return Verdict(
        status="passed",
        workload="rmsnorm",
        candidate_hash="",
        runner="ir",
        device="cuda",
        detail="",
        results=(),
        timings=(
            TimingResult(
                case=CASE,
                clock="CUDA events",
                candidate=Summary.of([seconds * 1e3]),
                baseline_name="torch",
                baseline=Summary.of([2 * seconds * 1e3]),
                speedup=2.0,
                status="passed",
                detail="",
            ),
        ),
        environment={},
        output="",
        seconds=1.0,
    )
