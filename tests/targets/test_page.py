"""The committed page is the one that the data files make."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake.targets import get, names
from cake.targets.cited import Source
from cake.targets.page import Row, condense, describe, render

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
SOURCE = Source("manual", "a manual")


def test_committed_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render([get(name) for name in names()]), (
        "write it anew: python -m cake.targets.page > docs/targets.md"
    )


def test_describe_covers_every_section() -> None:
    values = {row.name: row.value for row in describe(get("sm_90a"))}
    assert values["smem_per_cta"] == 232448
    assert values["setmaxnreg.low"] == 24
    assert values["tma.rank_max"] == 5
    assert values["rates.sfu_lanes"] == 16
    assert values["H200 SXM: sms"] == 132
    assert values["H200 SXM: measured.bf16_gemm"] == 789e12
    assert values["stmatrix"] is True
    assert "tmem.columns" not in values


def test_condense_joins_operand_types_that_cross() -> None:
    lines = condense(get("sm_89").mma_sync)
    assert "m16n8k32 e4m3/e5m2 x e4m3/e5m2 -> f16" in lines
    assert "m16n8k16 bf16 x bf16 -> f32" in lines
    assert not any("bf16 x e4m3" in line for line in lines)
    assert "m16n8k32 e4m3/e5m2 x e4m3/e5m2 -> f16 (several instructions)" in condense(
        get("sm_90a").mma_sync
    )


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (232448, "bytes", "227 KiB"),
        (60 * 2**20, "bytes", "60 MiB"),
        (16, "bytes", "16 bytes"),
        (64, "", "64"),
        (True, "", "yes"),
        (None, "bytes", "unknown"),
        (4.8e12, "B/s", "4.8 TB/s"),
        (1.83e9, "Hz", "1.83 GHz"),
    ],
)
def test_values_are_printed_with_their_unit(
    value: bool | int | float | None, unit: str, text: str
) -> None:
    assert Row(name="x", value=value, unit=unit, source=SOURCE).text == text
