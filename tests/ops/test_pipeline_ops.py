"""The ring statements: operands, hand-over of values under adversaries, emitted barriers."""

from __future__ import annotations

import numpy as np
import pytest

from cake.lang.elaborate import parse
from tests.ops.schedules import cuda, finding, message, program, run, source

PARAMS = 'x: Tensor[f32, "M", 64], out: Tensor[f32, "M", 64]'
DECLS = """
X = smem(f32, (64,), stages=2)
load = role(warps={producers})
math = role({consumer})
p = pipeline(X, producer=load, consumer=math)
"""


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("s = acquire(b)", "ring must be a pipeline"),
        ("commit(p, 0)", "slot must be a slot of p"),
        ("s = acquire(q)\ncommit(p, s)", "slot must be a slot of p, got slot of q"),
        ("release(p, lane())", "slot must be a slot of p"),
    ],
)
def test_operands_are_checked(body: str, said: str) -> None:
    decls = (
        DECLS.format(producers=1, consumer="warps=1")
        + "q = pipeline(X, producer=load, consumer=math)\nb = barrier(arrivals=1)"
    )
    text = source(
        f"with load:\n    {body.replace(chr(10), chr(10) + '    ')}", decls, params=PARAMS
    )
    errors = [d for d in parse(text).diagnostics if d.severity == "error"]
    assert said in errors[0].message


TMA = """
with load:
    for k in range(7):
        s = acquire(p)
        bulk_load(X[s], x[k, 0])
        commit(p, s)
"""
STORES = """
with load as u:
    for k in range(7):
        with p.fill() as s:
            store(X[s][u * 32 + lane()], load(x[k, u * 32 + lane()]))
"""
MIXED = """
with load as u:
    for k in range(7):
        with p.fill() as s:
            bulk_load(X[s][0:32], x[k, 0])
            store(X[s][32 + lane()], load(x[k, 32 + lane()]))
"""
USE = """
with math as w:
    for k in range(7):
        s = wait(p)
        store(out[k, w * 32 + lane()], load(X[s][w * 32 + lane()]))
        release(p, s)
"""
LOOKAHEAD = """
with math as w:
    last = wait(p)
    for k in range(1, 7):
        s = wait(p)
        store(out[k - 1, w * 32 + lane()], load(X[last][w * 32 + lane()]))
        release(p, last)
        last = s
    store(out[6, w * 32 + lane()], load(X[last][w * 32 + lane()]))
    release(p, last)
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
@pytest.mark.parametrize("use", [USE, LOOKAHEAD])
@pytest.mark.parametrize(("fill", "producers"), [(TMA, 1), (STORES, 2), (MIXED, 1)])
def test_values_pass_through_a_ring(fill: str, producers: int, use: str, order: str) -> None:
    decls = DECLS.format(producers=producers, consumer="warps=2")
    made = program(fill + use, decls, params=PARAMS)
    x = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)
    out = np.zeros_like(x)
    run(made, {"x": x, "out": out}, order)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(
    ("fill", "producers", "has", "lacks"),
    [
        (TMA, 1, "mbar_arrive_expect_tx(smem", "mbar_expect_tx"),
        (STORES, 2, "mbar_arrive(smem + p_full", "expect_tx"),
        (MIXED, 1, "mbar_expect_tx(smem", "arrive_expect_tx"),
    ],
)
def test_the_producer_arrives_as_its_writes_demand(
    fill: str, producers: int, has: str, lacks: str
) -> None:
    decls = DECLS.format(producers=producers, consumer="warps=2")
    text = cuda(program(fill + USE, decls, params=PARAMS))
    assert has in text
    assert lacks not in text
    assert "if (++p_stage == 2) { p_stage = 0; p_phase ^= 1; }" in text
    assert "p_phase ^ 1);" in text


def test_a_producing_warpgroup_arrives_with_all_its_warps() -> None:
    decls = DECLS.format(producers=1, consumer="warps=2").replace("warps=1", "warpgroups=1")
    made = program(TMA + USE, decls, params=PARAMS)
    text = cuda(made)
    assert "mbar_expect_tx(" in text
    assert "mbar_init(smem + p_full_at + i * 8, 4);" in text
    x = np.arange(7 * 64, dtype=np.float32).reshape(7, 64)
    out = np.zeros_like(x)
    run(made, {"x": x, "out": out})
    np.testing.assert_array_equal(out, x)


def test_a_ring_of_one_stage_only_flips_its_phase() -> None:
    decls = DECLS.format(producers=1, consumer="warps=2").replace("stages=2", "stages=1")
    made = program(TMA + USE, decls, params=PARAMS)
    assert "p_phase ^= 1;" in cuda(made)
    x = np.ones((7, 64), np.float32)
    out = np.zeros_like(x)
    run(made, {"x": x, "out": out})
    np.testing.assert_array_equal(out, x)


def test_a_ring_runs_on_ampere() -> None:
    text = cuda(program(STORES + USE, DECLS.format(producers=2, consumer="warps=2"),
                        params=PARAMS, target="sm_80"))  # fmt: skip
    assert "mbarrier.test_wait.parity.shared.b64" in text


def test_unknown_bytes_stop_simulation_and_emission() -> None:
    fill = """
with load:
    for k in range(7):
        with p.fill() as s:
            if k < M:
                bulk_load(X[s], x[k, 0])
"""
    made = program(fill + USE, DECLS.format(producers=1, consumer="warps=2"), params=PARAMS)
    tensors = {"x": np.zeros((7, 64), np.float32), "out": np.zeros((7, 64), np.float32)}
    found = finding(made, tensors)
    assert "CK592" in found
    assert "copy 256 and 0 bytes" in found
    with pytest.raises(ValueError, match="copy 256 and 0 bytes"):
        cuda(made)


def test_a_consumer_that_never_releases_is_a_deadlock() -> None:
    use = USE.replace("        release(p, s)\n", "")
    made = program(TMA + use, DECLS.format(producers=1, consumer="warps=2"), params=PARAMS)
    tensors = {"x": np.zeros((7, 64), np.float32), "out": np.zeros((7, 64), np.float32)}
    assert "empty[0] of ring p" in finding(made, tensors)


def test_ring_operations_need_a_role() -> None:
    assert "outside" in str(
        parse(source("s = acquire(p)", DECLS.format(producers=1, consumer="warps=1"))).diagnostics
    )
    assert "is not defined" in message("s = acquire(nothing)")
