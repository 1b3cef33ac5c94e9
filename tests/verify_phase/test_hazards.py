"""Each hazard of phases, with the schedule that is right and the edit that makes it wrong."""

from __future__ import annotations

import pytest

from tests.verify_phase.schedules import RIGHT, Hazard, checked, edited, line, said

WAIT_FREE = "                barrier_wait(free, s, (n // 3 + 1) % 2)\n"
STORE_LOAD = """                v = load(X[s][0, lane()])
                arrive(free, s)
"""
FILL = """                expect_tx(full, s, 128)
                tma_load(X[s], x[m, k * 32], barrier=full, slot=s)
                arrive(full, s)
"""
LATE_FILL = """                arrive(full, s)
                expect_tx(full, s, 128)
                tma_load(X[s], x[m, k * 32], barrier=full, slot=s)
"""
ONE_ARRIVAL = """                if u == 0:
                    arrive(free, s)
                if u == 0:
"""
HAND_BACK = "                arrive(free, s)\n                if u == 0:\n"
DRAIN = "            wgmma_wait(0)\n            release(ab, last)\n"
PRODUCT = """                tcgen05_mma(T[q], A[s], B[s].T, init=k == 0)
                tcgen05_commit(ab, s)
"""
EARLY_COMMIT = """                tcgen05_commit(ab, s)
                tcgen05_mma(T[q], A[s], B[s].T, init=k == 0)
"""
SECOND_SYNC = "peer=1 - cta_rank())\n            cluster_sync()\n"
TILE_START = "        n = 0\n        for (m,) in tiles:\n"
TILE_RESET = "        for (m,) in tiles:\n            n = 0\n"


def hazard(base: str, name: str, code: str, at: str, *edits: tuple[str, str]) -> Hazard:
    return Hazard(name=name, base=base, edits=edits, code=code, at=at)


