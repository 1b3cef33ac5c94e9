"""A persistent loop whose tiles are dealt out by an atomic ticket.

A scheduler warp draws tickets from a zeroed workspace and publishes each to the other roles through
small rings in shared memory. The last CTA to finish puts the workspace back to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cake.simulate.orders import ORDERS
from cake.simulate.run import simulate
from cake.verify import verify
from tests.ops.schedules import cuda, program

PARAMS = 'x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128], who: Tensor[i32, "M"]'
DECLS = """
ROWS = 4
count = cdiv(M, ROWS)
tiles = persistent(count)
W = workspace(i32, (2,), zeroed=True)
TL = smem(i32, (1,), stages=2)
TM = smem(i32, (1,), stages=3)
X = smem(f32, (ROWS, 128), stages=2)
sched = role(warps=1)
load_x = role(warps=1)
math = role(warps=2)
to_load = pipeline(TL, producer=sched, consumer=load_x)
to_math = pipeline(TM, producer=sched, consumer=math)
xs = pipeline(X, producer=load_x, consumer=math)
"""
ROLES = """
with sched:
    tile = 0
    while tile < count:
        drawn = 0
        if elect():
            drawn = atomic_add(W[0], 1)
        tile = shfl(drawn, 0)
        with to_load.fill() as s:
            store(TL[s][0], tile)
        with to_math.fill() as s:
            store(TM[s][0], tile)
    done = 0
    if elect():
        done = atomic_add(W[1], 1, order="acq_rel")
    if shfl(done, 0) == grid_size() - 1:
        if elect():
            store(W[0], 0)
            store(W[1], 0)
with load_x:
    tile = 0
    while tile < count:
        with to_load.use() as s:
            tile = load(TL[s][0])
        if tile < count:
            with xs.fill() as f:
                tma_load(X[f], x[tile * ROWS, 0])
with math as u:
    at = lane() * 4
    tile = 0
    while tile < count:
        with to_math.use() as s:
            tile = load(TM[s][0])
        if tile < count:
            with xs.use() as f:
                for half in static_range(2):
                    row = tile * ROWS + u * 2 + half
                    values = load(X[f][u * 2 + half, at : at + 4])
                    if row < M:
                        store(y[row, at], values * 2.0)
                        if elect():
                            store(who[row], block_index())
                fence_async()
"""


def tensors(rows: int) -> dict[str, Any]:
    x = np.random.default_rng(3).standard_normal((rows, 128)).astype(np.float32)
    return {"x": x, "y": np.zeros_like(x), "who": np.full(rows, -1, np.int32)}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("concurrent", [False, True])
def test_every_tile_is_drawn_once_and_the_workspace_ends_as_it_began(
    order: str, concurrent: bool
) -> None:
    found = tensors(42)
    made = program(ROLES, DECLS, params=PARAMS)
    outputs = ("y", "who")
    result = simulate(made, found, outputs=outputs, order=order, concurrent=concurrent, resident=3)
    assert result.ok, [d.message for d in result.findings]
    np.testing.assert_array_equal(found["y"], 2 * found["x"])
    tiles = found["who"][: 42 // 4 * 4].reshape(-1, 4)
    np.testing.assert_array_equal(tiles, np.repeat(tiles[:, :1], 4, axis=1))
    assert set(found["who"].tolist()) <= {0, 1, 2}
    if concurrent and ORDERS[order].delayed is None:
        assert len(set(found["who"].tolist())) > 1


def test_a_workspace_left_behind_is_a_finding() -> None:
    made = program(ROLES.replace("store(W[1], 0)", "store(W[0], 0)"), DECLS, params=PARAMS)
    result = simulate(made, tensors(8))
    assert [d.facts["workspace"] for d in result.findings] == ["W"]


def test_the_verifier_has_no_objection() -> None:
    verdict = verify(program(ROLES, DECLS, params=PARAMS))
    assert verdict.status != "rejected", [d.message for d in verdict.diagnostics]


def test_it_builds_for_hopper() -> None:
    text = cuda(program(ROLES, DECLS, params=PARAMS))
    assert "atom.relaxed.gpu.global.add.s32" in text
    assert "atom.acq_rel.gpu.global.add.s32" in text
    assert "(int)gridDim.x" in text
