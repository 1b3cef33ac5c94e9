"""Small schedule files for the tests of kernels, cost and evolve."""

from pathlib import Path

from cake.kernels import ScheduleFile

SCALE = """\
# Zeilenweise skalieren: y = x * rsqrt(mean(x^2) + eps) * w, ein Warp je Zeile — bewußt einfach.
@cake.schedule(target="sm_80")
def squares(x: Tensor[T, "M", "D"], sums: Tensor[f32, "M"], *, T: meta(bf16, f16, f32) = bf16,
            WARPS: meta(1, 2, 4) = 1, DP: meta(64, 128, 256) = 64):
    require(D <= DP)
    (block,) = grid(cdiv(M, WARPS))
    rows = role(warps=WARPS)
    with rows as u:
        row = block * WARPS + u
        if row < M:
            total = 0.0
            for i in static_range(DP // 32):
                d = i * 32 + lane()
                e = cast(load(x[row, d], mask=d < D, fill=0.0), f32)
                total = fma(e, e, total)
            total = warp_sum(total)
            if lane() == 0:
                store(sums[row], total)


@cake.schedule(target="sm_80")
def scale(x: Tensor[T, "M", "D"], w: Tensor[T, "D"], sums: Tensor[f32, "M"], y: Tensor[T, "M", "D"],
          eps: f32, *, T: meta(bf16, f16, f32) = bf16, WARPS: meta(1, 2, 4) = 1):
    (block,) = grid(cdiv(M, WARPS))
    rows = role(warps=WARPS)
    with rows as u:
        row = block * WARPS + u
        if row < M:
            factor = rsqrt(load(sums[row]) / cast(D, f32) + eps)
            for d in range(lane(), D, 32):
                e = cast(load(x[row, d]), f32) * factor * cast(load(w[d]), f32)
                store(y[row, d], cast(e, T))
"""
"""rmsnorm in two launches: one meta parameter in both, one in the first, a temporary."""


def file(text: str, target: str = "sm_90a", name: str = "sample") -> ScheduleFile:
    """A schedule file that exists only as text."""
    return ScheduleFile(
        name=name, path=Path(f"{name}.py"), target=target, written_for="sm_80", text=text
    )
