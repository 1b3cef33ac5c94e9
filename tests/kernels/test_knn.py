"""The neighbour search: simulated against the reference, built, and launched where possible."""

from typing import Any

import pytest

from cake.codegen.compile import compile_program
from cake.codegen.sass import disassemble, opcode_counts
from cake.kernels import Misfit
from cake.workloads import get
from tests.kernels import shipped

CONTRACT = get("knn_search")
FAMILIES = [f.name for f in CONTRACT.families]
LISTS = "sm_90a_lists"
SMALL = {"WARPS": 1, "PER": 8, "DP": 64, "KP": 16}
"""One warp a query: simulation takes the time of its warps."""
FEW = {"file": LISTS, "SPLITS": 1, "DP": 64, "WG": 1, "KP": 16}


def search(shape: dict[str, int], *args: Any, **options: Any) -> None:
    result = shipped.simulated("knn_search", shape, *args, **options)
    assert result.ok, result.detail


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_every_order_of_completion_gives_the_same_result(order: str) -> None:
    shape = {"B": 2, "Q": 2, "M": 300, "D": 64, "k": 5}
    search(shape, order=order, CHUNK=1, **SMALL)
    search(shape, order=order, **{**FEW, "SPLITS": 8})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_input_family(family: str) -> None:
    shape = {"B": 1, "Q": 2, "M": 140, "D": 40, "k": 12}
    search(shape, family=family, order="random", **SMALL)
    search(shape, family=family, order="random", **FEW)


@pytest.mark.parametrize(
    ("shape", "dtype", "meta"),
    [
        ({"B": 1, "Q": 3, "M": 20, "D": 48, "k": 10}, "bf16", {}),
        ({"B": 1, "Q": 1, "M": 33, "D": 16, "k": 33}, "bf16", {"WARPS": 2, "KP": 64}),
        ({"B": 1, "Q": 1, "M": 129, "D": 8, "k": 1}, "bf16", {}),
        ({"B": 3, "Q": 1, "M": 128, "D": 64, "k": 16}, "bf16", {"WG": 1, "BN": 256}),
        ({"B": 1, "Q": 2, "M": 257, "D": 80, "k": 7}, "f16", {"DP": 128, "WG": 3}),
        ({"B": 1, "Q": 1, "M": 140, "D": 200, "k": 3}, "bf16", {"DP": 256, "WG": 4}),
        ({"B": 0, "Q": 4, "M": 8, "D": 16, "k": 2}, "bf16", {}),
        ({"B": 1, "Q": 0, "M": 8, "D": 16, "k": 2}, "bf16", {}),
    ],
    ids=str,
)
def test_small_and_odd_shapes(shape: dict[str, int], dtype: str, meta: dict[str, int]) -> None:
    search(shape, dtype, order="random", **{**SMALL, **meta})


@pytest.mark.parametrize(
    ("shape", "dtype", "meta"),
    [
        ({"B": 1, "Q": 70, "M": 333, "D": 72, "k": 20}, "f16", {"WG": 2, "DP": 128, "KP": 32}),
        ({"B": 2, "Q": 3, "M": 20, "D": 48, "k": 8}, "bf16", {"KP": 8, "SPLITS": 8}),
        ({"B": 1, "Q": 1, "M": 129, "D": 8, "k": 1}, "bf16", {"BN": 128}),
        ({"B": 1, "Q": 0, "M": 8, "D": 16, "k": 2}, "bf16", {}),
    ],
    ids=str,
)
def test_lists_in_registers(shape: dict[str, int], dtype: str, meta: dict[str, int]) -> None:
    search(shape, dtype, order="random", **{**FEW, **meta})


def test_lists_are_merged_over_many_blocks() -> None:
    """More blocks of rows, and more candidates, than the threads take in one step."""
    shape = {"B": 1, "Q": 1, "M": 4300, "D": 8, "k": 20}
    for family in ("normal", "integer_ties"):
        search(shape, family=family, CHUNK=8, **{**SMALL, "KP": 32})


def test_a_cta_that_holds_a_hundred_neighbours() -> None:
    search({"B": 1, "Q": 1, "M": 700, "D": 40, "k": 100}, WARPS=4, PER=8, KP=128)


