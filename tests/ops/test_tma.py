"""TMA and bulk copies: operands, boxes, values at the tensor's edge, emitted instructions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cake.ir.dtypes import BF16, F32
from cake.ir.types import SmemView
from cake.lang.elaborate import parse
from cake.ops.tma_boxes import Boxes, boxes
from tests.ops.schedules import accepted, cuda, finding, message, program, run, source

BF = ml_dtypes.bfloat16
BARRIER = "b = barrier(arrivals=1)"
TILE = "X = smem(bf16, (64, 128), swizzle=128)\n" + BARRIER


@pytest.mark.parametrize(
    ("shape", "buffer", "dtype", "swizzle", "box", "count"),
    [
        ((64, 128), (64, 128), BF16, 128, (64, 64), 2),
        ((512, 64), (512, 64), BF16, 128, (256, 64), 2),
        ((16, 64), (64, 64), BF16, 128, (16, 64), 1),
        ((4, 16, 64), (4, 32, 64), BF16, 128, (1, 16, 64), 4),
        ((4, 32, 64), (4, 32, 64), BF16, 128, (4, 32, 64), 1),
        ((64, 32), (64, 32), F32, 0, (64, 32), 1),
        ((1024,), (1024,), F32, 0, (256,), 4),
    ],
)
def test_a_tile_is_cut_into_boxes_that_cover_it(
    shape: tuple[int, ...], buffer: tuple[int, ...], dtype: Any, swizzle: int,
    box: tuple[int, ...], count: int,
) -> None:  # fmt: skip
    cut = boxes(shape, SmemView(dtype, shape, swizzle), buffer)
    assert isinstance(cut, Boxes)
    assert (cut.shape, len(cut.offsets)) == (box, count)
    covered = np.zeros(shape, int)
    for offset in cut.offsets:
        covered[tuple(slice(o, o + n) for o, n in zip(offset, cut.shape, strict=True))] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize(
    ("shape", "buffer", "dtype", "swizzle", "reason"),
    [
        ((8, 96), (8, 96), BF16, 128, "not whole swizzle blocks of 64"),
        ((8, 512), (8, 512), F32, 0, "longer than a box"),
        ((8, 2), (8, 2), F32, 0, "not a multiple of 16"),
        ((6, 4, 64), (6, 8, 64), BF16, 128, "repeats after 8"),
    ],
)
def test_tiles_without_boxes_are_refused(
    shape: tuple[int, ...], buffer: tuple[int, ...], dtype: Any, swizzle: int, reason: str
) -> None:
    cut = boxes(shape, SmemView(dtype, shape, swizzle), buffer)
    assert isinstance(cut, str)
    assert reason in cut


@pytest.mark.parametrize(
    ("body", "decls", "said"),
    [
        ("tma_load(X, x[0, 0, 0])", TILE, "no barrier to complete on"),
        ("tma_load(X, y[0, 0], barrier=b)", TILE, "the tile holds bf16, the tensor f32"),
        ("tma_load(X.T, x[0, 0, 0], barrier=b)", TILE, "transposed"),
        ("tma_load(X, x[0, lane(), 0], barrier=b)", TILE, "the same in all threads"),
        ("tma_load(X[4:12], x[0, 0, 0], barrier=b)", TILE, "inside a swizzle pattern of 8 rows"),
        ("tma_load(X, x[0, 0, 0], barrier=b, slot=1)", TILE, "outside the 1 slots of b"),
        ("tma_load(X, x[0, 0, 0], cache='hot', barrier=b)", TILE, "cache must be one of"),
        ("tma_load(X, x[0, 0, 0], multicast=True, barrier=b)", TILE, "multicast needs a cluster"),
        ("tma_load(X, X, barrier=b)", TILE, "a coordinate of a global tensor"),
        ("tma_load(X, x[0, 0, 0], axes=(0, 1), barrier=b)", TILE, "its last one among them"),
        ("tma_load(X, x[0, 0, 0], axes=(2,), barrier=b)", TILE, "2 axes of a tensor of 3"),
        ("tma_store(z[0, 0], X, axes=(1, 0))", TILE, "ascending order"),
        ("tma_load(Y, w[0], barrier=b)", "Y = smem(f32, (8, 8))\n" + BARRIER, "2 axes, w only 1"),
        ("tma_store(z[0, 0], Y)", "Y = smem(bf16, (8, 6))", "not a multiple of 16"),
        ("tma_reduce_add(d[0], D)", "D = smem(f64, (16,))", "TMA adds f32"),
        ("tma_store_wait(64)", "", "in [0, 63]"),
        ("bulk_load(X, x[0, 0, 0], barrier=b)", TILE, "one unswizzled row"),
        ("bulk_load(Q, w[0], barrier=b)", "Q = smem(f32, (6,))\n" + BARRIER, "16 bytes, got 24"),
        ("bulk_load(Q, w[2], barrier=b)", "Q = smem(f32, (8,))\n" + BARRIER, "of 4, got 2"),
        ("tma_prefetch(X, w[0])", TILE, "the tile holds bf16"),
        ("prefetch(X)", TILE, "a coordinate of a global tensor"),
    ],
)  # fmt: skip
def test_operands_are_checked(body: str, decls: str, said: str) -> None:
    params = (
        'x: Tensor[bf16, "B", "M", 128], y: Tensor[f32, "M", "N"], z: Tensor[bf16, "M", "N"], '
        'w: Tensor[f32, "N"], d: Tensor[f64, "N"]'
    )
    assert said in message(body, decls, params=params)


def test_copies_need_a_target_with_tma() -> None:
    found = message("tma_load(X, x[0, 0, 0], barrier=b)", TILE, target="sm_80")
    assert "does not exist on sm_80" in found
    assert "sm_90a" in found


def test_a_local_ring_refuses_a_multicast_copy() -> None:
    decls = "cluster(2)\nX = smem(bf16, (64, 128), stages=2, swizzle=128)"
    body = """
