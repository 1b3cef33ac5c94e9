"""Runs that several tests look at, with a kernel cache of their own."""

from pathlib import Path

import pytest

from cake.evolve import EvolveResult, Progress, run
from tests.evolve.samples import config


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cached(monkeypatch, cache) -> None:
    monkeypatch.setenv("CAKE_CACHE_DIR", str(cache))


@pytest.fixture(scope="session")
def finished(tmp_path_factory, cache) -> tuple[EvolveResult, list[Progress]]:
    """A whole search, and what it reported."""
    folder = tmp_path_factory.mktemp("finished")
    seen: list[Progress] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAKE_CACHE_DIR", str(cache))
        result = run(config(folder, keep=1.0, workers=2), progress=seen.append)
    return result, seen
