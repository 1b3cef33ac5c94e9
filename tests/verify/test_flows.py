"""Hand-written staging and in-place work: what is right is accepted, each slip is found."""

from __future__ import annotations

import pytest

from .examples import found, verdict

STAGED = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[bf16, "M", "K"], y: Tensor[bf16, "M", 64]):
    require(K % 8 == 0)
    m = grid(cdiv(M, 64))
    X = smem(bf16, (64, 64), stages=3, swizzle=128)
    math = role(warps=4)
    with math as w:
        for p in static_range(2):
            cp_async(X[p][w * 16 : w * 16 + 16], x[m * 64 + w * 16, p * 64])
            cp_async_commit()
        stage = 0
        ahead = 2
        a = fragment(bf16, (64, 64), fill=0.0)
        for k in range(cdiv(K, 64)):
            cp_async_wait(1)
            role_sync()
            a = ldmatrix(X[stage])
            cp_async(X[ahead][w * 16 : w * 16 + 16], x[m * 64 + w * 16, (k + 2) * 64])
            cp_async_commit()
            stage = (stage + 1) % 3
            ahead = select(ahead == 2, 0, ahead + 1)
        if w == 0:
            store(y[m * 64, 0], a)
"""

SLIPS = {
    "waits for too few groups": ("cp_async_wait(1)", "cp_async_wait(2)", "CK340"),
    "waits before the barrier is missing": ("            cp_async_wait(1)\n", "", "CK340"),
    "no barrier": ("            role_sync()\n", "", "CK342"),
    "a barrier of the unit only": ("role_sync()", "unit_sync()", "CK342"),
    "copies into the stage that is read": ("ahead = 2", "ahead = 0", "CK343"),
    "one stage too few": ("stages=3", "stages=2", "CK319"),
    "all warps copy into one place": ("X[ahead][w * 16 : w * 16 + 16]", "X[ahead][0:16]", "CK339"),
    "the reader starts a stage late": ("stage = 0", "stage = 1", "CK340"),
    "no commit in the loop": (
        "(k + 2) * 64])\n            cp_async_commit()",
        "(k + 2) * 64])",
        "CK341",
    ),
}

IN_PLACE = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", 64], y: Tensor[bf16, "M", 64]):
    require(M % 64 == 0)
    tiles = persistent(M // 64)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        for m in tiles:
            with xs.fill() as s:
                tma_load(X[s], x[m * 64, 0])
    with math:
        for m in tiles:
            with xs.use() as s:
                a = ldmatrix(X[s])
                unit_sync()
                stmatrix(X[s], cast(cast(a, f32) * 2.0, bf16))
                fence_async()
                unit_sync()
                tma_store(y[m * 64, 0], X[s])
                tma_store_commit()
                tma_store_wait(0)
"""

IN_PLACE_SLIPS = {
    "one thread fences for all": (
        "                fence_async()\n",
        "                if thread() == 0:\n                    fence_async()\n",
        "CK350",
    ),
    "no fence": ("                fence_async()\n", "", "CK350"),
    "no barrier behind the fence": (
        "fence_async()\n                unit_sync()",
        "fence_async()",
        "CK351",
    ),
    "no barrier between reading and writing": (
        "                unit_sync()\n                stmatrix",
        "                stmatrix",
        "CK343",
    ),
    "no wait before the release": ("                tma_store_wait(0)\n", "", "CK404"),
}


def _codes(text: str) -> set[str]:
    return {d.code for d in verdict(text).diagnostics if d.severity == "error"}


def test_hand_written_staging_is_accepted() -> None:
    v = verdict(STAGED)
    assert v.status == "accepted", found(v)


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_in_hand_written_staging_is_found(name: str) -> None:
    old, new, code = SLIPS[name]
    text = STAGED.replace(old, new)
    assert text != STAGED
    assert code in _codes(text), found(verdict(text))


def test_work_in_place_is_accepted() -> None:
    v = verdict(IN_PLACE)
    assert v.status == "accepted", found(v)


@pytest.mark.parametrize("name", IN_PLACE_SLIPS)
def test_a_slip_in_place_is_found(name: str) -> None:
    old, new, code = IN_PLACE_SLIPS[name]
    text = IN_PLACE.replace(old, new)
    assert text != IN_PLACE
    assert code in _codes(text), found(verdict(text))
