"""`@cake.schedule` on a function of a normal module is read as the same text in a file would be."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cake
from cake.diag import CakeError
from cake.ir.same import same

MODULE = '''"""A module that also does other things."""

import math

import cake
from cake.language import *

THREADS = 32 * 2
SCALE = math.sqrt(16.0)


@cake.inline
def scaled(v):
    return v * SCALE


def sized(width):
    @cake.schedule(target="sm_80")
    def double(x: Tensor[f32, "M"], y: Tensor[f32, "M"], *, W: meta(1, 2) = 1):
        (block,) = grid(cdiv(M, THREADS))
        work = role(warps=W)
        with work as u:
            i = block * THREADS + u * width + lane()
            if i < M:
                store(y[i], scaled(load(x[i])))

    return double


double = sized(32)
'''

FILE = """
@cake.schedule(target="sm_80")
def double(x: Tensor[f32, "M"], y: Tensor[f32, "M"], *, W: meta(1, 2) = 1):
    (block,) = grid(cdiv(M, 64))
    work = role(warps=W)
    with work as u:
        i = block * 64 + u * 32 + lane()
        if i < M:
            store(y[i], load(x[i]) * 4.0)
"""


def load(folder: Path, text: str, name: str = "module_with_a_schedule") -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_helpers_and_constants_of_the_module_are_known(tmp_path: Path) -> None:
    program = load(tmp_path, MODULE).double.program(W=2)
    assert program.bindings == {"W": 2}
    assert same(program, cake.parse(FILE, meta={"W": 2}).program()) is None


def test_places_are_those_of_the_module(tmp_path: Path) -> None:
    text = MODULE.replace("load(x[i])", "load(x[i, 0])").replace("v * SCALE", "v * SCALE * 1")
    with pytest.raises(CakeError) as caught:
        load(tmp_path, text).double.program()
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert "load(x[i, 0])" in text.splitlines()[found.span.line - 1]


def test_a_fault_in_a_helper_is_placed_there(tmp_path: Path) -> None:
    text = MODULE.replace("return v * SCALE", "return v * nothing")
    found = load(tmp_path, text).double.parse().diagnostics
    assert found[0].span is not None
    assert "v * nothing" in text.splitlines()[found[0].span.line - 1]


def test_helpers_may_come_from_another_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, end = MODULE.index("@cake.inline"), MODULE.index("def sized")
    helpers = load(
        tmp_path, "import cake\nSCALE = 4.0\n\n" + MODULE[start:end], "module_of_helpers"
    )
    monkeypatch.setitem(sys.modules, "module_of_helpers", helpers)
    text = MODULE[:start] + "from module_of_helpers import scaled\n\n" + MODULE[end:]
    program = load(tmp_path, text).double.program(W=2)
    assert same(program, cake.parse(FILE, meta={"W": 2}).program()) is None


def test_the_function_is_never_called(tmp_path: Path) -> None:
    text = MODULE.replace("        work = role", "        raise SystemExit\n        work = role")
    (found,) = load(tmp_path, text).double.parse().diagnostics
    assert found.message == "`raise` stands outside a role"
