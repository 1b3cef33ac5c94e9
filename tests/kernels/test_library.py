"""The shipped schedules are found by workload and target."""

import pytest

from cake.kernels import available, schedule_file, schedules
from cake.kernels.library import _serves
from cake.targets import UnknownTarget
from cake.workloads import names


def test_every_workload_has_a_schedule_for_hopper_but_the_neighbour_graph() -> None:
    assert {w for w in names() if not schedules(w, "sm_90a")} == {"knn_build"}


def test_files_written_for_the_target_come_first() -> None:
    found = schedules("gemm", "sm_90a")
    own = [f.written_for == "sm_90a" for f in found]
    assert own == sorted(own, reverse=True)
    assert {f.written_for for f in found} == {"sm_80", "sm_90a"}
    assert {f.target for f in found} == {"sm_90a"}


def test_suffixed_targets_serve_nothing_else() -> None:
    assert _serves("sm_80", "sm_90a")
    assert not _serves("sm_90a", "sm_100a")
    assert not _serves("sm_90a", "sm_80")
    assert not _serves("sm_80", "sm_80")


def test_an_older_target_does_not_get_hopper_files() -> None:
    assert {f.written_for for f in schedules("gemm", "sm_80")} == {"sm_80"}


def test_unknown_workloads_have_no_schedules_and_unknown_targets_are_errors() -> None:
    assert schedules("no_such_workload", "sm_90a") == ()
    assert available("no_such_workload") == ()
    with pytest.raises(UnknownTarget):
        schedules("gemm", "sm_90")


def test_available_names_the_targets_of_a_workload() -> None:
    assert {"sm_80", "sm_90a"} <= set(available("gemm"))


def test_a_users_file_keeps_its_text(tmp_path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("# Straße\n")
    file = schedule_file(path)
    assert (file.name, file.target, file.text) == ("mine", None, "# Straße\n")
