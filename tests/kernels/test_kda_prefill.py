"""The delta attention schedule: simulated against the reference, built, launched where possible."""

from typing import Any

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from cake.codegen.sass import disassemble, opcode_counts
from cake.kernels import simulate_schedule
from cake.workloads import compare, generate, get, problem
from tests.kernels import shipped

CONTRACT = get("kda_prefill")
FAMILIES = [f.name for f in CONTRACT.families]
OWN = ["trained", "strong_gates", "closed_gates", "equal_keys", "positive", "nan"]


def shape(lengths: str, heads: int = 1, **more: Any) -> dict[str, Any]:
    """A shape of packed sequences."""
    tokens = [int(n) for n in lengths.split("+")]
    count = {"T": sum(tokens), "N": len(tokens), "N1": len(tokens) + 1}
    fixed = {"H": heads, "Hb": heads, "D": 128, "V": 128, "lengths": lengths}
    return {**count, **fixed, **more}


def simulated(*args: Any, **options: Any) -> None:
    result = shipped.simulated("kda_prefill", *args, **options)
    assert result.ok, result.detail


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_every_order_of_completion_gives_the_same_result(order: str) -> None:
    simulated(shape("66"), family="trained", order=order)


@pytest.mark.parametrize("family", ["large", "heavy_tails", "zero", "duplicated_rows", *OWN])
def test_every_kind_of_input(family: str) -> None:
    simulated(shape("9+8" if family == "nan" else "17"), family=family, order="random")


@pytest.mark.parametrize("family", ["trained", "strong_gates"])
def test_gates_without_a_bound(family: str) -> None:
    simulated(shape("20", bounded=0), family=family, order="random")


@pytest.mark.parametrize("case", CONTRACT.shapes["edge"], ids=lambda case: case.label())
def test_odd_shapes(case: Any) -> None:
    simulated(dict(case.shape), case.dtype, order="random")


@pytest.mark.parametrize("length", [7, 8, 32, 65])
def test_lengths_around_chunks_and_tiles(length: int) -> None:
    simulated(shape(str(length)), family="closed_gates")


def test_other_tiles_and_halves_of_the_state() -> None:
    simulated(shape("35"), family="trained", TILE=32, STAGES=1)
    simulated(shape("50"), family="trained", TILE=48, PARTS=2)


