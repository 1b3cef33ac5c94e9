"""The attention schedule: simulated against the reference, built, and launched where possible."""

from typing import Any

import pytest

from cake.codegen.compile import compile_program
from cake.codegen.sass import disassemble, opcode_counts
from cake.kernels import Misfit
from cake.workloads import get
from tests.kernels import shipped

CONTRACT = get("attention")
SHAPE = {"B": 1, "H": 2, "Hkv": 1, "Lq": 200, "Lk": 300, "D": 72}
FAMILIES = [f.name for f in CONTRACT.families]


def attention(shape: dict[str, int], *args: Any, **options: Any) -> None:
    result = shipped.simulated("attention", shape, *args, **options)
    assert result.ok, result.detail


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_every_order_of_completion_gives_the_same_result(order: str) -> None:
    attention(SHAPE, order=order)
    attention({**SHAPE, "causal": 0}, order=order, BN=64, STAGES=3)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_input_family(family: str) -> None:
    shape = {"B": 1, "H": 1, "Hkv": 1, "Lq": 70, "Lk": 90, "D": 40}
    attention(shape, family=family, order="random", DP=64, BN=64)


@pytest.mark.parametrize(
    "case",
    [c for s in ("small", "edge") for c in CONTRACT.shapes[s] if c.shape["D"] != 1],
    ids=lambda case: case.label(),
)
def test_small_and_odd_shapes(case: Any) -> None:
    attention(dict(case.shape), case.dtype, order="random")


@pytest.mark.parametrize(("lq", "lk"), [(127, 127), (128, 129), (129, 256), (64, 257), (300, 100)])
def test_tails_of_queries_and_keys_around_the_tiles(lq: int, lk: int) -> None:
    attention({"B": 1, "H": 1, "Hkv": 1, "Lq": lq, "Lk": lk, "D": 64}, family="rising", DP=64)
    attention({"B": 1, "H": 1, "Hkv": 1, "Lq": lq, "Lk": lk, "D": 128}, BN=96)


def test_a_row_that_no_tma_box_can_start_at_is_refused() -> None:
    with pytest.raises(Misfit, match="D % 8 == 0"):
        shipped.bound("attention", {**SHAPE, "D": 20}, "bf16")


@pytest.mark.parametrize("meta", [{}, {"DP": 64, "BN": 192}, {"BN": 160}], ids=str)
def test_products_stay_asynchronous_and_nothing_spills(meta: dict[str, int]) -> None:
    """ptxas names serialised products (C7510 and others) in its notices."""
    (program,) = shipped.bound("attention", {**SHAPE, "D": 64}, "bf16", **meta).programs
    compiled = compile_program(program)
    facts = compiled.build.facts.entry(compiled.abi.name)
    assert facts is not None
    assert (facts.spill_store_bytes, facts.stack_bytes) == (0, 0)
    assert not compiled.diagnostics
    counts = opcode_counts(disassemble(compiled.build.cubin))
    assert counts["USETMAXREG"] == 2
    # The product with the keys and the one with the values stand at two places each.
    assert counts["HGMMA"] == 2 * (program.bindings["DP"] + program.bindings["BN"]) // 16


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case",
    [c for s in ("small", "edge") for c in CONTRACT.shapes[s] if c.shape["D"] != 1],
    ids=lambda case: case.label(),
)
def test_the_gpu_agrees_with_the_reference(case: Any) -> None:
    pytest.importorskip("torch")
    launch = shipped.Launcher("attention", case.shape, case.dtype)
    for family in FAMILIES:
        result = launch.judged(family)
        assert result.ok, f"{family}: {result.detail}"


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize(
    ("b", "h", "hkv", "lq", "lk", "causal"),
    [
        (4, 16, 16, 4096, 4096, 1),
        (1, 16, 16, 16384, 16384, 1),
        (2, 32, 8, 8192, 8192, 1),
        (2, 24, 3, 4097, 4097, 1),
        (3, 16, 2, 33, 20000, 1),
        (2, 16, 16, 3000, 5001, 0),
    ],
)
def test_real_sizes_agree_with_torch(
    dim: int, b: int, h: int, hkv: int, lq: int, lk: int, causal: int
) -> None:
    torch: Any = pytest.importorskip("torch")
    torch.manual_seed(5)
    shape = {"B": b, "H": h, "Hkv": hkv, "Lq": lq, "Lk": lk, "D": dim, "causal": causal}

    def normal(heads: int, length: int) -> Any:
        return torch.randn(b, heads, length, dim, device="cuda", dtype=torch.bfloat16)

    q, k, v = normal(h, lq), normal(hkv, lk), normal(hkv, lk)
    o = shipped.Launcher("attention", shape, DP=dim)({"q": q, "k": k, "v": v})["o"]
    rows = torch.cat([torch.arange(min(256, lq)), torch.arange(max(lq - 512, 0), lq)]).cuda()
    hidden = torch.arange(lk, device="cuda") > rows[:, None] + (lk - lq)
    for batch, head in {(0, 0), (b - 1, h - 1), (b // 2, h // 2)}:
        keys, values = (x[batch, head * hkv // h].double() for x in (k, v))
        scores = q[batch, head, rows].double() @ keys.t() * dim**-0.5
        if causal:
            scores = scores.masked_fill(hidden, float("-inf"))
        want = torch.softmax(scores, -1) @ values
        error = (o[batch, head, rows].double() - want).norm() / want.norm()
        assert error.item() < 4e-3
    assert bool(torch.isfinite(o).all())
