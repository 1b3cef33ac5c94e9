"""A journal keeps what was judged, for the same sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.verifier import journal
from benchmarks.verifier.journal import Journal, Record


def test_what_is_known_is_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def judge(items: Sequence[int]) -> Iterator[Record]:
        for item in items:
            asked.append(item)
            yield {"square": item * item}

    path = tmp_path / "journal"
    monkeypatch.setattr(journal, "sources", lambda: "one")
    first = Journal(path)
    assert first.complete(["a", "b"], [1, 2], judge) == [{"square": 1}, {"square": 4}]
    again = Journal(path).complete(["b", "c", "a"], [2, 3, 1], judge)
    assert again == [{"square": 4}, {"square": 9}, {"square": 1}]
    assert asked == [1, 2, 3]
    monkeypatch.setattr(journal, "sources", lambda: "other")
    Journal(path).complete(["a"], [1], judge)
    assert asked == [1, 2, 3, 1]


def test_a_run_that_is_stopped_leaves_what_it_had(tmp_path: Path) -> None:
    def judge(items: Sequence[int]) -> Iterator[Record]:
        yield {"item": items[0]}
        raise KeyboardInterrupt

    path = tmp_path / "journal"
    with pytest.raises(KeyboardInterrupt):
        Journal(path).complete(["a", "b"], [1, 2], judge)

    def rest(items: Sequence[int]) -> Iterator[Record]:
        assert list(items) == [2]
        yield {"item": 2}

    assert Journal(path).complete(["a", "b"], [1, 2], rest) == [{"item": 1}, {"item": 2}]
