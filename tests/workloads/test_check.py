import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cake.workloads import ContractError, compare, generate, get, names, reference_outputs
from cake.workloads.check import choose_rows
from cake.workloads.contract import Tolerance
from cake.workloads.expected import rounded, spacing
from tests.workloads import honest
from tests.workloads.judging import BF16, GEMM, SMALL, judged, reference


@pytest.mark.parametrize("key", honest.IMPLEMENTATIONS)
def test_honest_implementations_pass_on_every_family(key):
    name = key.split("/")[0]
    contract = get(name)
    for case in (contract.shapes["small"][0], *contract.shapes["edge"][-6:]):
        for family in contract.families:
            result = judged(name, case.shape, case.dtype, family.name, honest.IMPLEMENTATIONS[key])
            assert result.ok, f"{case.label()}, {family.name}: {result.detail}"


@pytest.mark.parametrize("name", names())
def test_the_rounded_reference_passes_on_every_shape_of_the_edge_set(name):
    for case in get(name).shapes["edge"]:
        result = judged(name, case.shape, case.dtype, "normal", reference)
        assert result.ok, f"{case.label()}: {result.detail}"
        assert result.rows_checked == result.rows


def zeros(made, inputs):
    return {
        spec.name: np.zeros(made.shape_of(spec.name), made.dtype_of(spec.name))
        for spec in made.contract.outputs
    }


def constants(made, inputs):
    return {name: array + array.dtype.type(1) for name, array in zeros(made, inputs).items()}


def pass_through(made, inputs):
    """Every output filled with the bytes of the first input."""
    source = next(iter(inputs.values())).reshape(-1)
    return {
        spec.name: np.resize(source, made.shape_of(spec.name)).astype(made.dtype_of(spec.name))
        for spec in made.contract.outputs
    }


