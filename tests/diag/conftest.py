"""A catalogue of its own for every test here, so that the codes in use cannot clash."""

import pytest

from cake.diag import Severity
from cake.diag.catalogue import CATALOGUE


@pytest.fixture(autouse=True)
def codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CATALOGUE, "_by_code", {})
    monkeypatch.setattr(CATALOGUE, "_by_name", {})
    CATALOGUE.define(
        code="CK412",
        name="ring-reuse-before-release",
        severity=Severity.ERROR,
        stage="verify",
        summary="A slot of a ring is written while a consumer may still read it.",
        page="A ring hands slots round.\n\nRelease a slot only after its last read.",
    )
    CATALOGUE.define(
        code="CK340",
        name="bank-conflict",
        severity=Severity.WARNING,
        stage="verify",
        summary="Lanes of a warp meet in one bank.",
        page="Pick another swizzle.",
    )
    CATALOGUE.define(
        code="CK901",
        name="no-driver",
        severity=Severity.NOTE,
        stage="environment",
        summary="There is no CUDA driver.",
        page="Install one.",
    )
