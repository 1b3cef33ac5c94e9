"""Meta parameters as JSON and in the text of a schedule."""

from cake.ir.dtypes import F16
from cake.kernels import decode_meta, elaborate, encode_meta, meta_domains, with_meta
from cake.lang.printer import digest
from tests.kernels.samples import SCALE, file


def test_types_survive_json_by_name() -> None:
    domains = meta_domains(file(SCALE))
    meta = {"T": F16, "WARPS": 2}
    assert encode_meta(meta) == {"T": "f16", "WARPS": 2}
    assert decode_meta(encode_meta(meta), domains) == meta


def test_a_value_without_a_type_domain_stays_a_string() -> None:
    assert decode_meta({"MODE": "f16"}, {"MODE": ("f16", "fast")}) == {"MODE": "f16"}
    assert decode_meta({"GONE": "f16"}, {}) == {"GONE": "f16"}


def test_new_defaults_give_the_same_programs_as_bound_parameters() -> None:
    meta = {"T": F16, "WARPS": 4, "DP": 256}
    text = with_meta(SCALE, meta, "sm_90a")
    bound = elaborate(file(SCALE), meta).programs
    again = elaborate(file(text)).programs
    assert [digest(p) for p in again] == [digest(p) for p in bound]


def test_everything_but_defaults_and_target_stays_as_written() -> None:
    text = with_meta(SCALE, {"WARPS": 4}, "sm_90a")
    changed = [
        (old, new)
        for old, new in zip(SCALE.split("\n"), text.split("\n"), strict=True)
        if old != new
    ]
    assert len(changed) == 4
    assert with_meta(text, {"WARPS": 1}, "sm_80") == SCALE
