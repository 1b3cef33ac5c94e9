"""Survivors that mean the same as the original, each with its argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """Why mutants of ``operator`` in ``subject`` whose diff contains ``text`` are equivalent.

    An empty ``subject`` stands for every schedule.
    """

    operator: str
    reason: str
    subject: str = ""
    text: str = ""


ARGUMENTS: tuple[Argument, ...] = (
    Argument(
        operator="change swizzle",
        reason="every access goes through the declared layout, so both sides change together",
    ),
    Argument(
        operator="stages - 1",
        reason="the roles hold fewer slots at once than the ring keeps; only overlap is lost",
    ),
    Argument(
        operator="drop condition",
        text="if lane() == 0",
        reason="a reduction gives all lanes the same value, which all store to the same place",
    ),
    Argument(
        operator="drop init",
        subject="rmsnorm/sm_80",
        text="kept = registers",
        reason="the unrolled loop writes every element before it is read",
    ),
    Argument(
        operator="add init",
        subject="gemm/sm_90a_small_m",
        text="W[last]",
        reason="the accumulator was filled with zeros: starting it gives the same sum",
    ),
    Argument(
        operator="drop guard",
        text=" % ",
        reason="the launch refuses rows that are not aligned, and CK320 warns of it",
    ),
    Argument(
        operator="swap statements",
        subject="kmeans_assign/sm_80",
        text="cp_async(",
        reason="two copies of one group into different buffers",
    ),
    Argument(
        operator="swap statements",
        text="store(cursor[",
        reason="two stores of one thread to different words",
    ),
    Argument(
        operator="swap statements",
        subject="kmeans_assign/sm_90a",
        text="wgmma(acc, X[sx][row : row + 64, 0 : 48]",
        reason="the turns of the warpgroups order their issue for speed, not their data",
    ),
    Argument(
        operator="move fence up",
        subject="kmeans_assign/sm_90a",
        text="fence_async()",
        reason="the slot was read by the statement before; the other one touches registers only",
    ),
    Argument(
        operator="move barrier down",
        subject="softmax/sm_80",
        text="whole = var(f32, -inf)",
        reason="the barrier passes a statement on registers only",
    ),
    Argument(
        operator="move barrier down",
        subject="rmsnorm/sm_80",
        text="whole = var(f32, 0.0)",
        reason="the barrier passes a statement on registers only",
    ),
    Argument(
        operator="move barrier down",
        subject="kmeans_assign/sm_80",
        text="new = k + 32 + part",
        reason="the barrier passes a statement on registers only",
    ),
    Argument(
        operator="move barrier down",
        subject="kmeans_update/sm_90a_deterministic",
        reason="the barrier passes declarations of registers only",
    ),
    Argument(
        operator="move barrier down",
        subject="kmeans_update/sm_90a",
        reason="the barrier passes declarations of registers only",
    ),
    Argument(
        operator="move commit up",
        subject="gemm/sm_80",
        reason="the commit passes the advance of the stage, a register",
    ),
    Argument(
        operator="move wait down",
        subject="kmeans_assign/sm_80",
        text="argmin_quad",
        reason="the wait passes a reduction of registers only",
    ),
    Argument(
        operator="move wait down",
        subject="gemm/sm_80",
        text="store(d[",
        reason="the wait passes a store of registers to global memory",
    ),
    Argument(
        operator="swap statements",
        subject="softmax/sm_80",
        text="store(sums[u], total)",
        reason="two stores of one thread to different buffers",
    ),
    Argument(
        operator="swap statements",
        subject="kmeans_assign/sm_90a",
        text="wgmma(acc, X[sx][row : row + 64, 48 : 64]",
        reason="the turns of the warpgroups order their issue for speed, not their data",
    ),
    Argument(
        operator="swap statements",
        subject="attention/sm_90a",
        text="named_arrive(turn, 1 - wg)",
        reason="the turns of the warpgroups order their issue for speed, not their data",
    ),
    Argument(
        operator="drop mask",
        subject="gemm/sm_80",
        text="clamp=True",
        reason="rows beyond the tensor become zeros; they feed only elements that are never stored",
    ),
    Argument(
        operator="role + 1 unit",
        subject="kmeans_update/sm_90a",
        text="rows = role(warps=9)",
        reason="the ninth warp repeats the next CTA's row and stores equal values",
    ),
    Argument(
        operator="shift comparison",
        subject="attention/sm_90a",
        text="if n + 64 >= min(row + beyond, Lk)",
        reason="a tile that ends where the visible keys end is masked in vain",
    ),
    Argument(
        operator="move barrier down",
        subject="gemm/sm_90a_small_m",
        text="r = lanes(mine)",
        reason="the barrier passes a statement on registers only",
    ),
    Argument(
        operator="swap statements",
        subject="gemm/sm_80",
        text="cp_async(",
        reason="two copies of one group into different buffers",
    ),
    Argument(
        operator="drop guard",
        subject="gemm/sm_90a_small_m",
        text="require(K > 0)",
        reason="without a product the accumulator keeps its zeros, which is the result for K = 0",
    ),
    Argument(
        operator="loop ends later",
        subject="gemm/sm_80",
        text="KT + 1",
        reason="slices beyond K are zeros, and a round more adds nothing",
    ),
    Argument(
        operator="drop condition",
        subject="kmeans_update/sm_90a_deterministic",
        text="store(counts[b, k], count)",
        reason="all lanes store the same count to the same place",
    ),
    Argument(
        operator="swap statements",
        subject="kmeans_update/sm_90a_deterministic",
        text="store(",
        reason="two stores of one thread to different tensors",
    ),
)


def argument(fate: Mapping[str, Any]) -> str | None:
    """The argument for the equivalence of a survivor, None if there is none."""
    for a in ARGUMENTS:
        fits = a.operator == fate["operator"] and a.subject in ("", fate["subject"])
        if fits and a.text in fate["diff"]:
            return a.reason
    return None