HAZARDS = [
    # -- parities ----------------------------------------------------------------------------------
    hazard(
        "raw", "initial-parity", "CK450", "barrier_wait(free", ("(n // 3 + 1) % 2", "n // 3 % 2")
    ),
    hazard("raw", "parity-from-history", "CK454", "barrier_wait(full", ("n // 3 % 2)", "n % 2)")),
    hazard("raw", "phase-carry-tiles", "CK456", "expect_tx", (TILE_START, TILE_RESET)),
    hazard("raw", "parity-sticks", "CK456", "arrive(free", ("n // 3 % 2)", "min(n // 3, 1))")),
    hazard(
        "raw",
        "parity-lag-two",
        "CK455",
        "arrive(full",
        ("arrivals=2", "arrivals=1"),
        (HAND_BACK, ONE_ARRIVAL),
    ),
    # -- counts and bytes --------------------------------------------------------------------------
    hazard("raw", "arrive-count-low", "CK456", "arrive(free", ("arrivals=2", "arrivals=1")),
    hazard("raw", "arrive-count-high", "CK450", "barrier_wait(free", ("arrivals=2", "arrivals=3")),
    hazard(
        "raw",
        "full-never-armed",
        "CK450",
        "barrier_wait(full",
        ("                arrive(full, s)\n", ""),
    ),
    hazard("raw", "expect-late", "CK458", "expect_tx", (FILL, LATE_FILL)),
    hazard(
        "raw",
        "expect-low",
        "CK459",
        "arrive(full",
        ("expect_tx(full, s, 128)", "expect_tx(full, s, 64)"),
    ),
    hazard(
        "raw",
        "expect-high",
        "CK450",
        "barrier_wait(full",
        ("expect_tx(full, s, 128)", "expect_tx(full, s, 256)"),
    ),
    hazard("raw", "copy-on-another-slot", "CK456", "tma_load", ("slot=s)", "slot=0)")),
    # -- slots -------------------------------------------------------------------------------------
    hazard("raw", "missing-empty-wait", "CK456", "expect_tx", (WAIT_FREE, "")),
    hazard(
        "raw",
        "early-release",
        "CK452",
        "tma_load",
        (STORE_LOAD, "".join(reversed(STORE_LOAD.splitlines(keepends=True)))),
    ),
    hazard(
        "gemm",
        "early-release-of-products",
        "CK452",
        "tma_load(A[s]",
        ("wgmma_wait(1)", "wgmma_wait(2)"),
    ),
    hazard("gemm", "stages-vs-inflight", "CK450", "with ab.fill()", ("stages=3", "stages=1")),
    hazard(
        "gemm",
        "slot-never-released",
        "CK450",
        "with ab.fill()",
        (DRAIN, "            wgmma_wait(0)\n"),
    ),
    hazard(
        "gemm", "same-slot-twice", "CK451", "tma_load(A[s], w", ("tma_load(B[s]", "tma_load(A[s]")
    ),
    # -- tiles -------------------------------------------------------------------------------------
    hazard(
        "gemm",
        "one-fill-too-many",
        "CK464",
        "tma_load(A[s]",
        ("for k in range(cdiv(K, 64)):", "for k in range(cdiv(K, 64) + 1):"),
    ),
    hazard(
        "lengths",
        "phase-skip-symmetric",
        "CK464",
        "tma_load",
        ("            for k in range(length):", "            for k in range(max(length, 1)):"),
    ),
    hazard(
        "lengths",
        "trip-count-disagrees",
        "CK464",
        "tma_load",
        ("n = cdiv(load(lens[b]), 64)", "n = load(lens[b]) // 64"),
    ),
    # -- stores and proxies ------------------------------------------------------------------------
    hazard(
        "gemm", "store-slot-reuse", "CK452", "stmatrix", ("            tma_store_wait(1)\n", "")
    ),
    hazard(
        "gemm",
        "store-wait-too-many",
        "CK452",
        "stmatrix",
        ("tma_store_wait(1)", "tma_store_wait(2)"),
    ),
    hazard("gemm", "store-buffer-not-turned", "CK452", "stmatrix", ("            e = 1 - e\n", "")),
    hazard("gemm", "no-fence", "CK461", "tma_store(y", ("            fence_async()\n", "")),
    hazard(
        "gemm",
        "fence-after-barrier",
        "CK461",
        "tma_store(y",
        (
            "            fence_async()\n            unit_sync()\n",
            "            unit_sync()\n            fence_async()\n",
        ),
    ),
    hazard(
        "gemm", "no-barrier-before-store", "CK453", "tma_store(y", ("            unit_sync()\n", "")
    ),
    hazard("gemm", "store-at-exit", "CK464", "tma_store(y", ("        tma_store_wait(0)\n", "")),
    hazard(
        "gemm",
        "store-never-committed",
        "CK464",
        "tma_store(y",
        ("            tma_store_commit()\n", ""),
    ),
    hazard(
        "gemm",
        "copy-too-small",
        "CK465",
        "wgmma(acc, A[last]",
        ("tma_load(B[s], w[0, k * 64])", "tma_load(B[s][0:32], w[0, k * 64])"),
    ),
    hazard(
        "copies",
        "stage-never-filled",
        "CK465",
        "store(y",
        (
            "            cp_async(X[(m + 2) % 3]",
            "            if m < 0:\n                cp_async(X[(m + 2) % 3]",
        ),
    ),
    # -- registers ---------------------------------------------------------------------------------
    hazard(
        "gemm",
        "accumulator-in-flight",
        "CK463",
        "stmatrix",
        (DRAIN, "            release(ab, last)\n"),
    ),
    # -- hardware barriers -------------------------------------------------------------------------
    hazard(
        "pingpong",
        "nb-generation-recycle",
        "CK460",
        "named_arrive(ready",
        ("            if m > 1:\n                named_sync(done, s)\n", ""),
    ),
    hazard(
        "pingpong", "nb-one-slot-late", "CK460", "named_arrive(ready", ("if m > 1:", "if m > 2:")
    ),
    hazard(
        "pingpong",
        "nb-count-high",
        "CK450",
        "named_sync(ready",
        ("ready = named_barrier(threads=64", "ready = named_barrier(threads=96"),
    ),
    hazard(
        "pingpong",
        "nb-other-slot",
        "CK450",
        "named_sync(ready",
        ("named_arrive(ready, s)", "named_arrive(ready, 1 - s)"),
    ),
    # -- clusters ----------------------------------------------------------------------------------
    hazard(
        "exchange",
        "peer-reads-too-early",
        "CK452",
        "store(P",
        ("            cluster_sync()\n            total", "            total"),
    ),
    hazard(
        "exchange",
        "peer-overwritten",
        "CK453",
        "total = total",
        (SECOND_SYNC, "peer=1 - cta_rank())\n"),
    ),
    hazard(
        "multicast",
        "exit-before-multicast",
        "CK464",
        "tma_load",
        (
            "        for k in range(K):\n            with p.use",
            "        for k in range(K - 1):\n            with p.use",
        ),
    ),
    # -- tensor memory -----------------------------------------------------------------------------
    hazard("tcgen05", "commit-before-product", "CK452", "tma_load(A[s]", (PRODUCT, EARLY_COMMIT)),
    hazard(
        "tcgen05",
        "release-for-commit",
        "CK452",
        "tma_load(A[s]",
        ("tcgen05_commit(ab, s)", "release(ab, s)"),
    ),
    hazard(
        "tcgen05",
        "accumulator-not-waited",
        "CK454",
        "barrier_wait(free",
        ("            barrier_wait(done, q, i // 2 % 2)\n", ""),
    ),
    hazard(
        "tcgen05",
        "accumulator-overwritten",
        "CK456",
        "tcgen05_commit(done",
        ("            barrier_wait(free, q, (i // 2 + 1) % 2)\n", ""),
    ),
    hazard(
        "tcgen05",
        "load-not-waited",
        "CK463",
        "store(d",
        ("                tcgen05_wait_ld(r)\n", ""),
    ),
    hazard("tcgen05", "arrivals-of-one-warp", "CK456", "arrive(free", ("arrivals=4", "arrivals=1")),
    hazard(
        "tcgen05",
        "freed-in-use",
        "CK452",
        "tmem_free",
        (
            "            i = i + 1\n        cta_sync()\n        tmem_free(T)",
            "            i = i + 1\n        tmem_free(T)\n        cta_sync()",
        ),
    ),
    # -- cp.async ----------------------------------------------------------------------------------
    hazard(
        "copies",
        "copy-read-in-flight",
        "CK453",
        "store(y",
        ("cp_async_wait(1)", "cp_async_wait(2)"),
    ),
    hazard("copies", "copies-unsynchronised", "CK453", "store(y", ("            cta_sync()\n", "")),
    hazard(
        "copies",
        "copies-too-far-ahead",
        "CK453",
        "store(y",
        ("stages=3", "stages=2"),
        ("% 3", "% 2"),
    ),
    hazard("copies", "copy-at-exit", "CK464", "cp_async(X[(m", ("        cp_async_wait(0)\n", "")),
]


