"""Binding a schedule file to a problem: types, guards, temporaries."""

from contextlib import suppress

import numpy as np
import pytest

from cake.diag import CakeError
from cake.ir.dtypes import BF16, F16, F32
from cake.kernels import (
    Misfit,
    Temporary,
    bind,
    elaborate,
    launchable,
    meta_domains,
    schedules,
    temporaries,
)
from cake.kernels.binding import bound_domains
from cake.workloads import get, problem
from tests.kernels.samples import SCALE, file

RMSNORM = get("rmsnorm")


def at(d: int, dtype: str = "bf16"):
    return problem(RMSNORM, {"M": 4, "D": d}, dtype)


def test_element_types_come_from_the_problem_and_programs_keep_their_order() -> None:
    bound = bind(file(SCALE), at(64, "f32"))
    assert bound.meta == {"T": F32, "WARPS": 1, "DP": 64}
    assert [p.name for p in bound.programs] == ["squares", "scale"]
    assert {p.target for p in bound.programs} == {"sm_90a"}


def test_a_guard_moves_a_parameter_to_the_nearest_value_that_it_admits() -> None:
    assert bind(file(SCALE), at(65)).meta["DP"] == 128
    assert bind(file(SCALE), at(200)).meta["DP"] == 256


def test_a_problem_that_no_value_admits_is_a_misfit_with_the_guard() -> None:
    with pytest.raises(Misfit, match=r"require\(D <= 64\) does not hold at M=4 D=300"):
        bind(file(SCALE), at(300))


def test_a_guard_that_no_parameter_changes_refuses_without_trying_pairs(monkeypatch) -> None:
    tried = []

    def counted(file, meta=None):
        tried.append(dict(meta or {}))
        return elaborate(file, meta)

    monkeypatch.setattr("cake.kernels.binding.elaborate", counted)
    text = SCALE.replace("require(D <= DP)", "require(D <= DP, M > 4)")
    with pytest.raises(Misfit, match=r"require\(M > 4\) does not hold"):
        bind(file(text), at(64))
    # The domains, whether the tensors fit, the defaults; T is bound; WARPS and DP have two other
    # values each, their pairs are not worth a try.
    assert len(tried) == 1 + 1 + 1 + 2 + 2


def test_two_guards_move_two_parameters() -> None:
    text = SCALE.replace("require(D <= DP)", "require(D <= DP, M < 2 * WARPS)")
    meta = bind(file(text), at(128)).meta
    assert (meta["DP"], meta["WARPS"]) == (128, 4)


def test_given_parameters_are_not_changed() -> None:
    assert bind(file(SCALE), at(64), {"WARPS": 4}).meta["WARPS"] == 4
    with pytest.raises(Misfit, match="does not hold"):
        bind(file(SCALE), at(65), {"DP": 64})


def test_domains_are_what_all_schedules_of_a_file_admit() -> None:
    narrow = SCALE.replace("T: meta(bf16, f16, f32)", "T: meta(bf16, f16)", 1)
    assert meta_domains(file(narrow))["T"] == (BF16, F16)
    with pytest.raises(Misfit, match="T = f32 is not among bf16, f16"):
        bind(file(narrow), at(64, "f32"))


def test_a_file_with_errors_raises_its_diagnostics() -> None:
    with pytest.raises(CakeError, match="CK101"):
        meta_domains(file(SCALE.replace("rsqrt", "unknown_function")))


def test_temporaries_are_sized_by_the_problem() -> None:
    bound = bind(file(SCALE), at(64))
    (sums,) = temporaries(bound.programs, at(64))
    assert sums == Temporary(name="sums", shape=(4,), dtype=np.dtype(np.float32))


def test_rows_of_temporaries_are_padded_to_what_tma_reaches() -> None:
    """Norms of 33 centroids: rows of 132 bytes could not be read by TMA."""
    (assign,) = (f for f in schedules("kmeans_assign", "sm_90a") if f.name == "sm_90a")
    instance = problem(get("kmeans_assign"), {"B": 2, "N": 65, "K": 33, "D": 24}, "bf16")
    (csq,) = temporaries(bind(assign, instance).programs, instance)
    assert (csq.shape, csq.stored) == ((2, 33), (2, 36))
    assert Temporary(name="row", shape=(33,), dtype=np.dtype(np.int8)).stored == (33,)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('w: Tensor[T, "D"]', 'w: Tensor[f32, "D"]', "tensor w is f32, the problem has bfloat16"),
        ('w: Tensor[T, "D"]', "w: Tensor[T, 32]", r"tensor w is \[32\], the problem has \[D=64\]"),
        ('x: Tensor[T, "M", "D"], w', 'x: Tensor[T, "D", "M"], w', "declare tensor x differently"),
        ('sums: Tensor[f32, "M"]', 'sums: Tensor[f32, "R"]', "problem has no dimension R"),
        ("eps: f32", "epsilon: f32", "no number epsilon"),
        ('y: Tensor[T, "M", "D"]', 'z: Tensor[T, "M", "D"]', "no schedule has the output y"),
    ],
)
def test_parameters_that_do_not_fit_the_contract(old: str, new: str, reason: str) -> None:
    text = SCALE.replace(old, new).replace("eps)", "epsilon)" if "epsilon" in new else "eps)")
    text = text.replace("store(y[", "store(z[") if "z:" in new else text
    parsed = elaborate(file(text))
    assert parsed.ok
    with pytest.raises(Misfit, match=reason):
        bind(file(text), at(64))


def test_a_transposed_operand_does_not_fit_although_its_extents_do() -> None:
    square = {"M": 64, "N": 64, "K": 64}
    contract = get("gemm")
    (gemm, *_) = schedules("gemm", "sm_90a")
    programs = bind(gemm, problem(contract, square, "bf16")).programs
    kn = problem(contract, {**square, "b_layout": "kn"}, "bf16")
    assert launchable(programs, kn) == "tensor b is [N, K], the problem has [K=64, N=64]"


def test_rows_that_tma_cannot_address_are_refused_before_the_launch() -> None:
    contract = get("gemm")
    by_name = {f.name: f for f in schedules("gemm", "sm_90a")}
    odd = problem(contract, {"M": 64, "N": 64, "K": 100}, "bf16")
    with pytest.raises(Misfit, match="a stride is 200 bytes, which is not a multiple of 16"):
        bind(by_name["sm_90a"], odd)
    bind(by_name["sm_90a"], problem(contract, {"M": 64, "N": 64, "K": 104}, "bf16"))


def test_some_schedule_takes_a_product_that_the_fast_ones_refuse() -> None:
    instance = problem(get("gemm"), {"B": 2, "M": 3, "N": 5, "K": 7}, "f16_f32")
    admitting = []
    for candidate in schedules("gemm", "sm_90a"):
        with suppress(Misfit):
            bind(candidate, instance)
            admitting.append(candidate.name)
    assert admitting == ["sm_80_any"]


def test_the_problem_decides_what_axes_a_tensor_has() -> None:
    contract = get("gemm")
    by_name = {f.name: f for f in schedules("gemm", "sm_90a")}
    kn = problem(contract, {"M": 64, "N": 64, "K": 64, "b_layout": "kn"}, "bf16")
    left = bound_domains(by_name["sm_90a"], kn)
    assert (left["KN"], left["BATCHED"], left["T"]) == ((True,), (False,), (BF16,))
    assert left["BN"] == (128, 256)
    with pytest.raises(Misfit, match=r"tensor b is \[N, K\], the problem has \[K=64, N=64\]"):
        bound_domains(by_name["sm_80"], kn)
