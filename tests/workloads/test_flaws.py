"""Plausible kernels with one flaw each: the comparison has to see it on some input family."""

import ml_dtypes
import numpy as np
import pytest

from cake.workloads import compare, get
from tests.workloads import honest
from tests.workloads.judging import BF16, GEMM, SMALL, judged, reference


def flawed_gemm(change):
    """The honest product of operands that ``change`` has spoiled."""

    def make(made, inputs):
        spoiled = {name: change(array) for name, array in inputs.items()}
        return honest.gemm_tensor_core(made, spoiled)

    return make


def test_gemm_through_fp8_fails():
    fp8 = ml_dtypes.float8_e4m3fn
    make = flawed_gemm(lambda a: a.astype(np.float32).astype(fp8).astype(BF16))
    assert not judged("gemm", GEMM, "bf16", "normal", make).ok


def test_gemm_accumulated_in_bf16_fails():
    def make(made, inputs):
        a, b = (inputs[name].astype(np.float32) for name in "ab")
        halves = [a[:, k : k + 128] @ b[:, k : k + 128].T for k in (0, 128)]
        return {"d": (halves[0].astype(BF16) + halves[1].astype(BF16)).astype(BF16)}

    assert not judged("gemm", GEMM, "bf16", "exact_integers", make).ok
    assert not judged("gemm", GEMM, "bf16", "normal", make).ok


def test_gemm_that_truncates_its_output_fails():
    def make(made, inputs):
        total = inputs["a"].astype(np.float32) @ inputs["b"].astype(np.float32).T
        return {"d": (total.view(np.uint32) & 0xFFFF0000).view(np.float32).astype(BF16)}

    assert not judged("gemm", GEMM, "bf16", "normal", make).ok


def test_gemm_with_permuted_k_in_one_operand_fails_where_values_vary_along_k():
    swap = flawed_gemm(lambda a: a)

    def make(made, inputs):
        permuted = inputs["a"][:, np.arange(inputs["a"].shape[1]) ^ 8]
        return swap(made, {**inputs, "a": permuted})

    assert not judged("gemm", GEMM, "bf16", "iota_K", make).ok
    assert judged("gemm", GEMM, "bf16", "iota_M", make).ok


KMEANS = {"B": 1, "N": 256, "K": 64, "D": 64}


def assign_by(scores_of, pick=lambda scores: scores.argmin(axis=-1)):
    def make(made, inputs):
        x, c = inputs["x"].astype(np.float32), inputs["c"].astype(np.float32)
        scores = scores_of(np.square(c).sum(-1)[:, None], x @ np.swapaxes(c, 1, 2))
        return {"ids": pick(np.where(np.isnan(scores), np.inf, scores)).astype(np.int32)}

    return make


def exact_scores(norms, products):
    return norms - 2 * products


