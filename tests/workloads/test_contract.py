import dataclasses
import importlib

import pytest

from cake.workloads import Contract, ContractError, UnknownWorkloadError, get, names, problem
from cake.workloads.contract import SHAPE_SETS, Family
from cake.workloads.families import standard_families


def test_the_workloads_of_the_first_release_exist():
    expected = {"gemm", "kmeans_assign", "kmeans_update", "rmsnorm", "softmax"}
    assert expected <= set(names())


def test_an_unknown_name_is_answered_with_the_nearest_and_the_list():
    with pytest.raises(UnknownWorkloadError) as caught:
        get("kmeans_asign")
    message = str(caught.value)
    assert "did you mean `kmeans_assign`?" in message
    assert "softmax" in message


@pytest.mark.parametrize("name", ["../evil", "gemm.contract", "data", ""])
def test_a_name_that_is_no_workload_is_never_imported(name):
    with pytest.raises(UnknownWorkloadError):
        get(name)


@pytest.mark.parametrize("name", names())
class TestEveryContract:
    def test_every_shape_row_is_admitted(self, name):
        contract = get(name)
        for shape_set in SHAPE_SETS:
            for case in contract.shapes[shape_set]:
                made = problem(contract, case.shape, case.dtype)
                assert made.flops >= 0
                assert made.bytes_moved >= 0

    def test_no_audit_shape_may_be_tuned(self, name):
        shapes = get(name).shapes
        tuned = {(tuple(case.shape.items()), case.dtype) for case in shapes["tune"]}
        audited = {(tuple(case.shape.items()), case.dtype) for case in shapes["audit"]}
        assert not tuned & audited

    def test_families_are_the_standard_ones_and_the_workloads_own(self, name):
        contract = get(name)
        own = importlib.import_module(f"cake.workloads.{name}.inputs").FAMILIES
        declared = [family.name for family in contract.families]
        standard = {family.name for family in standard_families(contract.dimensions)}
        assert len(declared) == len(set(declared))
        assert set(declared) == standard | set(own)

    def test_workspaces_are_produced_by_a_declared_step(self, name):
        contract = get(name)
        produced = {tensor for step in contract.steps for tensor in step.produces}
        workspaces = {spec.name for spec in contract.tensors if spec.role == "workspace"}
        assert produced == workspaces


def test_costs_of_the_papers_cell():
    shape = {"B": 32, "N": 65536, "K": 1024, "D": 128}
    assign = problem(get("kmeans_assign"), shape, "bf16")
    assert assign.flops == 2 * 32 * 65536 * 1024 * 128
    assert assign.bytes_moved == 2 * 32 * (65536 + 1024) * 128 + 4 * 32 * 65536
    update = problem(get("kmeans_update"), shape, "bf16")
    outputs = 32 * 1024 * (128 * (2 + 4) + 4)
    assert update.bytes_moved == 32 * 65536 * (128 * 2 + 4) + outputs


def test_an_omitted_optional_extent_is_dropped_from_tensors_and_is_one_in_formulas():
    plain = problem(get("gemm"), {"M": 3, "N": 5, "K": 7}, "bf16")
    batched = problem(get("gemm"), {"B": 2, "M": 3, "N": 5, "K": 7}, "bf16")
    assert plain.shape_of("d") == (3, 5)
    assert batched.shape_of("d") == (2, 3, 5)
    assert batched.flops == 2 * plain.flops == 2 * 2 * 3 * 5 * 7
    assert (plain.rows, batched.rows) == (3, 6)


def test_a_layout_parameter_permutes_the_tensor():
    shape = {"B": 2, "M": 3, "N": 5, "K": 7}
    assert problem(get("gemm"), shape, "bf16").shape_of("b") == (2, 5, 7)
    assert problem(get("gemm"), {**shape, "b_layout": "kn"}, "bf16").shape_of("b") == (2, 7, 5)