r = role(warps=1)
p = pipeline(X, producer=r, consumer=r)
with r:
    with p.fill() as s:
        tma_load(X[s], x[0, 0, 0], multicast=True)
"""
    (error,) = parse(source(body, decls)).diagnostics
    assert "ring p is local" in error.message
    assert "multicast=True" in error.helps[0]


COPY = """
expect_tx(b, 0, 64 * 128 * 2)
tma_load(X, x[0, 32, 0], barrier=b)
arrive(b, 0)
barrier_wait(b, 0, 0)
{store}(z[{row}, 72], X)
tma_store_commit()
tma_store_wait(0, read=False)
"""
EDGES = 'x: Tensor[bf16, "B", "M", 128], z: Tensor[bf16, "R", "N"]'


@pytest.mark.parametrize("order", ["late", "early", "random"])
@pytest.mark.parametrize("store", ["tma_store", "tma_reduce_add"])
def test_loads_are_zero_filled_and_stores_clipped(order: str, store: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 70, 128)).astype(BF)
    z = rng.standard_normal((60, 136)).astype(BF)
    want = z.copy()
    tile = np.zeros((64, 128), BF)
    tile[:38] = x[0, 32:]
    part = tile[: 60 - 8, : 136 - 72]
    want[8:, 72:] = part if store == "tma_store" else (want[8:, 72:] + part).astype(BF)
    made = accepted(COPY.format(store=store, row=8), TILE, params=EDGES)
    run(made, {"x": x, "z": z}, order)
    np.testing.assert_array_equal(z, want)


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_a_tile_may_run_along_axes_that_are_not_neighbours(order: str) -> None:
    body = COPY.replace("x[0, 32, 0]", "x[8, 1, 0], axes=(0, 2)")
    body = body.replace("z[{row}, 72], X", "z[4, 2, 0], X, axes=(0, 2)")
    x = np.random.default_rng(1).standard_normal((60, 3, 128)).astype(BF)
    z = np.zeros((40, 4, 128), BF)
    params = 'x: Tensor[bf16, "M", "B", 128], z: Tensor[bf16, "R", "N", 128]'
    made = accepted(body.format(store="tma_store"), TILE, params=params)
    run(made, {"x": x, "z": z}, order)
    want = np.zeros_like(z)
    want[4:, 2] = x[8 : 8 + 36, 1]
    np.testing.assert_array_equal(z, want)
    text = cuda(made)
    assert "tma_load_3d" in text
    assert "tma_store_3d" in text


def test_what_lies_outside_can_be_nan() -> None:
    body = COPY.format(store="tma_store", row=0).replace("barrier=b)", "barrier=b, outside='nan')")
    x, z = np.ones((1, 40, 128), BF), np.zeros((64, 200), BF)
    made = accepted(body, TILE, params=EDGES)
    run(made, {"x": x, "z": z})
    assert (z[:8, 72:] == 1).all()
    assert np.isnan(z[8:, 72:].astype(np.float32)).all()
    text = "Q = smem(i32, (4,))\n" + BARRIER
    assert "can be NaN" in message(
        "tma_load(Q, k[0], barrier=b, outside='nan')", text, params='k: Tensor[i32, "N"]'
    )


def test_an_origin_inside_a_swizzle_pattern_is_found_at_run_time() -> None:
    body = """
expect_tx(b, 0, 4096)
for i in range(2):
    tma_load(X[i * 4 : i * 4 + 8], x[0, 0, 0], barrier=b)