class TestArgmin:
    def test_scores_rounded_to_bf16_fail(self):
        coarse = assign_by(lambda n, p: exact_scores(n, p).astype(BF16).astype(np.float32))
        assert not judged("kmeans_assign", KMEANS, "bf16", "normal", coarse).ok

    def test_products_through_tf32_fail(self):
        def make(made, inputs):
            x = (inputs["x"].view(np.uint32) & 0xFFFFE000).view(np.float32)
            return assign_by(exact_scores)(made, {**inputs, "x": x})

        assert not judged("kmeans_assign", KMEANS, "f32", "feature_precision", make).ok

    def test_the_last_of_equal_scores_fails_on_exact_inputs(self):
        last = assign_by(exact_scores, lambda s: s.shape[-1] - 1 - s[..., ::-1].argmin(axis=-1))
        for family in ("integer_ties", "zero", "digits"):
            shape = {**KMEANS, "K": 2048} if family == "digits" else KMEANS
            assert not judged("kmeans_assign", shape, "bf16", family, last).ok
            assert judged("kmeans_assign", shape, "bf16", family, assign_by(exact_scores)).ok

    def test_a_near_tie_may_go_either_way(self):
        inputs = {
            "x": np.zeros((1, 1, 2), np.float32),
            "c": np.array([[[0.1, 0.2], [0.1, 0.2000001], [0.1, 0.21]]], np.float32),
        }
        shape = {"B": 1, "N": 1, "K": 3, "D": 2}
        verdicts = [
            compare(
                get("kmeans_assign"), shape, "f32", inputs, {"ids": np.array([[k]], np.int32)}
            ).ok
            for k in range(3)
        ]
        assert verdicts == [True, True, False]

    def test_a_forgotten_tail_of_centroids_fails(self):
        tail = assign_by(exact_scores, lambda s: s[..., :-1].argmin(axis=-1))
        assert not judged("kmeans_assign", KMEANS, "bf16", "descending", tail).ok

    def test_forgotten_norms_fail(self):
        bare = assign_by(lambda norms, products: -products)
        assert not judged("kmeans_assign", KMEANS, "bf16", "normal", bare).ok

    @pytest.mark.parametrize("bad", [-1, 64, 2**31 - 1])
    def test_an_index_out_of_range_fails_and_does_not_raise(self, bad):
        def make(made, inputs):
            ids = assign_by(exact_scores)(made, inputs)["ids"]
            ids[0, 5] = bad
            return {"ids": ids}

        result = judged("kmeans_assign", KMEANS, "bf16", "normal", make)
        assert result.tensors[0].wrong == 1
        assert result.tensors[0].worst.index == (0, 5)
        assert f"got {bad}" in result.detail

    def test_a_point_with_nan_gets_id_zero(self):
        def make(made, inputs):
            ids = assign_by(exact_scores)(made, inputs)["ids"]
            return {"ids": np.where(np.isnan(inputs["x"]).any(-1), 1, ids).astype(np.int32)}

        assert not judged("kmeans_assign", KMEANS, "f32", "nan", make).ok


class TestUpdate:
    def test_a_wrong_count_fails(self):
        def make(made, inputs):
            right = reference(made, inputs)
            right["counts"][0, 3] += 1
            return right

        result = judged("kmeans_update", KMEANS, "bf16", "normal", make)
        assert [t.tensor for t in result.tensors if not t.ok] == ["counts"]
        assert result.tensors[-1].worst.index == (0, 3)

    def test_an_empty_cluster_keeps_its_old_centroid(self):
        def make(made, inputs):
            right = reference(made, inputs)
            right["c_new"][right["counts"] == 0] = 0
            return right

        assert judged("kmeans_update", KMEANS, "bf16", "empty_clusters", reference).ok
        assert not judged("kmeans_update", KMEANS, "bf16", "empty_clusters", make).ok

    def test_a_lost_addition_fails(self):
        def make(made, inputs):
            right = reference(made, inputs)
            right["sums"][0, inputs["ids"][0, 9]] -= inputs["x"][0, 9].astype(np.float32)
            return right

        assert not judged("kmeans_update", KMEANS, "bf16", "exact_integers", make).ok


def test_softmax_without_the_maximum_fails_on_offset_rows():
    def make(made, inputs):
        x = inputs["x"].astype(np.float32)
        with np.errstate(all="ignore"):
            powers = np.exp(x)
            y = powers / powers.sum(-1, keepdims=True)
        return {"y": y.astype(BF16)}

    assert not judged("softmax", SMALL["softmax"].shape, "bf16", "offset", make).ok


def test_rmsnorm_without_epsilon_fails_on_tiny_rows():
    def make(made, inputs):
        x, w = inputs["x"].astype(np.float64), inputs["w"].astype(np.float64)
        with np.errstate(all="ignore"):
            return {"y": (x * w / np.sqrt(np.square(x).mean(-1, keepdims=True))).astype(BF16)}

    assert not judged("rmsnorm", SMALL["rmsnorm"].shape, "bf16", "tiny", make).ok
