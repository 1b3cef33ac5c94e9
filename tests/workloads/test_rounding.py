from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.workloads.expected import integral, overflow_threshold, rounded, spacing, sum_bound

DTYPES = [np.dtype(t) for t in (ml_dtypes.bfloat16, np.float16, np.float32)]
finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30)


def one(value: float) -> np.ndarray:
    return np.array([value])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(value=finite)
def test_rounding_gives_the_nearest_number_of_the_dtype(dtype, value):
    got = float(rounded(one(value), dtype)[0])
    if abs(value) >= overflow_threshold(dtype):
        assert got == np.copysign(np.inf, value)
        return
    bits = np.array(got).astype(dtype).view(f"i{dtype.itemsize}")
    error = abs(Fraction(got) - Fraction(value))
    for step in (-1, 1):
        near = float((bits + np.array(step, bits.dtype)).view(dtype))
        if np.isfinite(near):
            assert error <= abs(Fraction(near) - Fraction(value))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ties_go_to_even(dtype):
    step = float(spacing(one(1.0), dtype)[0])
    assert rounded(one(1 + step / 2), dtype)[0] == 1
    assert rounded(one(1 + 3 * step / 2), dtype)[0] == 1 + 2 * step


def test_a_double_that_would_round_twice_through_f32_rounds_once():
    value = 1 + 2.0**-8 + 2.0**-40
    assert rounded(one(value), np.dtype(ml_dtypes.bfloat16))[0] == 1 + 2.0**-7


@pytest.mark.parametrize(
    ("dtype", "value", "step"),
    [
        (ml_dtypes.bfloat16, 1.0, 2.0**-7),
        (ml_dtypes.bfloat16, 0.999, 2.0**-8),
        (np.float16, 1.0, 2.0**-10),
        (np.float16, 0.0, 2.0**-24),
        (np.float16, np.inf, 32.0),
        (np.float32, 2.0**24, 2.0),
        (np.float32, np.nan, 2.0**104),
    ],
)
def test_spacing(dtype, value, step):
    assert spacing(one(value), np.dtype(dtype))[0] == step


def test_integers_are_told_from_other_numbers():
    assert integral(np.array([0.0, -3.0, 4096.0]))
    assert not integral(np.array([1.0]), np.array([0.5]))
    assert not integral(np.array([np.inf]))


def test_exact_sums_have_no_bound_until_they_outgrow_f32():
    value = np.array([5.0, 5.0, np.nan])
    magnitude = np.array([9.0, 2.0**24, 1.0])
    bound = sum_bound(value, magnitude, 4, exact=True)
    assert bound[0] == 0
    assert bound[1] > 0
    assert bound[2] == 0
    assert (sum_bound(value, magnitude, 4, exact=False)[:2] > 0).all()