def test_type_variables_are_bound_by_the_shapes_dtype():
    made = problem(get("gemm"), {"M": 1, "N": 1, "K": 1}, "bf16_f32")
    assert str(made.dtype_of("a")) == "bfloat16"
    assert str(made.dtype_of("d")) == "float32"


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ({"M": 1, "N": 1}, "bf16", r"lacks K \(length of the sums\)"),
        ({"M": -1, "N": 1, "K": 1}, "bf16", "M = -1; it has to be an integer of at least 0"),
        ({"M": 1.5, "N": 1, "K": 1}, "bf16", "M = 1.5; it has to be an integer"),
        ({"M": True, "N": 1, "K": 1}, "bf16", "M = True; it has to be an integer"),
        ({"M": 1, "N": 1, "K": 1, "Q": 1}, "bf16", "unknown entry Q in the shape"),
        ({"M": 1, "N": 1, "K": 1}, "int8", "dtype `int8` is not one of bf16, f16"),
        ({"M": 1, "N": 1, "K": 1, "b_layout": "nm"}, "f16", "b_layout = 'nm' is not one of nk"),
    ],
)
def test_a_request_that_the_contract_does_not_admit_says_why(shape, dtype, message):
    with pytest.raises(ContractError, match=message):
        problem(get("gemm"), shape, dtype)


def test_a_numeric_parameter_is_no_text():
    with pytest.raises(ContractError, match="eps = 'small' has to be a float"):
        problem(get("rmsnorm"), {"M": 1, "D": 1, "eps": "small"}, "bf16")


def test_unknown_tensors_and_families_are_named():
    with pytest.raises(ContractError, match="no tensor `z`; it has x, w, y"):
        get("rmsnorm").tensor("z")
    with pytest.raises(ContractError, match="no input family `gaussian`; it has normal"):
        get("rmsnorm").family("gaussian")


def changed(**changes) -> Contract:
    return dataclasses.replace(get("rmsnorm"), **changes)


class TestContractsThatContradictThemselves:
    def test_a_formula_with_an_undeclared_name(self):
        with pytest.raises(ContractError, match="`4 \\* M \\* Q` uses the undeclared name Q"):
            changed(flops="4 * M * Q")

    def test_traffic_counts_tensors_not_extents(self):
        with pytest.raises(ContractError, match="undeclared name M"):
            changed(bytes_moved="M + y")

    def test_a_tensor_with_an_undeclared_dimension(self):
        tensors = (dataclasses.replace(get("rmsnorm").tensors[0], dims=("M", "E")),)
        with pytest.raises(ContractError, match="tensor `x`: undeclared dimension E"):
            changed(tensors=(*tensors, *get("rmsnorm").tensors[1:]))

    def test_an_output_without_a_tolerance(self):
        y = dataclasses.replace(get("rmsnorm").tensor("y"), tolerance=None)
        with pytest.raises(ContractError, match="need a tolerance"):
            changed(tensors=(*get("rmsnorm").tensors[:2], y))

    def test_an_unbound_type_variable(self):
        with pytest.raises(ContractError, match="dtype `bf16` does not bind `T`"):
            changed(dtypes={"bf16": {}})

    def test_rows_that_an_output_lacks(self):
        with pytest.raises(ContractError, match="output `y` lacks the row dimension Q"):
            changed(row_dims=("Q",))

    def test_missing_shape_sets(self):
        with pytest.raises(ContractError, match="no rows for audit, headline, small, edge"):
            changed(shapes={"tune": get("rmsnorm").shapes["tune"]})

    def test_a_name_declared_twice(self):
        with pytest.raises(ContractError, match="declared twice: eps"):
            changed(parameters=get("rmsnorm").parameters * 2)


def test_a_declared_family_that_nothing_generates_is_an_error():
    from cake.workloads import generate

    odd = changed(families=(*get("rmsnorm").families, Family(name="odd", description="?")))
    with pytest.raises(ContractError, match="nothing generates the declared family `odd`"):
        generate(odd, {"M": 1, "D": 1}, "bf16", "odd", 0)


def test_a_violated_constraint_is_quoted():
    square = changed(constraints=("M == D",))
    with pytest.raises(ContractError, match="violates `M == D`"):
        problem(square, {"M": 1, "D": 2}, "bf16")
