"""Sums of many outputs over sparse rows feature by feature give the bits of the pass row by row."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import gradient_kernel
from skdp.kernels.gradient import feature_major
from skdp.losses import MultinomialLoss

N, D = 301, 40


@pytest.fixture(autouse=True)
def always(monkeypatch):
    for name, value in (("LEAST_THETA", 1), ("LEAST_PER_FEATURE", 0), ("MOST_ENTRIES", 10**9)):
        monkeypatch.setattr(feature_major, name, value)


def both(kernel, theta, clip, mask):
    found = []
    for turned in (True, False):
        kernel._may_turn = turned
        found.append(kernel.clipped_sum(theta, clip, clip * 2.0**-30, mask))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.slow), "3"])
@pytest.mark.parametrize("predictors", [2**20, 400])
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def test_same_integers(monkeypatch, threads, predictors, dtype):
    monkeypatch.setenv("SKDP_NUM_THREADS", threads)
    monkeypatch.setattr(feature_major, "PREDICTORS", predictors)
    rng = np.random.default_rng(0)
    for n_classes, intercept, weighted, bad in itertools.product((8, 13), *[(False, True)] * 3):
        X = sp.random(N, D, 0.2, format="csr", random_state=1, dtype=dtype)
        if bad:
            odd = np.array([np.inf, np.nan, 1e30, -np.inf, 1e-300], dtype=dtype)
            X.data[rng.integers(0, X.data.size, 15)] = np.tile(odd, 3)
        kernel = gradient_kernel(
            X, rng.integers(0, n_classes, N).astype(float), MultinomialLoss(n_classes),
            fit_intercept=intercept, intercept_value=0.37,
            sample_weight=rng.random(N) if weighted else None,
        )  # fmt: skip
        assert kernel._may_turn
        theta = rng.normal(size=kernel.shape)
        for mask, clip in itertools.product((None, rng.random(D + intercept) < 0.5), (1e-3, 10.0)):
            turned, straight = both(kernel, theta, clip, mask)
            np.testing.assert_array_equal(turned, straight)
            assert turned.dtype == np.int64
            assert turned.any()


def test_only_where_it_pays():
    is_beneficial = feature_major.FeatureMajor.is_beneficial
    assert not is_beneficial(0, 0, 10, 10)
    assert not is_beneficial(100, 1000, 10, 2)


@pytest.mark.parametrize("masked", [False, True])
def test_sums_that_float64_might_not_hold_go_row_by_row(masked):
    """Which pass runs follows from private numbers, so neither may refuse what the other gives."""
    rng = np.random.default_rng(0)
    X = sp.random(N, D, 0.2, format="csr", random_state=1)
    kernel = gradient_kernel(X, rng.integers(0, 8, N).astype(float), MultinomialLoss(8))
    theta, mask = (rng.normal(size=kernel.shape), rng.random(kernel.shape[0]) < 0.5 if masked else None)
    found = []
    for turned in (True, False):
        kernel._may_turn = turned
        found.append(kernel.clipped_sum(theta, 1.0, 2.0**-49, mask))
    np.testing.assert_array_equal(*found)
    assert found[0].any()