@pytest.mark.parametrize("base", RIGHT)
def test_the_right_schedule_is_accepted(base: str) -> None:
    found = checked(RIGHT[base])
    assert found == ((), ()), said(found)


@pytest.mark.parametrize("h", HAZARDS, ids=lambda h: h.name)
def test_a_hazard_is_found_where_it_is(h: Hazard) -> None:
    diagnostics, uncovered = checked(h.text)
    assert not uncovered
    found = [(d.code, line(h.text, d)) for d in diagnostics]
    assert any(code == h.code and h.at in text for code, text in found), found
    for d in diagnostics:
        assert d.facts["trace"]
        assert d.facts.keys() >= {"role", "unit", "cta", "sizes", "tiles", "trips"}
        assert d.facts.keys() & {"stage", "slot", "register"}
        assert d.related or d.code in ("CK464", "CK465")
        assert d.helps


ZEROED = edited(
    RIGHT["raw"],
    ("    with copier:\n", "    with copier:\n        store(X[0][0, lane()], 0.0)\n"),
)


def test_an_unfenced_overwrite_is_contested() -> None:
    """A stage is cleared by stores before copies fill it."""
    (strict,), _ = checked(ZEROED)
    assert (strict.code, strict.severity) == ("CK462", "error")
    assert "tma_load" in line(ZEROED, strict)
    (idiom,), _ = checked(ZEROED, "idiom")
    assert (idiom.code, idiom.severity) == ("CK462", "note")
    fenced = edited(ZEROED, ("0.0)\n", "0.0)\n        fence_async()\n"))
    assert checked(fenced) == ((), ())


def test_edits_are_of_one_kind_each() -> None:
    assert len({h.name for h in HAZARDS}) == len(HAZARDS)
    texts = {h.text for h in HAZARDS}
    assert len(texts) == len(HAZARDS)
    assert not texts & set(RIGHT.values())
    assert edited("a b", ("a", "c")) == "c b"