def run(dims: dict[str, Any], inputs: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The outputs of a simulation without findings; ``given`` arrays take the place of new ones."""
    instance = problem(CONTRACT, dims, "bf16")
    outputs = {**shipped.poisoned_outputs(instance), **given}
    programs = shipped.bound("kda_prefill", dims, "bf16").programs
    assert not simulate_schedule(programs, instance, {**inputs, **outputs})
    return outputs


def test_states_have_the_range_of_f32() -> None:
    """Everything but the gates is linear in values and states: powers of two leave no trace."""
    dims = shape("20")
    inputs = generate(CONTRACT, dims, "bf16", "trained", 1)
    want = run(dims, inputs)
    powers = np.exp2(np.resize([0, 90, -60, 30, -8], 128))
    scaled = {
        **inputs,
        "v": (inputs["v"] * powers).astype(inputs["v"].dtype),
        "h0": (inputs["h0"] * powers[:, None]).astype(np.float32),
    }
    found = run(dims, scaled)
    np.testing.assert_array_equal(found["ht"], (want["ht"] * powers[:, None]).astype(np.float32))
    o = want["o"].astype(np.float64) * powers
    np.testing.assert_array_equal(found["o"].astype(np.float64), o)


def test_first_states_that_are_not_wanted_are_not_read() -> None:
    dims = shape("20", initial=0)
    inputs = generate(CONTRACT, dims, "bf16", "normal", 1)
    inputs["h0"][:] = np.nan
    assert compare(CONTRACT, dims, "bf16", inputs, run(dims, inputs)).ok


def test_last_states_may_take_the_place_of_the_first() -> None:
    dims = shape("17+0+5")
    inputs = generate(CONTRACT, dims, "bf16", "normal", 1)
    states = inputs["h0"].copy()
    outputs = run(dims, {**inputs, "h0": states}, ht=states)
    assert compare(CONTRACT, dims, "bf16", inputs, outputs).ok


@pytest.mark.parametrize("meta", [{}, {"TILE": 48}], ids=str)
def test_products_stay_asynchronous_and_nothing_spills(meta: dict[str, Any]) -> None:
    """ptxas names serialised products (C7510 and others) in its notices."""
    (program,) = shipped.bound("kda_prefill", shape("64"), "bf16", **meta).programs
    compiled = compile_program(program)
    facts = compiled.build.facts.entry(compiled.abi.name)
    assert facts is not None
    assert (facts.spill_store_bytes, facts.stack_bytes) == (0, 0)
    assert not compiled.diagnostics
    counts = opcode_counts(disassemble(compiled.build.cubin))
    assert counts["USETMAXREG"] == 3
    # Along the keys 8 products with keys and queries; one each for U, O and the state.
    assert counts["HGMMA"] == 11


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case",
    [c for s in ("small", "edge") for c in CONTRACT.shapes[s]],
    ids=lambda case: case.label(),
)
def test_the_gpu_agrees_with_the_reference(case: Any) -> None:
    pytest.importorskip("torch")
    launch = shipped.Launcher("kda_prefill", case.shape, case.dtype)
    for family in FAMILIES:
        result = launch.judged(family)
        assert result.ok, f"{family}: {result.detail}"


@pytest.mark.gpu
@pytest.mark.parametrize("bounded", [0, 1])
@pytest.mark.parametrize(
    ("lengths", "heads", "beta_width"),
    [
        ("17+33+65", 6, 6),
        ("63+64+65", 12, 16),
        ("+".join(map(str, range(1, 66))), 4, 4),
        ("1+2+3+4+5+6+7+8+9+10+11+12+13+14+15", 4, 5),
        ("64+0+128+0+256", 8, 8),
        ("2048", 2, 2),
    ],
)
def test_the_gpu_on_every_kind_of_gates(
    lengths: str, heads: int, beta_width: int, bounded: int
) -> None:
    pytest.importorskip("torch")
    dims = shape(lengths, heads, Hb=beta_width, bounded=bounded)
    launch = shipped.Launcher("kda_prefill", dims)
    for family in ("normal", "large", *OWN):
        result = launch.judged(family)
        assert result.ok, f"{family}: {result.detail}"


@pytest.mark.gpu
@pytest.mark.parametrize("meta", [{"PARTS": 2}, {"TILE": 48}, {"TILE": 32, "STAGES": 1}], ids=str)
def test_other_tiles_and_halves_of_the_state_on_the_gpu(meta: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    for bounded in (0, 1):
        dims = shape("17+0+133+65", 6, bounded=bounded)
        launch = shipped.Launcher("kda_prefill", dims, **meta)
        for family in ("normal", "trained", "strong_gates", "nan"):
            result = launch.judged(family)
            assert result.ok, f"{family}: {result.detail}"


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["normal", "trained", "closed_gates", "equal_keys"])
def test_states_do_not_drift_over_long_sequences(family: str) -> None:
    pytest.importorskip("torch")
    for dims in (shape("8192"), shape("16384", 1, bounded=0, initial=0)):
        result = shipped.Launcher("kda_prefill", dims).judged(family)
        assert result.ok, result.detail


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case", CONTRACT.shapes["headline"], ids=lambda case: case.label().replace(" ", "-")
)
def test_headline_shapes(case: Any) -> None:
    """Every 31st head: the reference walks token by token."""
    pytest.importorskip("torch")
    launch = shipped.Launcher("kda_prefill", case.shape, case.dtype)
    inputs = generate(CONTRACT, case.shape, case.dtype, "normal", 3)
    outputs = shipped.from_gpu(launch.problem, launch(shipped.on_gpu(inputs)))
    some = slice(0, None, 31)
    heads = len(range(case.shape["H"])[some])
    fewer = {**case.shape, "H": heads, "Hb": heads}
    cut = {name: array[:, some].copy() for name, array in inputs.items() if array.ndim > 1}
    cut |= {"a_log": inputs["a_log"][some], "cu": inputs["cu"], "dt_bias": inputs["dt_bias"][some]}
    found = {name: array[:, some].copy() for name, array in outputs.items()}
    result = compare(CONTRACT, fewer, case.dtype, cut, found)
    assert result.ok, result.detail
    assert all(np.isfinite(array.astype(np.float32)).all() for array in outputs.values())
