"""Groups of rows: every storage adds up what a plain loop adds up, and Fortran order the bits of C order."""

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import gradient_kernel
from skdp.kernels.gpu.source import cuda_source
from skdp.losses import LogisticLoss, MultinomialLoss

UNIT = 2.0**-30


def problem(loss, n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = rng.integers(0, max(2, loss.n_outputs), n).astype(float)
    shape = (d + 1,) if loss.n_outputs == 1 else (d + 1, loss.n_outputs)
    return X, y, rng.normal(size=shape) / np.sqrt(d), rng.permutation(n) // 4


def by_hand(X, y, loss, theta, groups, clip, mask):
    """Sum of clipped group gradients in float64."""
    A = np.column_stack([X, np.ones(len(X))])
    slope = np.asarray(loss.derivative(A @ theta, y)).reshape(len(X), -1)
    total = np.zeros((A.shape[1], slope.shape[1]))
    for g in range(groups.max() + 1):
        gradient = A[groups == g].T @ slope[groups == g] * mask[:, None]
        total += gradient * min(1.0, clip / np.linalg.norm(gradient))
    return total.reshape(theta.shape)


@pytest.mark.parametrize("loss", [LogisticLoss(), MultinomialLoss(3)], ids=lambda loss: loss.name)
def test_storages_agree_with_a_plain_loop_and_fortran_order_with_c_order(loss):
    X, y, theta, groups = problem(loss, 203, 17)
    mask = np.arange(18) % 3 > 0
    sums = {}
    for name, convert in (("C", np.array), ("F", np.asfortranarray), ("csr", sp.csr_matrix)):
        kernel = gradient_kernel(convert(X), y, loss, groups=groups)
        sums[name] = (
            kernel.clipped_sum(theta, 0.3, UNIT),
            kernel.clipped_sum(theta, 0.3, UNIT, mask=mask),
            kernel.clipped_sum(theta, 0.3, UNIT, rows=np.arange(0, 50, 3)),
            kernel.recursive_sum(theta, theta / 2, 0.4, 0.3, 0.2, UNIT),
            kernel.loss_sums(np.stack([theta, theta / 2]), 3.0, UNIT),
        )
        for chosen, kept in ((sums[name][0], np.ones(18)), (sums[name][1], mask)):
            expected = by_hand(X, y, loss, theta, groups, 0.3, kept)
            assert np.abs(chosen * UNIT - expected).max() < 60 * UNIT
    for of_rows, of_columns in zip(sums["C"], sums["F"]):
        assert np.array_equal(of_rows, of_columns)
    for dense, sparse in zip(sums["C"], sums["csr"]):
        assert np.abs(dense - sparse).max() <= 2 * 51


@pytest.mark.thorough
def test_a_group_of_more_rows_than_are_copied_together_stands_beside_others():
    """It is read where it lies; the groups before and behind it add what they add without it."""
    loss, d = LogisticLoss(), 20_000
    X, y, theta, _ = problem(loss, 80, d)
    groups = np.repeat([0, 1, 2], [3, 70, 7])
    X = np.asfortranarray(X)
    whole = gradient_kernel(X, y, loss, groups=groups).clipped_sum(theta, 1.0, UNIT)
    parts = [
        gradient_kernel(np.asfortranarray(X[groups == g]), y[groups == g], loss, groups=codes)
        for g, codes in ((0, np.zeros(3, int)), (1, np.zeros(70, int)), (2, np.zeros(7, int)))
    ]
    assert np.array_equal(whole, sum(part.clipped_sum(theta, 1.0, UNIT) for part in parts))


@pytest.mark.parametrize("name", ["gradient.cu", "recursive_and_loss_sums.cu", "sparse_vector.cu"])
def test_cuda_sources_are_data_of_the_package(name):
    assert "__global__" in cuda_source(name)
