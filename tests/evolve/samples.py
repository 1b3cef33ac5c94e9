"""A small search: one file with two schedules, six points, three programs that fit."""

import sqlite3
from pathlib import Path

from cake.evolve import Budget, EvolveConfig
from cake.evolve.space import Variant
from cake.workloads import Case
from tests.kernels.samples import SCALE

CASE = Case(shape={"M": 64, "D": 128}, dtype="bf16")


def schedule(folder: Path, text: str = SCALE, name: str = "sample") -> Path:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


def config(folder: Path, *files: Path, **options) -> EvolveConfig:
    """A search of rmsnorm over ``files`` (the sample without), in ``folder/run``."""
    options = {"budget": Budget(max_evaluations=100, max_seconds=100), "workers": 1, **options}
    return EvolveConfig(
        workload="rmsnorm",
        target="sm_90a",
        case=CASE,
        files=files or (schedule(folder),),
        shipped=False,
        out=folder / "run",
        device="cpu",
        **options,
    )


def evaluated(run: Path) -> list[tuple]:
    """What is stored of finished evaluations, times included, as another process sees it."""
    with sqlite3.connect(run / "run.sqlite") as db:
        return db.execute(
            "SELECT candidate, status, finished, wall_seconds FROM evaluations ORDER BY id"
        ).fetchall()


def variant(name: str = "v", **domains: tuple) -> Variant:
    """A variant that exists only by its domains; the first value of each is the default."""
    return Variant(
        name=name,
        target="sm_90a",
        written_for=None,
        path="",
        text="",
        domains=domains,
        typed=(),
        defaults={n: d[0] for n, d in domains.items()},
    )
