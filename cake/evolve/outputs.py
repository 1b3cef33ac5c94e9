"""Files that a run leaves beside its database: the best schedule, its CUDA, ``summary.json``."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from cake.codegen.cuda import emit_program
from cake.evolve.config import Stopped
from cake.evolve.database import writing
from cake.evolve.store import Store
from cake.evolve.summary import best, summary
from cake.kernels import elaborate, with_meta

BEST = "best"
SCHEDULE = "schedule.py"
SUMMARY = "summary.json"


def write_outputs(store: Store, stopped: Stopped) -> tuple[Path, ...]:
    """Write everything anew; each file appears whole or not at all.

    Raises :class:`CakeError` (``run-not-writable``).
    """
    files = best_files(store)
    listed = [*files, SUMMARY]
    with writing(store.folder):
        (store.folder / BEST).mkdir(exist_ok=True)
        for name, text in files.items():
            write_whole(store.folder / name, text)
        data = summary(store, stopped, listed)
        write_whole(store.folder / SUMMARY, json.dumps(data, indent=1) + "\n")
    return tuple(store.folder / name for name in listed)


def best_files(store: Store) -> dict[str, str]:
    """Text by path within the run: the best schedule with its meta parameters as defaults, and the
    CUDA of each of its kernels. Empty if nothing passed."""
    winner = best(store)
    if winner is None:
        return {}
    variant = store.setting.variant(winner.variant)
    meta = variant.meta(winner.meta)
    files = {f"{BEST}/{SCHEDULE}": with_meta(variant.text, meta, variant.target)}
    for program in elaborate(variant.file, meta).programs:
        files[f"{BEST}/{program.name}.cu"] = emit_program(program).source
    return files


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
