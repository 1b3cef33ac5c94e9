from importlib.resources import files

import ml_dtypes
import numpy as np
import pytest

from cake.workloads import ContractError, generate, get, names, problem
from cake.workloads.real import data

SMALL = [(name, get(name).shapes["small"][0]) for name in names()]
EVERY = [(name, case, family.name) for name, case in SMALL for family in get(name).families]


@pytest.mark.parametrize(("name", "case", "family"), EVERY)
def test_every_family_fits_its_problem_and_depends_on_the_seed_alone(name, case, family):
    contract = get(name)
    made = problem(contract, case.shape, case.dtype)
    first = generate(contract, case.shape, case.dtype, family, 5)
    again = generate(contract, case.shape, case.dtype, family, 5)
    assert list(first) == [spec.name for spec in contract.inputs]
    for tensor, array in first.items():
        assert array.shape == made.shape_of(tensor)
        assert array.dtype == made.dtype_of(tensor)
        assert array.flags.c_contiguous
        assert array.tobytes() == again[tensor].tobytes()


@pytest.mark.parametrize(("name", "case"), SMALL)
def test_seeds_and_families_draw_differently(name, case):
    contract = get(name)
    drawn = [
        generate(contract, case.shape, case.dtype, family, seed)
        for family, seed in (("normal", 1), ("normal", 2), ("small", 1))
    ]
    assert len({tuple(a.tobytes() for a in arrays.values()) for arrays in drawn}) == 3


@pytest.mark.parametrize("name", names())
def test_edge_shapes_have_inputs_of_every_family(name):
    contract = get(name)
    for case in contract.shapes["edge"]:
        for family in contract.families:
            arrays = generate(contract, case.shape, case.dtype, family.name, 0)
            for spec in contract.inputs:
                if spec.values is not None:
                    k = int(case.shape["K"])
                    assert ((arrays[spec.name] >= 0) & (arrays[spec.name] < k)).all()


def test_an_unknown_family_is_refused():
    with pytest.raises(ContractError, match="no input family `uniform`"):
        generate(get("gemm"), {"M": 1, "N": 1, "K": 1}, "bf16", "uniform", 0)


def test_iota_depends_on_one_axis_only():
    arrays = generate(get("gemm"), {"M": 70, "N": 6, "K": 65}, "bf16", "iota_K", 0)
    a = arrays["a"].astype(np.float32)
    assert (a == a[0]).all()
    assert len(np.unique(a[0])) == 61
    along_m = generate(get("gemm"), {"M": 70, "N": 6, "K": 65}, "bf16", "iota_M", 0)
    a, b = (along_m[name].astype(np.float32) for name in "ab")
    assert (a == a[:, :1]).all()
    assert len(np.unique(b)) > 100


def test_negated_inputs_are_negative():
    arrays = generate(get("softmax"), {"M": 8, "N": 64}, "bf16", "negated", 0)
    assert (arrays["x"].astype(np.float32) <= 0).all()


def test_heavy_tails_are_heavier_than_normal():
    shape = {"M": 64, "N": 512}
    tails = generate(get("softmax"), shape, "f32", "heavy_tails", 0)["x"]
    normal = generate(get("softmax"), shape, "f32", "normal", 0)["x"]
    assert np.abs(tails).max() > 4 * np.abs(normal).max()


def test_duplicated_rows_repeat():
    x = generate(get("rmsnorm"), {"M": 50, "D": 8}, "f32", "duplicated_rows", 0)["x"]
    assert len(np.unique(x, axis=0)) <= 10


def test_cancellation_leaves_a_small_rest_of_large_terms():
    shape = {"M": 16, "N": 16, "K": 256}
    for layout in ("nk", "kn"):
        arrays = generate(get("gemm"), {**shape, "b_layout": layout}, "bf16", "cancellation", 0)
        a, b = (arrays[name].astype(np.float64) for name in "ab")
        b = b if layout == "kn" else b.T
        assert np.abs(a @ b).max() < 0.05 * (np.abs(a) @ np.abs(b)).min()


def test_near_ties_are_one_rounding_step_apart():
    c = generate(get("kmeans_assign"), {"B": 1, "N": 4, "K": 8, "D": 16}, "bf16", "near_ties", 0)
    bits = c["c"][0].view(np.int16).astype(int)
    distances = [[int(np.abs(row - other).sum()) for other in bits[:4]] for row in bits[4:]]
    assert all(1 in row for row in distances)


def test_features_one_step_apart_need_more_bits_than_tf32_has():
    shape = {"B": 1, "N": 64, "K": 32, "D": 32}
    x = generate(get("kmeans_assign"), shape, "f32", "feature_precision", 0)["x"]
    tf32 = (x.view(np.uint32) & 0xFFFFE000).view(np.float32)
    assert (x[0].argmax(axis=1) != tf32[0].argmax(axis=1)).any()


def test_skewed_clusters_leave_some_empty():
    shape = {"B": 1, "N": 256, "K": 128, "D": 4}
    ids = generate(get("kmeans_update"), shape, "bf16", "skewed", 0)["ids"]
    counts = np.bincount(ids[0], minlength=128)
    assert counts.max() > 64
    assert (counts == 0).any()


class TestRealData:
    def test_digits(self):
        digits = data("digits")
        assert digits.shape == (1797, 64)
        assert (digits.min(), digits.max()) == (0, 16)

    def test_embeddings_have_norm_one_and_topics(self):
        rows = data("embeddings").astype(np.float64)
        assert rows.shape == (512, 384)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
        # The file holds 16 topics of 32 sentences: neighbours of one topic are nearer.
        same, other = rows[:32] @ rows[:32].T, rows[:32] @ rows[32:].T
        assert same.mean() > other.mean() + 0.1

    def test_files_stay_small(self):
        for name in ("digits", "embeddings"):
            packed = files("cake.workloads").joinpath("data", f"{name}.npz").read_bytes()
            assert len(packed) < 500_000

    def test_rows_repeat_only_when_the_data_runs_out(self):
        shape = {"B": 1, "N": 512, "K": 512, "D": 384}
        x = generate(get("kmeans_assign"), shape, "f16", "embeddings", 0)["x"]
        assert len(np.unique(x[0], axis=0)) == 512

    def test_features_are_cut_or_repeated(self):
        shape = {"B": 1, "N": 8, "K": 8, "D": 130}
        x = generate(get("kmeans_assign"), shape, "bf16", "digits", 0)["x"][0]
        assert x.dtype == ml_dtypes.bfloat16
        assert (x[:, :64] == x[:, 64:128]).all()
