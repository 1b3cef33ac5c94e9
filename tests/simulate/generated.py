"""Random schedules that tell what they compute: every value goes into a sum of its thread."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.lang.generate import HEADER, Generator

SIGNATURE = 'w: Tensor[f32, 4, "K"],'
START = "        for m, k in tiles:\n            with ring.use() as s:\n                pass\n"


class Observed(Generator):
    """A body whose variables are added to ``seen``, per thread."""

    def observe(self, depth: int, value: str) -> None:
        self.line(depth, f"reduce_add(seen[unit * 128 + thread()], {value})")

    def make_int(self, depth: int, size: int) -> None:
        super().make_int(depth, size)
        self.observe(depth, f"v{self.fresh}")

    def make_float(self, depth: int, size: int) -> None:
        super().make_float(depth, size)
        self.observe(depth, f"bitcast(v{self.fresh}, i32)")

    def make_fragment(self, depth: int, size: int) -> None:
        super().make_fragment(depth, size)
        self.observe(depth, f"bitcast(v{self.fresh}_q, i32)")


def schedule(seed: int) -> str:
    """Source text of a random schedule that writes ``seen``."""
    g = Observed(seed)
    g.block(4, g.random.randint(2, 7))
    text = HEADER.replace("{{", "{").replace("}}", "}")
    text = text.format(stages=g.random.choice([2, 3]), raster=g.random.choice([1, 4]))
    assert SIGNATURE in text
    assert START in text
    text = text.replace(SIGNATURE, f"{SIGNATURE} seen: Tensor[i32, 256],")
    fill = "        store(V[thread() % 64], 0.5)\n        role_sync()\n"
    return text.replace(START, fill + START) + "\n".join(g.lines) + "\n"


def arguments() -> tuple[dict[str, Any], dict[str, int | float]]:
    """Tensors and scalars for :func:`schedule`."""
    tensors = {
        "x": np.ones((70, 48), ml_dtypes.bfloat16),
        "w": np.ones((4, 48), np.float32),
        "seen": np.zeros(256, np.int32),
    }
    return tensors, {"s0": 3}
