"""The published synthetic settings. False-alarm rates below 1e-6: z-bounds of 5 or more."""

import numpy as np
import pytest
from scipy.special import expit

from skdp.datasets import make_sparse_classification, make_sparse_regression

GENERATORS = [make_sparse_regression, make_sparse_classification]


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(("n", "d", "s"), [(1000, 1000, 10), (200, 500, 30), (300, 20, 8)])
def test_design(make, n, d, s):
    X, y, theta = make(n, d, n_informative=s, coef=True, random_state=0)
    assert X.shape == (n, d)
    assert y.shape == (n,)
    assert np.count_nonzero(theta) == s
    assert np.abs(theta).max() <= 1
    assert np.abs(X).max() <= 2
    norms = np.linalg.norm(X, axis=1)
    assert norms.max() <= 2 * s * (1 + 1e-12)
    # Rows of length sqrt(4 d / 3) on average: above the bound all are scaled, below it none is.
    if np.sqrt(4 * d / 3) > 2 * s * 1.2:
        np.testing.assert_allclose(norms, 2 * s)
    if np.sqrt(4 * d / 3) < s:
        assert norms.max() < 2 * s


def test_entries_are_uniform():
    """d = 20, s = 20: no row is scaled, so X itself is uniform on (-2, 2)."""
    X, _ = make_sparse_regression(5000, 20, n_informative=20, random_state=0)
    # 1e5 entries: standard error of the mean 1.155 / 316, of the variance about 1.19 / 316.
    assert abs(X.mean()) < 6 * 1.155 / 316
    assert abs(X.var() - 4 / 3) < 6 * 1.2 / 316
    counts = np.histogram(X, bins=10, range=(-2, 2))[0]
    assert np.abs(counts - 10000).max() < 6 * np.sqrt(10000)


def test_support_is_spread():
    positions = [
        np.flatnonzero(make_sparse_regression(1, 50, n_informative=5, coef=True, random_state=r)[2])
        for r in range(400)
    ]
    counts = np.bincount(np.concatenate(positions), minlength=50)
    # Each place is Binomial(400, 0.1): mean 40, standard deviation 6.
    assert counts.min() > 40 - 6 * 6
    assert counts.max() < 40 + 7 * 6


@pytest.mark.parametrize("variance", [0.1, 2.0])
def test_regression_noise(variance):
    X, y, theta = make_sparse_regression(
        20000, 5, n_informative=5, noise_variance=variance, coef=True, random_state=0
    )
    noise = y - X @ theta
    assert abs(noise.mean()) < 6 * np.sqrt(variance / 20000)
    assert abs(noise.var() / variance - 1) < 6 * np.sqrt(2 / 20000)


def test_regression_without_noise():
    X, y, theta = make_sparse_regression(noise_variance=0, coef=True, random_state=0)
    np.testing.assert_array_equal(y, X @ theta)


def test_classification_sign():
    """P(y = 1) = 1 / (1 + exp(<x, theta>)): the calibration of labels against the formula."""
    X, y, theta = make_sparse_classification(20000, 5, n_informative=5, coef=True, random_state=0)
    assert y.dtype == np.int64
    probability = expit(-(X @ theta))
    spread = np.sqrt(np.sum(probability * (1 - probability)))
    assert abs(np.sum(y - probability)) < 6 * spread
    weighted = (X @ theta) * (y - probability)
    scale = np.sqrt(np.sum((X @ theta) ** 2 * probability * (1 - probability)))
    assert abs(weighted.sum()) < 6 * scale
    assert np.corrcoef(X @ theta, y)[0, 1] < -0.3  # the sign, as printed


@pytest.mark.parametrize("make", GENERATORS)
def test_seed(make):
    first, second = make(20, 30, random_state=7), make(20, 30, random_state=7)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])
    assert not np.array_equal(first[0], make(20, 30, random_state=8)[0])
    assert len(make(20, 30)) == 2


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize(
    ("sizes", "options", "error", "message"),
    [
        ((0, 10), {}, ValueError, "n_samples == 0"),
        ((1.5, 10), {}, TypeError, "n_samples must be an instance of"),
        ((10, 0), {}, ValueError, "n_features == 0"),
        ((10, 5), {"n_informative": 6}, ValueError, "n_informative == 6"),
        ((10, 5), {"n_informative": 0}, ValueError, "n_informative == 0"),
    ],
)
def test_bad_sizes(make, sizes, options, error, message):
    with pytest.raises(error, match=message):
        make(*sizes, **options)


def test_bad_variance():
    with pytest.raises(ValueError, match="noise_variance == -1"):
        make_sparse_regression(noise_variance=-1)