def test_parameters_follow_the_problem_or_it_is_refused() -> None:
    shape = {"B": 1, "Q": 8, "M": 262_144, "D": 1024, "k": 64}
    fixed = {"WG": 1, "BN": 128, "NG": 16384, "CHUNK": 8, "PER": 16, "WARPS": 4, "ROWS": 4}
    meta = shipped.bound("knn_search", shape, "bf16", **fixed).meta
    assert (meta["DP"], meta["KP"]) == (1024, 64)
    with pytest.raises(Misfit, match="D % 8 == 0"):
        shipped.bound("knn_search", {**shape, "D": 63}, "bf16", **fixed)
    with pytest.raises(Misfit, match="k <= "):
        shipped.bound("knn_search", {**shape, "k": 129}, "bf16", DP=1024, **fixed)


@pytest.mark.parametrize(
    "meta",
    [{}, {"WG": 4}, {"BN": 256}, {"DP": 1024}, {"file": LISTS, "KP": 32}, {"file": LISTS, "WG": 1}],
    ids=str,
)
def test_nothing_spills_and_products_stay_asynchronous(meta: dict[str, Any]) -> None:
    shape = {"B": 1, "Q": 8, "M": 4096, "D": 64, "k": 10}
    for program in shipped.bound("knn_search", shape, "bf16", **meta).programs:
        compiled = compile_program(program)
        facts = compiled.build.facts.entry(compiled.abi.name)
        assert facts is not None
        assert (facts.spill_store_bytes, facts.stack_bytes) == (0, 0)
        assert not compiled.diagnostics
        if program.name in ("blocks", "scan"):
            counts = opcode_counts(disassemble(compiled.build.cubin))
            # The first slice of features and the loop over the others, four instructions each.
            assert (counts["HGMMA"], counts["USETMAXREG"]) == (8, 2)


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("file", ["sm_90a", LISTS])
@pytest.mark.parametrize(
    "case", [*CONTRACT.shapes["small"], *CONTRACT.shapes["edge"]], ids=lambda case: case.label()
)
def test_the_gpu_agrees_with_the_reference(case: Any, file: str) -> None:
    pytest.importorskip("torch")
    if case.shape["D"] % 8 or case.shape["k"] > (32 if file == LISTS else 128):
        pytest.skip("not admitted by the guards")
    launch = shipped.Launcher("knn_search", case.shape, case.dtype, file=file)
    for family in FAMILIES:
        result = launch.judged(family)
        assert result.ok, f"{family}: {result.detail}"


@pytest.mark.gpu
@pytest.mark.parametrize("file", ["sm_90a", LISTS])
@pytest.mark.parametrize(
    ("b", "q", "m", "d", "k"),
    [
        (1, 1, 131_072, 128, 10),
        (1, 128, 131_072, 128, 32),
        (1, 128, 65_537, 128, 64),
        (2, 4096, 20_000, 128, 10),
        (1, 16, 1_048_576, 128, 32),
        (1, 1000, 100_000, 768, 10),
        (1, 300, 262_144, 256, 100),
    ],
)
def test_real_sizes_agree_with_torch(b: int, q: int, m: int, d: int, k: int, file: str) -> None:
    torch: Any = pytest.importorskip("torch")
    if file == LISTS and k > 32:
        pytest.skip("lists in registers hold at most 32 neighbours")
    torch.manual_seed(7)
    shape = {"B": b, "Q": q, "M": m, "D": d, "k": k}
    inputs = {
        "q": torch.randn(b, q, d, device="cuda", dtype=torch.bfloat16),
        "x": torch.randn(b, m, d, device="cuda", dtype=torch.bfloat16),
    }
    got = shipped.Launcher("knn_search", shape, file=file)(inputs)
    for batch in range(b):
        rows = torch.arange(0, q, max(1, q // 64), device="cuda")
        points, database = inputs["q"][batch, rows].double(), inputs["x"][batch].double()
        exact = (points**2).sum(1)[:, None] + (database**2).sum(1) - 2 * points @ database.t()
        want = exact.topk(k, largest=False, sorted=True).values
        ids, near = got["ids"][batch, rows].long(), got["distances"][batch, rows].double()
        assert 0 <= int(ids.min()) <= int(ids.max()) < m
        assert bool((ids.sort(1).values.diff(dim=1) > 0).all())
        assert bool((near.diff(dim=1) >= 0).all())
        chosen = exact.gather(1, ids)
        # Norms of about D, rounded to 24 bits, decide what is near, and may be part of distances.
        assert float((chosen - want).abs().max()) < 1e-5 * d
        assert float((near - chosen).abs().max()) < 1e-5 * d
