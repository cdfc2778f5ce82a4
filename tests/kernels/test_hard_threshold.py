"""Hard thresholding against a stable sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skdp.kernels import hard_threshold

pytestmark = pytest.mark.thorough

DTYPES = [np.float64, np.float32]


def reference(x, s):
    """The s largest by a stable sort of exact magnitudes: ties keep the lowest index."""
    order = sorted(range(len(x)), key=lambda j: (-abs(float(x[j])), j))
    out = np.zeros_like(x)
    out[order[:s]] = x[order[:s]]
    return out


def floats(dtype):
    width = 8 * np.dtype(dtype).itemsize
    some = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf])
    return st.one_of(some, st.floats(width=width, allow_nan=False, allow_subnormal=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_equals_a_stable_sort(dtype):
    @settings(deadline=None, derandomize=True, max_examples=300)
    @given(hnp.arrays(dtype, st.integers(1, 60), elements=floats(dtype)), st.integers(0, 70))
    def check(x, s):
        before = x.copy()
        result = hard_threshold(x, s)
        np.testing.assert_array_equal(result, reference(x, s))
        assert result.dtype == dtype
        assert result is not x
        assert not np.shares_memory(result, x)
        np.testing.assert_array_equal(x, before)

    check()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["normal", "ties", "equal", "close", "tiny", "mixed"])
def test_long_vectors_go_through_the_radix_selection(dtype, kind):
    rng = np.random.default_rng(1)
    d = 30_001
    x = {
        "normal": lambda: rng.standard_normal(d),
        "ties": lambda: rng.integers(-3, 4, d),
        "equal": lambda: np.full(d, -2.5),
        "close": lambda: 1.0 + rng.integers(0, 50, d) * np.finfo(dtype).eps,
        "tiny": lambda: rng.integers(-9, 9, d) * np.finfo(dtype).smallest_subnormal,
        "mixed": lambda: rng.standard_normal(d) * 10.0 ** rng.integers(-37, 38, d),
    }[kind]().astype(dtype)
    for s in (1, 2, 100, d // 3, d - 1):
        np.testing.assert_array_equal(hard_threshold(x, s), reference(x, s))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [5, 30_000])
@pytest.mark.parametrize("s", [0, 2, 100_000])
def test_nan_is_refused_whatever_s(dtype, d, s):
    x = np.zeros(d, dtype)
    x[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        hard_threshold(x, s)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_by_norm_with_ties_to_the_lowest_index(dtype):
    rng = np.random.default_rng(2)
    for _ in range(50):
        x = rng.integers(-2, 3, (rng.integers(1, 30), 3)).astype(dtype)
        s = int(rng.integers(0, 32))
        norms = (x.astype(int) ** 2).sum(axis=1)
        order = sorted(range(len(x)), key=lambda j: (-norms[j], j))
        expected = np.zeros_like(x)
        expected[order[:s]] = x[order[:s]]
        np.testing.assert_array_equal(hard_threshold(x, s), expected)


def test_row_norms_neither_overflow_nor_underflow():
    x = np.array([[3e300, 1e300], [2e300, 2e300], [1e-300, 1e-300], [2e-300, 0.0], [0.0, 0.0]])
    assert np.flatnonzero(hard_threshold(x, 1).any(axis=1)).tolist() == [0]
    assert np.flatnonzero(hard_threshold(x, 3).any(axis=1)).tolist() == [0, 1, 3]


def test_strided_and_read_only_input():
    x = np.arange(20.0)
    x.flags.writeable = False
    np.testing.assert_array_equal(hard_threshold(x[::2], 3), reference(x[::2], 3))


@pytest.mark.parametrize(
    ("x", "s", "message"),
    [
        (np.zeros(3), -1, "s must be at least 0"),
        (np.zeros(3, int), 1, "float32 or float64"),
        (np.zeros((2, 2, 2)), 1, "one or two dimensions"),
    ],
)
def test_bad_input(x, s, message):
    with pytest.raises(ValueError, match=message):
        hard_threshold(x, s)


def test_s_must_be_an_integer():
    with pytest.raises(TypeError):
        hard_threshold(np.zeros(3), 1.5)
