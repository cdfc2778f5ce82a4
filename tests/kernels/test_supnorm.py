"""Sup-norm clipped sums against a slow counterpart in Python integers, and the bound of one row and one group."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.kernels import sup_gradient_kernel
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_matrix}
MARGIN = 1 - Fraction(1, 2**40)


def full_rows(X, kappa):
    X = (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)
    return X if kappa is None else np.column_stack([X, np.full(len(X), kappa)])


def slow_rows(X, y, loss, theta, clip_norm, unit, kappa=None, balance=None, weight=None):
    """Integer contributions of all rows, (n, p, K) of Python ints, by exact rational arithmetic."""
    Z = full_rows(X, kappa)
    n, p = Z.shape
    K = loss.n_outputs
    out = np.zeros((n, p, K), dtype=object)
    with np.errstate(all="ignore"):
        q = loss.derivative(Z @ theta, y).reshape(n, K)
        if weight is not None:
            q = q * weight[:, None]
    for i in range(n):
        top, size = np.max(np.abs(Z[i])), np.max(np.abs(q[i]))
        with np.errstate(over="ignore"):
            if not (np.all(np.isfinite(q[i])) and math.isfinite(float(top) * float(size))):
                continue
        b = Fraction(1) if balance is None else Fraction(float(balance[i]))
        norm = Fraction(float(top)) * Fraction(float(size))
        factor = 1 if norm == 0 else min(1, Fraction(clip_norm) * MARGIN / norm)
        for j in np.flatnonzero(Z[i]):
            for k in range(K):
                exact = b * factor * Fraction(float(q[i, k])) * Fraction(float(Z[i, j]))
                out[i, j, k] = int(exact / Fraction(unit))  # int() cuts toward zero
    return out


def problem(seed, loss, n=60, d=12, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)).astype(dtype)
    X[5] = 0.0
    y = rng.integers(0, max(2, loss.n_outputs), n)
    shape = d + 1 if loss.n_outputs == 1 else (d + 1, loss.n_outputs)
    return rng, X, y, rng.standard_normal(shape)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_sums_equal_the_slow_counterpart(loss, dtype, storage):
    rng, X, y, theta = problem(1, loss, dtype=dtype)
    balance, weight = rng.random(60), 3 * rng.random(60)
    kernel = sup_gradient_kernel(
        STORAGES[storage](X), y, loss, intercept_value=0.5, row_weight=balance, sample_weight=weight
    )
    rows = rng.permutation(60)[:17]
    for clip_norm in (0.1, 50.0):
        unit = clip_norm * 2.0**-24
        slow = slow_rows(X, y, loss, theta, clip_norm, unit, 0.5, balance, weight)
        for chosen in (None, rows):
            expected = slow[slice(None) if chosen is None else chosen].sum(axis=0)
            result = kernel.clipped_sum(theta, clip_norm, unit, rows=chosen)
            assert result.dtype == np.int64
            assert result.shape == kernel.shape
            # The last bits of a predictor or of a product may carry one cut to the next integer.
            apart = [abs(int(a) - b) for a, b in zip(result.flat, expected.flat)]
            assert max(apart) <= 3
            assert sum(apart) <= 10
    Z = full_rows(X, 0.5)
    q = loss.derivative(Z @ theta, y).reshape(60, -1) * weight[:, None]
    plain = np.einsum("ij,ik->jk", Z[rows] * balance[rows, None], q[rows])
    found = kernel.plain_sum(theta, rows=rows).reshape(plain.shape)
    np.testing.assert_allclose(found, plain, atol=1e-10)
    top = np.abs(q).max(axis=1) * np.abs(Z).max(axis=1)
    np.testing.assert_allclose(kernel.norms(theta), top, rtol=1e-12)


ENTRIES = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 5e-324, -1e-310, 1e300, -1e300, 1e-300, 1e150]),
    st.floats(-1e3, 1e3, allow_subnormal=True),
)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    row=st.lists(ENTRIES, min_size=1, max_size=4),
    target=st.sampled_from([0.0, -1.0, 1e3, 1e300, -1e-300, 5e-324, 7.25]),
    unit=st.sampled_from([2.0**-30, 0.1, 3.0, 2.0**-400, 1e100]),
    size=st.integers(1, 7),
    storage=st.sampled_from(sorted(STORAGES)),
    loss=st.sampled_from([SquaredLoss(), HuberLoss(2.0)]),
    clip_units=st.sampled_from([0.4, 1.0, 1.5, 1000.3, 2.0**40 + 0.7]),
)
def test_one_row_and_one_balanced_group_stay_within_the_clip(row, target, unit, size, storage, loss, clip_units):
    clip_norm = clip_units * unit
    X = np.tile(np.array([row]), (size, 1))
    balance = np.full(size, 1 / size)
    kernel = sup_gradient_kernel(
        STORAGES[storage](X), np.full(size, target), loss, fit_intercept=False, row_weight=balance
    )
    theta = np.zeros(len(row))
    bound = Fraction(clip_norm) / Fraction(unit)
    group = kernel.clipped_sum(theta, clip_norm, unit)
    assert max(abs(int(v)) for v in group) <= bound
    one = kernel.clipped_sum(theta, clip_norm, unit, rows=np.array([size - 1]))
    assert max(abs(int(v)) for v in one) <= bound * Fraction(1 / size)
    slow = slow_rows(X, np.full(size, target), loss, theta, clip_norm, unit, balance=balance)
    for found, exact in zip(one, slow[-1, :, 0]):
        # The same number up to the float64 rounding of three products, or the row was dropped.
        assert abs(int(found) - exact) <= 1 + abs(exact) * 2**-40 or not np.any(one)


def test_clipped_row_reaches_the_clip():
    kernel = sup_gradient_kernel(np.array([[1e6, 3.0]]), [-1e6], SquaredLoss(), fit_intercept=False)
    assert int(kernel.clipped_sum(np.zeros(2), 1.0, 2.0**-30)[0]) in range(2**30 - 2, 2**30 + 1)


def test_rounding_to_nearest_would_break_the_group_bound():
    """Why entries are cut: 1000 rows of weight 1/1000 and value 0.6 units each would round up."""
    n = 1000
    kernel = sup_gradient_kernel(
        np.ones((n, 1)), np.full(n, -600.0), SquaredLoss(), fit_intercept=False, row_weight=np.full(n, 1 / n)
    )
    assert int(kernel.clipped_sum(np.zeros(1), 600.0, 1.0)[0]) == 0
    assert n * round(600.0 / n) > 600


def test_rows_that_are_not_finite_add_nothing():
    X = np.array([[1e308, 1e308], [np.inf, 1.0], [np.nan, 0.0], [1.0, 2.0]])
    for storage in STORAGES.values():
        kernel = sup_gradient_kernel(storage(X), np.ones(4), SquaredLoss())
        total = kernel.clipped_sum(np.full(3, 10.0), 1.0, 2.0**-20)
        only = kernel.clipped_sum(np.full(3, 10.0), 1.0, 2.0**-20, rows=np.array([3]))
        assert np.array_equal(total, only)
        assert np.any(only)


def test_storages_threads_and_orders_give_the_same_bits(monkeypatch):
    loss = MultinomialLoss(3)
    rng, X, y, theta = problem(3, loss, n=6000, d=80)
    results = []
    for threads in ("1", "4"):
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        for storage in (np.ascontiguousarray, np.asfortranarray):
            kernel = sup_gradient_kernel(storage(X), y, loss)
            results.append(kernel.clipped_sum(theta, 0.5, 2.0**-30))
            results.append(kernel.clipped_sum(theta, 0.5, 2.0**-30, rows=rng.permutation(6000)))
        sparse = sup_gradient_kernel(sp.csr_matrix(X), y, loss)
        assert np.max(np.abs(sparse.clipped_sum(theta, 0.5, 2.0**-30) - results[0])) < 6000
    assert all(np.array_equal(results[0], other) for other in results)
    plain = sup_gradient_kernel(X, y, loss)
    monkeypatch.setenv("SKDP_NUM_THREADS", "1")
    assert np.array_equal(plain.plain_sum(theta), kernel.plain_sum(theta))


def test_duplicates_unsorted_rows_and_stored_zeros_are_the_merged_matrix():
    data = np.array([1.0, 2.0, -3.0, 0.0, 4.0, 5.0])
    indices = np.array([2, 0, 2, 1, 1, 0])
    X = sp.csr_matrix((data, indices, np.array([0, 4, 4, 6])), shape=(3, 3))
    before = (X.data.copy(), X.indices.copy(), X.indptr.copy())
    y, theta = np.array([5.0, -1.0, 2.0]), np.array([0.5, -0.25, 1.0, 0.0])
    merged = sup_gradient_kernel(X.toarray(), y, SquaredLoss())
    found = sup_gradient_kernel(X, y, SquaredLoss()).clipped_sum(theta, 2.0, 2.0**-20)
    assert np.array_equal(found, merged.clipped_sum(theta, 2.0, 2.0**-20))
    assert all(np.array_equal(a, b) for a, b in zip(before, (X.data, X.indices, X.indptr)))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda k: k.clipped_sum(np.zeros(2), 1.0, 1.0), "theta"),
        (lambda k: k.clipped_sum(np.zeros(3), -1.0, 1.0), "clip_norm"),
        (lambda k: k.clipped_sum(np.zeros(3), 1.0, 0.0), "unit"),
        (lambda k: k.clipped_sum(np.zeros(3), 2.0**62, 1.0), "overflow"),
        (lambda k: k.clipped_sum(np.zeros(3), 1.0, 0.1, rows=[0, 0]), "different"),
        (lambda k: k.clipped_sum(np.zeros(3), 1.0, 0.1, rows=[4]), "between"),
    ],
)
def test_bad_arguments_are_refused(call, match):
    kernel = sup_gradient_kernel(np.ones((4, 2)), np.zeros(4), SquaredLoss())
    with pytest.raises(ValueError, match=match):
        call(kernel)


def test_bad_weights_and_labels_are_refused():
    with pytest.raises(ValueError, match="row_weight"):
        sup_gradient_kernel(np.ones((2, 1)), [0, 1], LogisticLoss(), row_weight=[1.0, 1.5])
    with pytest.raises(ValueError, match="class indices"):
        sup_gradient_kernel(np.ones((2, 1)), [0, 3], MultinomialLoss(3))


class DeviceArray:
    """Looks like a CuPy array to `is_cupy`: its values come back by ``get`` only."""

    __module__ = "cupy"

    def __init__(self, values):
        self._values = values

    def get(self):
        return self._values


def test_device_arrays_are_brought_to_the_host():
    _, X, y, theta = problem(2, LogisticLoss())
    for storage in (np.asarray, sp.csr_matrix):
        host = sup_gradient_kernel(storage(X), y, LogisticLoss())
        device = sup_gradient_kernel(DeviceArray(storage(X)), DeviceArray(y), LogisticLoss())
        expected = host.clipped_sum(theta, 0.5, 2.0**-20)
        assert np.array_equal(device.clipped_sum(theta, 0.5, 2.0**-20), expected)


@pytest.mark.gpu
def test_cupy_input():
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    _, X, y, theta = problem(2, LogisticLoss())
    try:
        on_device = cupy.asarray(X)
    except cupy.cuda.runtime.CUDARuntimeError:
        pytest.skip("no CUDA device")
    host = sup_gradient_kernel(X, y, LogisticLoss())
    device = sup_gradient_kernel(on_device, cupy.asarray(y), LogisticLoss())
    assert np.array_equal(device.clipped_sum(theta, 0.5, 2.0**-20), host.clipped_sum(theta, 0.5, 2.0**-20))
