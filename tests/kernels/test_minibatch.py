"""Gradient sums over chosen units: the integers of the sum over all, row by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.kernels import gradient_kernel
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_matrix}
UNIT = 2.0**-30

# Values that are empty, tie in rounding, underflow or overflow when squared, or differ by a last place.
VALUES = [
    0.0,
    0.0,
    0.0,
    0.5 * UNIT,
    1.5 * UNIT,
    5e-324,
    1e-170,
    1e154,
    1e300,
    1.0,
    1 + 2**-52,
    -3.0,
]


def parts_of(rng, n, parts):
    """A partition of 0..n-1 into sorted index vectors; some may be empty."""
    labels = rng.integers(0, parts, n)
    return [np.flatnonzero(labels == part) for part in range(parts)]


def problem(loss, dtype, n=213, d=19, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)).astype(dtype)
    X[5] = X[6] = 0.0
    X[8] = X[9]
    y = rng.integers(0, max(2, loss.n_outputs), n)
    theta = rng.standard_normal(d + 1 if loss.n_outputs == 1 else (d + 1, loss.n_outputs))
    return rng, X, y, theta


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_sums_over_the_parts_add_up_to_the_whole(loss, dtype, storage):
    rng, X, y, theta = problem(loss, dtype)
    previous = theta + 0.1 * rng.standard_normal(theta.shape)
    groups = rng.integers(0, 40, len(y))
    for weight in (None, rng.random(len(y))):
        for by in (None, groups):
            kernel = gradient_kernel(STORAGES[storage](X), y, loss, sample_weight=weight, groups=by)
            parts = parts_of(rng, kernel.n_units, 4)
            for mask in (None, rng.random(20) < 0.5):
                whole = kernel.clipped_sum(theta, 0.7, UNIT, mask)
                halves = [kernel.clipped_sum(theta, 0.7, UNIT, mask, rows=rows) for rows in parts]
                np.testing.assert_array_equal(sum(halves), whole)
                plain = sum(kernel.plain_sum(theta, mask, rows=rows) for rows in parts)
                np.testing.assert_allclose(plain, kernel.plain_sum(theta, mask), atol=1e-10)
            arguments = theta, previous, 0.3, 0.7, 0.05, UNIT
            whole = kernel.recursive_sum(*arguments)
            halves = [kernel.recursive_sum(*arguments, rows=rows) for rows in parts]
            np.testing.assert_array_equal(sum(halves), whole)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_partition_of_nasty_rows_adds_up(storage, grouped):
    @settings(deadline=None, derandomize=True, max_examples=60)
    @given(
        cells=st.lists(st.sampled_from(VALUES), min_size=3, max_size=60),
        width=st.integers(1, 6),
        cut=st.lists(st.booleans(), min_size=60, max_size=60),
        clip_norm=st.sampled_from([20 * UNIT, 1.0]),
    )
    def check(cells, width, cut, clip_norm):
        rows = np.resize(np.array(cells), (-(-len(cells) // width), width))
        X = np.vstack([rows, rows[:1]])  # one row twice
        n = len(X)
        y = np.resize([0.0, 1.0, 1.0], n)
        groups = np.arange(n) // 2 if grouped else None
        kernel = gradient_kernel(STORAGES[storage](X), y, LogisticLoss(), groups=groups)
        theta = np.resize([0.5, -1e-3, 0.25], width + 1)
        chosen = np.resize(cut, kernel.n_units)
        parts = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        sums = [kernel.clipped_sum(theta, clip_norm, UNIT, rows=part) for part in parts]
        np.testing.assert_array_equal(sum(sums), kernel.clipped_sum(theta, clip_norm, UNIT))
        rest = (-theta, 0.5, clip_norm, clip_norm, UNIT)
        sums = [kernel.recursive_sum(theta, *rest, rows=part) for part in parts]
        np.testing.assert_array_equal(sum(sums), kernel.recursive_sum(theta, *rest))

    check()