@pytest.mark.parametrize("cheat", [zeros, constants, pass_through], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", names())
def test_candidates_that_do_no_work_fail(name, cheat):
    case = SMALL[name]
    for family in ("normal", "exact_integers", "heavy_tails"):
        assert not judged(name, case.shape, case.dtype, family, cheat).ok


@pytest.mark.parametrize("name", ["gemm", "rmsnorm", "softmax"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_one_element_off_by_more_than_the_tolerance_fails(name, data):
    """Half a spacing is rounding; one and a half more than the bound cannot be."""
    contract, case = get(name), SMALL[name]
    family = data.draw(st.sampled_from(["normal", "large", "negated", "constant"]))
    inputs = generate(contract, case.shape, case.dtype, family, 1)
    outputs = reference_outputs(contract, case.shape, case.dtype, inputs)
    output = contract.outputs[0].name
    array = outputs[output].reshape(-1)
    at = data.draw(st.integers(0, array.size - 1))
    assume(abs(float(array[at])) > 1e-30)  # Below, a flush to zero is no error.
    step = float(spacing(np.array([float(array[at])]), array.dtype)[0])
    sign = data.draw(st.sampled_from([-1, 1]))
    array[at] = float(array[at]) + 3 * sign * step
    result = compare(contract, case.shape, case.dtype, inputs, outputs)
    worst = result.tensors[0].worst
    assert not result.ok
    assert result.tensors[0].wrong == 1
    assert worst is not None
    assert np.ravel_multi_index(worst.index, outputs[output].shape) == at
    assert worst.error_ulps > worst.allowed_ulps


def test_overflow_to_infinity_is_right_where_the_result_is_out_of_range():
    shape = {"M": 2, "N": 1, "K": 16}
    a = np.full((2, 16), 64, np.float16)
    b = np.full((1, 16), 64, np.float16)
    a[1] = 1
    inputs = {"a": a, "b": b}
    right = np.array([[np.inf], [1024]], np.float16)
    assert compare(get("gemm"), shape, "f16", inputs, {"d": right}).ok
    for wrong in ([[np.finfo(np.float16).max], [1024]], [[np.inf], [np.inf]], [[-np.inf], [1024]]):
        outputs = {"d": np.array(wrong, np.float16)}
        assert not compare(get("gemm"), shape, "f16", inputs, outputs).ok


@pytest.mark.parametrize("name", ["gemm", "rmsnorm", "softmax"])
def test_nan_has_to_be_where_the_reference_has_it(name):
    case = SMALL[name]

    def cleaned(made, inputs):
        right = reference(made, inputs)
        return {
            key: np.nan_to_num(a.astype(np.float32)).astype(a.dtype) for key, a in right.items()
        }

    def all_nan(made, inputs):
        return {key: np.full_like(a, np.nan) for key, a in reference(made, inputs).items()}

    assert judged(name, case.shape, case.dtype, "nan", reference).ok
    assert not judged(name, case.shape, case.dtype, "nan", cleaned).ok
    assert not judged(name, case.shape, case.dtype, "nan", all_nan).ok


class TestRows:
    def test_a_sample_holds_the_edges_of_tiles_and_the_last_row(self):
        rows = choose_rows(10_000, 100, 1)
        assert {0, 63, 64, 127, 128, 9_999} <= set(rows.tolist())
        assert len(rows) == len(set(rows.tolist())) == 100

    def test_another_seed_looks_at_other_rows(self):
        assert (choose_rows(10_000, 100, 1) != choose_rows(10_000, 100, 2)).any()

    @given(rows=st.integers(0, 2000), limit=st.integers(1, 300))
    @settings(max_examples=50, deadline=None)
    def test_rows_are_sorted_unique_and_in_range(self, rows, limit):
        chosen = choose_rows(rows, limit, 0)
        assert len(chosen) == min(rows, limit)
        assert (np.diff(chosen) > 0).all()
        assert ((chosen >= 0) & (chosen < rows)).all()

    def test_checking_a_sample_says_how_much_was_checked(self):
        result = judged("softmax", {"M": 4096, "N": 16}, "bf16", "normal", reference, max_rows=64)
        assert (result.rows, result.rows_checked) == (4096, 64)
        assert result.tensors[0].checked == 64 * 16

    def test_the_worst_index_is_that_of_the_whole_output(self):
        def make(made, inputs):
            right = reference(made, inputs)
            right["d"][1, 127, 5] = 99
            return right

        shape = {"B": 2, "M": 128, "N": 8, "K": 8}
        result = judged("gemm", shape, "bf16", "normal", make, max_rows=40)
        assert result.tensors[0].worst.index == (1, 127, 5)


def test_a_report_reads_well():
    def make(made, inputs):
        right = reference(made, inputs)
        right["y"][2, 7] = 3
        return right

    result = judged("softmax", {"M": 4, "N": 128}, "bf16", "zero", make)
    assert result.detail == (
        "y: 1 of 512 elements are wrong; the worst is at [2, 7]: expected 0.0078125, got 3, "
        "off by 4.9e+04 units, 0.502 are allowed"
    )


def test_arrays_of_another_shape_or_dtype_are_refused():
    contract, shape = get("softmax"), {"M": 4, "N": 8}
    inputs = generate(contract, shape, "bf16", "normal", 0)
    with pytest.raises(ContractError, match="`y` is missing; given were no arrays"):
        compare(contract, shape, "bf16", inputs, {})
    with pytest.raises(ContractError, match=r"`y` is float32 \(4, 8\), the problem wants bfloat16"):
        compare(contract, shape, "bf16", inputs, {"y": np.zeros((4, 8), np.float32)})
    with pytest.raises(ContractError, match=r"`y` is bfloat16 \(8, 4\)"):
        compare(contract, shape, "bf16", inputs, {"y": np.zeros((8, 4), BF16)})


def test_chunks_do_not_change_the_result(monkeypatch):
    def make(made, inputs):
        right = reference(made, inputs)
        right["d"][40, 3] = 50
        return right

    whole = judged("gemm", GEMM, "bf16", "normal", make)
    monkeypatch.setattr("cake.workloads.reference.CHUNK_ELEMENTS", 1000)
    chunked = judged("gemm", GEMM, "bf16", "normal", make)
    assert chunked.tensors[0].worst == whole.tensors[0].worst
    assert chunked.tensors[0].rel_l2 == pytest.approx(whole.tensors[0].rel_l2)


def test_reference_of_the_exact_families_is_exact():
    """The integers of these families meet the f32 sums without rounding: the result is unique."""
    shape = {"M": 16, "N": 16, "K": 512}
    for family in ("exact_integers", "zero", "identity"):
        inputs = generate(get("gemm"), shape, "bf16_f32", family, 0)
        product = inputs["a"].astype(np.float32) @ inputs["b"].astype(np.float32).T
        result = compare(get("gemm"), shape, "bf16_f32", inputs, {"d": product})
        assert result.ok
        assert result.tensors[0].max_ulp == 0
        product[3, 3] = np.nextafter(product[3, 3], np.float32(np.inf))
        assert not compare(get("gemm"), shape, "bf16_f32", inputs, {"d": product}).ok


def test_rounding_of_exact_results_is_to_nearest_even():
    """257 lies between the bf16 numbers 256 and 258; only the even one is right."""
    inputs = {"a": np.ones((1, 257), BF16), "b": np.ones((1, 257), BF16)}
    shape = {"M": 1, "N": 1, "K": 257}
    verdicts = [
        compare(get("gemm"), shape, "bf16", inputs, {"d": np.array([[v]], BF16)}).ok
        for v in (256.0, 258.0)
    ]
    assert float(rounded(np.array([257.0]), BF16)[0]) == 256
    assert verdicts == [True, False]


def test_many_small_errors_fail_by_their_relative_l2_error():
    contract = get("gemm")
    tolerant = Tolerance(kind="float", output_ulps=8, rel_l2_ulps=0.5)
    d = dataclasses.replace(contract.tensor("d"), tolerance=tolerant)
    contract = dataclasses.replace(contract, tensors=(*contract.tensors[:2], d))
    inputs = generate(contract, GEMM, "bf16", "normal", 0)
    outputs = reference_outputs(contract, GEMM, "bf16", inputs)
    assert compare(contract, GEMM, "bf16", inputs, outputs).ok
    outputs["d"].view(np.int16)[...] += 2
    result = compare(contract, GEMM, "bf16", inputs, outputs)
    assert result.tensors[0].wrong == 0
    assert not result.ok
    assert result.detail.startswith("d: relative L2 error 0.01")
