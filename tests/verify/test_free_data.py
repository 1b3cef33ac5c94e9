"""Elements that data choose: a histogram with barriers, and with each of them taken out."""

from __future__ import annotations

import pytest

from .examples import found, verdict

HISTOGRAM = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, 256], y: Tensor[i32, 64]):
    count = smem(i32, (64,))
    r = role(warps=4)
    with r as u:
        t = u * 32 + lane()
        if t < 64:
            store(count[t], 0)
        keys = registers(i32, 2)
        for g in static_range(2):
            k = load(ids[g * 128 + t])
            keys[g] = select(k < 64, k, -1)
        cta_sync()  # cleared
        for g in range(2, unroll=True):
            reduce_add(count[max(keys[g], 0)], 1, mask=keys[g] >= 0)
        cta_sync()  # counted
        own = load(count[t % 64])
        cta_sync()  # read
        for g in range(2, unroll=True):
            key = keys[g]
            if key >= 0:
                store(count[key], own)
        cta_sync()  # overwritten
        total = load(count[63 - t % 64])
        if t < 64:
            store(y[t], own + total)
"""


def test_the_histogram_is_not_rejected() -> None:
    v = verdict(HISTOGRAM)
    assert v.ok, found(v)


@pytest.mark.parametrize("barrier", ["counted", "read", "overwritten"])
def test_a_missing_barrier_is_found_whatever_the_data(barrier: str) -> None:
    text = HISTOGRAM.replace(f"        cta_sync()  # {barrier}\n", "")
    assert text != HISTOGRAM
    v = verdict(text)
    assert "CK355" in {d.code for d in v.diagnostics}, found(v)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("select(k < 64, k, -1)", "select(k < 64, t % 64, -1)"),
        ("store(count[key], own)", "store(count[t % 64], own)"),
    ],
)
def test_an_index_that_data_do_not_choose_alone_is_left_to_other_rules(old: str, new: str) -> None:
    text = HISTOGRAM.replace(old, new).replace("        cta_sync()  # read\n", "")
    assert text != HISTOGRAM
    v = verdict(text)
    assert "CK355" not in {d.code for d in v.diagnostics}, found(v)
