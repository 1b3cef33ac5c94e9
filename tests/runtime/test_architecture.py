"""For which architecture a schedule's code is built so that a device runs it."""

from dataclasses import replace
from pathlib import Path

import pytest

import cake.kernels
from cake.codegen.compile import compile_program
from cake.lang.elaborate import parse
from cake.runtime.kernel import architecture, check_device
from tests.runtime.fakes import H200

A100 = replace(H200, name="NVIDIA A100", capability=(8, 0))
SCHEDULE = Path(cake.kernels.__file__).parent / "rmsnorm" / "sm_80.py"


@pytest.mark.parametrize(
    ("target", "device", "wanted"),
    [
        ("sm_80", A100, "sm_80"),
        ("sm_80", H200, "sm_90"),
        ("sm_89", A100, "sm_89"),
        ("sm_90a", H200, "sm_90a"),
        ("sm_90a", replace(H200, capability=(10, 0)), "sm_90a"),
        ("sm_86", replace(H200, capability=(12, 0)), "sm_120"),
    ],
)
def test_plain_targets_are_built_for_later_devices_and_exact_ones_never(
    target: str, device, wanted: str
) -> None:
    assert architecture(target, device) == wanted


def test_an_ampere_schedule_built_for_hopper_passes_the_device_check() -> None:
    program = parse(SCHEDULE.read_text(), SCHEDULE.name).program()
    compiled = compile_program(program, arch=architecture(program.target, H200))
    assert compiled.abi.target == "sm_90"
    check_device(compiled.abi, H200)
