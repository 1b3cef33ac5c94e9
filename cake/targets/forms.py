"""Instruction forms of the tensor cores: which shapes and element types go together.

Element types are plain strings in PTX spelling, except that integers are written i8, u8, i32.
Only dense forms are listed; the language has no structured sparsity and no 4-bit integers.
"""

from __future__ import annotations

from dataclasses import dataclass

BITS = {
    "b1": 1,
    "e2m1": 4,
    "e2m3": 6,
    "e3m2": 6,
    "e4m3": 8,
    "e5m2": 8,
    "i8": 8,
    "u8": 8,
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "i32": 32,
    "f64": 64,
}
"""Width in bits of each element type that a form can name."""


def spans(values: tuple[int, ...]) -> str:
    """Compact spelling of ascending values: ``8..32/8, 48..256/16`` names a range and its step."""
    words: list[str] = []
    start = 0
    while start < len(values):
        end = start + 1
        step = values[end] - values[start] if end < len(values) else 0
        while end < len(values) and values[end] - values[end - 1] == step:
            end += 1
        if end - start > 2:
            words.append(f"{values[start]}..{values[end - 1]}/{step}")
        else:
            end = start + 1
            words.append(str(values[start]))
        start = end
    return ", ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class MmaForm:
    """One dense ``mma.sync``: D (m, n, acc) = A (m, k, a) x B (k, n, b) + C.

    A is row-major and B column-major.
    ``kind`` is the ``.kind::`` qualifier the form needs, ``op`` the bit operation of b1 forms.
    ``native`` is false where ptxas emits several instructions instead of one; the form is
    correct there and slow (FP8 on sm_90a runs as two f16 products).
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    acc: str
    kind: str | None = None
    op: str | None = None
    native: bool = True

    @property
    def shape(self) -> str:
        """The PTX shape modifier without its dot."""
        return f"m{self.m}n{self.n}k{self.k}"

    def __str__(self) -> str:
        kind = f" {self.kind}" if self.kind else ""
        op = f" {self.op}.popc" if self.op else ""
        slow = "" if self.native else " (several instructions)"
        return f"{self.shape}{kind} {self.a} x {self.b} -> {self.acc}{op}{slow}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockScaledForm:
    """One ``mma.sync`` with block scaling: f32 D (16, 8) = (A * scale_a) x (B * scale_b) + C.

    ``scale_vec`` scale factors of type ``scale`` cover each row of A (column of B) over k.
    """

    kind: str
    k: int
    a: str
    b: str
    scale: str
    scale_vec: int
    m: int = 16
    n: int = 8
    acc: str = "f32"

    @property
    def shape(self) -> str:
        """The PTX shape modifier without its dot."""
        return f"m{self.m}n{self.n}k{self.k}"

    def __str__(self) -> str:
        return (
            f"{self.shape} {self.kind} {self.a} x {self.b} -> {self.acc}, "
            f"{self.scale} scales {self.scale_vec}X"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WgmmaForm:
    """One family of ``wgmma.mma_async``: one warpgroup, m = 64, n chosen from ``n_values``.

    B always comes from shared memory; A from shared memory or, for every element type, from
    registers. ``mn_major`` says whether an operand in shared memory may be M- or N-major
    ("transposed"); otherwise both must be K-major. ``op`` is the bit operation of the b1 form.
    """

    k: int
    a: str
    b: str
    acc: str
    n_values: tuple[int, ...]
    mn_major: bool
    op: str | None = None
    m: int = 64

    def __str__(self) -> str:
        extra = f" {self.op}.popc" if self.op else ""
        return (
            f"m{self.m} n{{{spans(self.n_values)}}} k{self.k} "
            f"{self.a} x {self.b} -> {self.acc}{extra}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tcgen05Form:
    """One family of ``tcgen05.mma``: any type of ``a`` with any of ``b``, any of ``acc``.

    ``m`` counts the rows of the whole group of ``cta_group`` CTAs. ``scales`` lists pairs of scale
    type and elements of k per scale; it is empty for unscaled kinds. A may come from tensor memory.
    """

    kind: str
    cta_group: int
    m: int
    n_values: tuple[int, ...]
    k: int
    a: tuple[str, ...]
    b: tuple[str, ...]
    acc: tuple[str, ...]
    mn_major: bool
    scales: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        scaled = ", ".join(f"{scale} per {block}" for scale, block in self.scales)
        return (
            f"cta_group::{self.cta_group} m{self.m} n{{{spans(self.n_values)}}} k{self.k} "
            f"{self.kind}: {'/'.join(self.a)} x {'/'.join(self.b)} -> {'/'.join(self.acc)}"
            + (f", scales {scaled}" if scaled else "")
        )
