"""Parameters of a schedule whose type or order of dimensions a meta parameter chooses."""

import pytest

from cake.lang.elaborate import parse

TEXT = """
@cake.schedule(target="sm_90a")
def sums(x: Tensor[f32, "B", "M", "N"] if BATCHED else Tensor[f32, "M", "N"],
         w: Tensor[f32, "N" if TURNED else "M", "M" if TURNED else "N"],
         y: Tensor[f32, "M"], *,
         BATCHED: meta(False, True) = False, TURNED: meta(False, True) = False):
    i, m = grid(B if BATCHED else 1, M)
    r = role(warps=1)
    with r:
        v = load(x[i, m, 0] if BATCHED else x[m, 0])
        store(y[m], v + load(w[0, m] if TURNED else w[m, 0]))
"""


@pytest.mark.parametrize(
    ("meta", "x", "w"),
    [
        ({}, ("M", "N"), ("M", "N")),
        ({"BATCHED": True}, ("B", "M", "N"), ("M", "N")),
        ({"TURNED": True}, ("M", "N"), ("N", "M")),
    ],
)
def test_a_meta_parameter_chooses_rank_and_order(meta, x, w) -> None:
    program = parse(TEXT, meta=meta).program()
    assert program.tensor("x").shape == x
    assert program.tensor("w").shape == w
    assert ("B" in program.dims) == ("B" in x)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("if BATCHED else Tensor", "if M > 1 else Tensor", "CK101"),
        ('else Tensor[f32, "M", "N"]', "else float", "CK005"),
        ('Tensor[f32, "B", "M", "N"] if', "float if", None),
    ],
)
def test_only_the_chosen_type_has_to_be_one(old: str, new: str, code: str | None) -> None:
    found = [d.code for d in parse(TEXT.replace(old, new)).diagnostics]
    assert found[:1] == ([] if code is None else [code])
