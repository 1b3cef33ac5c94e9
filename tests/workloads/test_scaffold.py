"""New workloads, and the page of all of them."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import cake.workloads
from cake.workloads import compare, generate, names, reference_outputs
from cake.workloads.page import render
from cake.workloads.scaffold import ScaffoldError, create


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A contract from the scaffold, found beside the shipped ones."""
    monkeypatch.setattr(cake.workloads, "__path__", [*cake.workloads.__path__, str(tmp_path)])
    create("squares_made_here", "Squares", tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module("cake.workloads.squares_made_here.contract").CONTRACT
    for name in [n for n in sys.modules if "squares_made_here" in n]:
        del sys.modules[name]


def test_a_new_contract_holds_and_its_reference_passes_on_all_families(made):
    for case in (*made.shapes["small"], *made.shapes["edge"]):
        for family in made.families:
            inputs = generate(made, case.shape, case.dtype, family.name, 1)
            right = reference_outputs(made, case.shape, case.dtype, inputs)
            assert compare(made, case.shape, case.dtype, inputs, right).ok


def test_honest_squares_pass_and_other_powers_fail(made):
    case = made.shapes["small"][1]
    for family in made.families:
        inputs = generate(made, case.shape, case.dtype, family.name, 1)
        x = inputs["x"]
        assert compare(made, case.shape, case.dtype, inputs, {"y": x * x}).ok, family.name
        wrong = {"y": np.abs(x)}
        trivial = family.name in ("zero", "tiny", "identity")
        assert trivial or not compare(made, case.shape, case.dtype, inputs, wrong).ok


@pytest.mark.parametrize("name", ["Gemm", "a-b", "", "class", "../x", "1st"])
def test_a_name_that_is_none_is_refused(name, tmp_path):
    with pytest.raises(ScaffoldError, match="is not a name"):
        create(name, "?", tmp_path)


def test_a_workload_that_is_there_is_not_touched(tmp_path):
    with pytest.raises(ScaffoldError, match="gemm is there already"):
        create("gemm", "?")
    create("mine", "?", tmp_path)
    with pytest.raises(ScaffoldError, match="mine is there already"):
        create("mine", "?", tmp_path)


def test_the_page_in_the_documentation_is_that_of_the_contracts():
    page = Path(__file__).parents[2] / "docs" / "workloads.md"
    assert page.read_text(encoding="utf-8") == render(), (
        "python -m cake.workloads.page > docs/workloads.md"
    )


def test_the_page_has_a_section_for_every_workload():
    text = render()
    assert all(f"\n## {name}\n" in text for name in names())