"""
    tensors = {"x": np.zeros((1, 8, 128), BF), "z": np.zeros((8, 128), BF)}
    found = finding(accepted(body, TILE, params=EDGES), tensors)
    assert "CK591" in found
    assert "row 4, inside a swizzle pattern of 8 rows" in found


MULTICAST = """
X = smem(bf16, (64, 64), stages=2, swizzle=128)
load = role(warps=1)
math = role(warps=2)
p = pipeline(X, producer=load, consumer=math, multicast=True)
"""
MULTICAST_ROLES = """
(m,) = grid(2)
with load:
    for k in range(5):
        with p.fill() as s:
            tma_load(X[s], x[k, 0], multicast=True)
with math as u:
    for k in range(5):
        with p.use() as s:
            for i in range(32):
                store(y[m, k, u * 32 + i], load(X[s][u * 32 + i, lane()]))
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_multicast_brings_every_slice_to_every_cta(order: str) -> None:
    params = 'x: Tensor[bf16, "M", 64], y: Tensor[bf16, 2, 5, 64]'
    roles = MULTICAST_ROLES.replace(
        "store(y[m, k, u * 32 + i], load(X[s][u * 32 + i, lane()]))",
        "store(y[m, k, u * 32 + i], load(X[s][u * 32 + i, 7]))",
    )
    made = program("cluster(2)\n" + roles, MULTICAST, params=params)
    x = np.arange(70 * 64).reshape(70, 64).astype(BF)
    y = np.zeros((2, 5, 64), BF)
    run(made, {"x": x, "y": y}, order)
    for k in range(5):
        for cta in range(2):
            np.testing.assert_array_equal(y[cta, k], x[k : k + 64, 7])


def test_bulk_loads_move_one_row() -> None:
    body = """
expect_tx(b, 0, 64)
bulk_load(Q, w[8], barrier=b)
arrive(b, 0)
barrier_wait(b, 0, 0)
if lane() < 16:
    store(out[lane()], load(Q[lane()]))
"""
    params = 'w: Tensor[f32, "N"], out: Tensor[f32, 16]'
    made = accepted(body, "Q = smem(f32, (16,))\nb = barrier(arrivals=1)", params=params)
    w, out = np.arange(32, dtype=np.float32), np.zeros(16, np.float32)
    run(made, {"w": w, "out": out})
    np.testing.assert_array_equal(out, w[8:24])
    assert "accessed at (20,)" in finding(made, {"w": w[:20].copy(), "out": out})


def test_emitted_copies_compile_for_every_rank() -> None:
    params = ", ".join(f"t{r}: Tensor[f32, {', '.join(['16'] * r)}]" for r in range(1, 6))
    lines, decls = [], ["b = barrier(arrivals=1)"]
    for rank in range(1, 6):
        decls.append(f"S{rank} = smem(f32, {(16,) * min(rank, 3)})")
        place = f"t{rank}[{', '.join(['0'] * rank)}]"
        lines += [
            f"tma_load(S{rank}, {place}, barrier=b)",
            f"tma_store({place}, S{rank})",
            f"tma_reduce_add({place}, S{rank})",
            f"tma_prefetch(S{rank}, {place})",
        ]
    text = cuda(accepted("\n".join(lines), "\n".join(decls), params=params))
    for rank in range(1, 6):
        assert f"cp.async.bulk.tensor.{rank}d.shared::cta.global" in text
        assert f"cp.reduce.async.bulk.tensor.{rank}d.global" in text


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_emitted_multicast_names_the_cluster_and_arrives_remotely(target: str) -> None:
    params = 'x: Tensor[bf16, "M", 64], y: Tensor[bf16, 2, 5, 64]'
    roles = "cluster(2)\n" + MULTICAST_ROLES.replace("True)", "True, cache='evict_first')")
    text = cuda(program(roles, MULTICAST, params=params, target=target))
    assert ".multicast::cluster.L2::cache_hint" in text
    assert "mbarrier.arrive.release.cluster.shared::cluster.b64" in text
    assert "try_wait.parity.acquire.cluster" in text


def test_one_thread_of_a_warpgroup_stores_and_all_learn_of_the_end() -> None:
    body = """
fence_async()
unit_sync()
tma_store(z[0, 0], X)
tma_store_commit()
tma_store_wait(0)
"""
    text = cuda(accepted(body, TILE, role="warpgroups=2"))
    assert "wait_group.read" in text
    assert text.count("bar_sync(1 + unit, 128);") == 2


def test_prefetch_compiles_everywhere() -> None:
    for target in ("sm_80", "sm_90a"):
        assert "prefetch.global.L2" in cuda(accepted("prefetch(w[lane()])", target=target))
