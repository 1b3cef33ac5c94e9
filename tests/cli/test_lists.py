"""`cake explain | rules | primitives | targets | doctor`."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cake.cli import probes
from cake.cli.app import COMMANDS
from cake.cli.probes import Found
from cake.codes import load_all
from cake.ops.base import all_primitives
from cake.runtime import driver
from cake.targets import names
from cake.verify import all_rules

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]

ROOT = Path(__file__).parents[2]

DEFINE_ALL = """
import pkgutil, importlib, cake
from cake.diag import all_codes
for module in pkgutil.walk_packages(cake.__path__, "cake."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name in {"torch", "z3"}, error  # optional packages
print(*(entry.code for entry in all_codes()))
"""


def test_every_code_is_known_without_its_module_being_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEFINE_ALL], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [entry.code for entry in load_all()]


def test_every_code_and_every_name_has_a_page(document: Document) -> None:
    for entry in load_all():
        assert document("explain", entry.code)["name"] == entry.name
    assert document("explain", "SYNTAX-ERROR")["code"] == "CK001"


def test_explain_prints_the_page(cake: Cake) -> None:
    result = cake("explain", "ck003")
    assert result.exit_code == 0
    assert result.stdout.startswith("# CK003: foreign-import\n")


def test_an_unknown_code_is_wrong_use_and_names_the_nearest(cake: Cake) -> None:
    result = cake("explain", "foreign")
    assert result.exit_code == 2
    assert "nearest: CK003 (foreign-import)" in result.stderr
    assert "docs/codes.md" in cake("explain", "zzz").stderr


def test_rules_lists_every_rule(cake: Cake, document: Document) -> None:
    rules = document("rules")["rules"]
    assert [rule["code"] for rule in rules] == [rule.code for rule in all_rules()]
    assert all(rule["bad"] and rule["good"] and rule["summary"] for rule in rules)
    assert f"{len(rules)} rules" in cake("rules").stdout


def test_primitives_lists_every_primitive(cake: Cake, document: Document) -> None:
    listed = [p["name"] for p in document("primitives")["primitives"]]
    assert listed == [p.name for p in all_primitives()]
    assert "wgmma_wait(pending)" in cake("primitives").stdout


def test_a_primitive_is_described_with_targets_and_facets(cake: Cake, document: Document) -> None:
    wgmma = document("primitives", "wgmma")
    assert wgmma["targets"] == ["sm_90a"]
    assert wgmma["units"] == ["warpgroup"]
    assert wgmma["convergent"] is True
    assert set(wgmma["facets"]) == {"typing", "effects", "meaning", "cost", "emission"}
    assert wgmma["params"][0] == {
        "name": "acc",
        "kind": "value",
        "required": True,
        "default": None,
        "keyword_only": False,
    }
    text = cake("primitives", "wgmma").stdout
    assert "* Targets: sm_90a" in text
    assert "* Source: PTX ISA" in text


def test_an_unknown_primitive_names_the_nearest(cake: Cake) -> None:
    result = cake("primitives", "wgma")
    assert result.exit_code == 2
    assert "did you mean wgmma" in result.stderr


def test_targets_lists_all_and_describes_one(cake: Cake, document: Document) -> None:
    assert [t["name"] for t in document("targets")["targets"]] == list(names())
    figures = {f["name"]: f for f in document("targets", "sm_90a")["figures"]}
    assert figures["smem_per_cta"]["value"] == 232448
    assert all(f["source"] for f in figures.values())
    assert "227 KiB" in cake("targets", "sm_90a").stdout


def test_an_unknown_target_names_the_nearest(cake: Cake) -> None:
    result = cake("targets", "sm_90")
    assert result.exit_code == 2
    assert "did you mean 'sm_90a'" in result.stderr


def test_doctor_reports_every_probe(cake: Cake, document: Document) -> None:
    found = {probe["what"]: probe for probe in document("doctor")["probes"]}
    assert set(found) >= {"Python", "numpy", "NVRTC", "nvdisasm", "GPU", "kernel cache", "disk"}
    assert found["kernel cache"]["ok"]
    text = cake("doctor").stdout
    for probe in found.values():
        assert probe["ok"] or f"{probe['what']} (for " in text


def test_every_extra_that_is_advised_exists(document: Document) -> None:
    """`cake doctor`, and every other message that says `pip install 'cake-ir[...]'`."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        known = set(tomllib.load(file)["project"]["optional-dependencies"])
    texts = [probe["remedy"] for probe in document("doctor")["probes"]]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "cake").rglob("*.py")]
    advised = {name for text in texts for name in re.findall(r"cake-ir\[([a-z]+)\]", text)}
    assert {"cupti", "torch"} <= advised <= known


def test_doctor_ends_with_4_where_the_essentials_are_missing(
    cake: Cake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> Found:
        return Found(what="NVRTC", ok=False, detail="gone", needed_for=("build",), remedy="get it")

    monkeypatch.setattr(probes, "_PROBES", (probes.python, absent))
    result = cake("doctor")
    assert result.exit_code == 4
    assert "NVRTC (for build): get it" in result.stdout


def test_a_cache_that_cannot_be_written_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("CAKE_CACHE_DIR", str(occupied / "cache"))
    found = probes.cache()
    assert not found.ok
    assert "Not a directory" in found.detail


def test_a_missing_driver_is_no_failure_of_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_LIBRARY", "libnothing.so.1")
    driver.libcuda.cache_clear()
    driver.driver.cache_clear()
    found = probes.gpu()
    assert not found.ok
    assert "libnothing.so.1" in found.detail


def test_every_command_has_the_summary_of_the_list(cake: Cake) -> None:
    for name, summary in COMMANDS.items():
        text = " ".join(cake(name, "--help").stdout.split())
        assert summary in text, name
        assert "--json" in text, name
