"""Gradient sums against a slow NumPy counterpart, over storages, losses, units, masks and threads."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.kernels import gradient_kernel
from skdp.kernels.inputs import csr_state
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_matrix}
UNIT = 2.0**-30


def unit_gradients(X, y, loss, theta, weight=None, groups=None, mask=None, intercept=True):
    """Gradients of all units, shape (units, p, K), one row after the other."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    X = X.astype(np.float64)
    rows = np.column_stack([X, np.ones(len(X))]) if intercept else X
    r = loss.derivative(rows @ theta, y).reshape(len(X), -1)
    if weight is not None:
        r = r * weight[:, None]
    v = rows[:, :, None] * r[:, None, :]
    if mask is not None:
        v = v * mask[None, :, None]
    if groups is not None:
        v = np.stack([v[groups == g].sum(axis=0) for g in range(groups.max() + 1)])
    return v


def reference_sum(v, clip_norm, unit, mask=None):
    """Clip, round and add the gradients (units, p, K) one by one, with Python integers."""
    entries = v.shape[2] * (v.shape[1] if mask is None else int(mask.sum()))
    room = clip_norm / unit - np.sqrt(entries) / 2 - 1
    total = np.zeros(v.shape[1:], dtype=object)
    for one in v:
        norm = np.sqrt(np.sum(one * one))
        factor = 1 / unit if norm / unit <= room else room / norm
        total += np.vectorize(int, otypes=[object])(np.rint(one * factor))
    return total


def problem(seed=0, n=301, d=37, dtype=np.float64, n_classes=2):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)).astype(dtype)
    return rng, X, rng.integers(0, n_classes, n)


def coefficients(rng, p, loss):
    return rng.standard_normal(p if loss.n_outputs == 1 else (p, loss.n_outputs))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_sums_equal_the_slow_counterpart(loss, dtype, storage):
    rng, X, y = problem(dtype=dtype, n_classes=max(2, loss.n_outputs))
    theta = coefficients(rng, 38, loss)
    weight = rng.random(301)
    groups = rng.integers(0, 40, 301)
    for mask in (None, rng.random(38) < 0.4):
        for by in (None, groups):
            kernel = gradient_kernel(STORAGES[storage](X), y, loss, sample_weight=weight, groups=by)
            v = unit_gradients(X, y, loss, theta, weight, by, mask)
            for clip_norm in (0.3, 100.0):
                expected = reference_sum(v, clip_norm, UNIT, mask).reshape(kernel.shape)
                result = kernel.clipped_sum(theta, clip_norm, UNIT, mask)
                assert result.dtype == np.int64
                # The predictor's last bits may move a unit's entry by a few of 2**28 units.
                assert max(abs(int(a) - b) for a, b in zip(result.flat, expected.flat)) <= len(v)
            plain = kernel.plain_sum(theta, mask)
            np.testing.assert_allclose(plain.reshape(v.shape[1:]), v.sum(axis=0), atol=1e-10)
            if mask is None:
                norms = np.sqrt((v**2).sum(axis=(1, 2)))
                np.testing.assert_allclose(kernel.norms(theta), norms, rtol=1e-12)
            assert kernel.n_units == len(v)


@pytest.mark.parametrize(
    "dtypes",
    [
        [np.float64],
        # Each layout of float32 is compiled by itself, which takes most of the time.
        pytest.param([np.float32, np.float64], marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_storages_agree_to_the_bit_where_predictors_are_exact(loss, intercept, dtypes):
    rng = np.random.default_rng(3)
    X = rng.integers(-3, 4, (230, 21)) * (rng.random((230, 21)) < 0.5) / 4.0
    y = rng.integers(0, max(2, loss.n_outputs), 230)
    theta = np.round(4 * coefficients(rng, 21 + intercept, loss)) / 4
    results = [
        gradient_kernel(store(X.astype(dtype)), y, loss, fit_intercept=intercept).clipped_sum(theta, 0.9, 2.0**-24)
        for store in STORAGES.values()
        for dtype in dtypes
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", [LogisticLoss(), MultinomialLoss(3)], ids=lambda loss: loss.name)
def test_results_do_not_depend_on_the_number_of_threads(loss, storage, grouped, monkeypatch):
    rng, X, y = problem(4, n=8003, d=67, n_classes=loss.n_outputs + (loss.n_outputs == 1))
    theta = coefficients(rng, 68, loss)
    groups = rng.integers(0, 700, 8003) if grouped else None
    kernel = gradient_kernel(STORAGES[storage](X), y, loss, groups=groups)
    results = []
    for threads in (1, 2, 8):
        monkeypatch.setenv("SKDP_NUM_THREADS", str(threads))
        results.append((kernel.clipped_sum(theta, 1.0, UNIT), kernel.plain_sum(theta), kernel.norms(theta)))
    for other in results[1:]:
        for first, second in zip(results[0], other):
            np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_sums_beyond_float64_integers_stay_exact(storage, grouped):
    """200 units of 2**49: an accumulator in float64 alone would lose the low bits."""
    rng, X, y = problem(5, n=200, d=9)
    theta = rng.standard_normal(10)
    groups = rng.permutation(200) if grouped else None
    clip = 2.0**49 * UNIT
    whole = gradient_kernel(STORAGES[storage](X), 1e9 * y, SquaredLoss(), groups=groups)
    result = whole.clipped_sum(theta, clip, UNIT)
    total = np.zeros(10, dtype=object)
    for i in range(200):
        # The second row weighs nothing; one row alone would be C and Fortran order at once.
        one = gradient_kernel(
            STORAGES[storage](X[[i, i]]), 1e9 * y[[i, i]], SquaredLoss(),
            sample_weight=[1.0, 0.0], groups=[0, 1] if grouped else None,
        )  # fmt: skip
        total += one.clipped_sum(theta, clip, UNIT).astype(object)
    assert [int(value) for value in result] == list(total)
    assert max(abs(value) for value in total) > 2**53


def test_sum_that_overflows_is_exact_modulo_two_to_the_64():
    """The number of rows may be private, so that no exception may depend on it."""
    n = 2**17
    one = gradient_kernel(np.ones((1, 1)), np.ones(1), SquaredLoss())
    many = gradient_kernel(np.ones((n, 1)), np.ones(n), SquaredLoss())
    with np.errstate(all="raise"):
        found = many.clipped_sum(1e30 * np.ones(2), 2.0**49, 2.0**-0.5)
        each = one.clipped_sum(1e30 * np.ones(2), 2.0**49, 2.0**-0.5)
    exact = [n * int(value) for value in each]
    assert max(abs(value) for value in exact) > 2**64
    assert [int(value) % 2**64 for value in found] == [value % 2**64 for value in exact]


class TestSparseTraps:
    """ENGINEERING 9: what a CSR matrix may hide."""

    loss = LogisticLoss()
    theta = np.array([0.5, -0.25, 1.0, 0.125])

    def total(self, X, y=(0, 1, 1)):
        return gradient_kernel(X, np.array(y), self.loss).clipped_sum(self.theta, 0.7, 2.0**-20)

    def test_duplicates_are_merged_on_a_copy(self):
        parts = np.array([1.0, 1.0, 2.0, 3.0, -1.0]), np.array([0, 0, 2, 1, 1]), [0, 3, 3, 5]
        X = sp.csr_matrix(parts, shape=(3, 3))
        before = [X.data.copy(), X.indices.copy(), X.indptr.copy()]
        # scipy may believe that the matrix is canonical already.
        X.has_canonical_format = True
        merged = np.array([[2.0, 0, 2], [0, 0, 0], [0, 2, 0]])
        np.testing.assert_array_equal(self.total(X), self.total(merged))
        for array, saved in zip((X.data, X.indices, X.indptr), before):
            np.testing.assert_array_equal(array, saved)

    def test_unsorted_duplicates_are_found(self):
        X = sp.csr_matrix((np.ones(3), np.array([2, 0, 2]), [0, 3, 3, 3]), shape=(3, 3))
        np.testing.assert_array_equal(self.total(X), self.total(X.toarray()))

    @pytest.mark.parametrize("index", [np.int32, np.int64])
    def test_unsorted_explicit_zeros_empty_rows_and_wide_indices(self, index):
        data, indices = np.array([0.0, 2.0, 1.0, -1.0]), np.array([2, 0, 1, 0], index)
        X = sp.csr_matrix(np.zeros((3, 3)))
        X.data, X.indices, X.indptr = data, indices, np.array([0, 2, 2, 4], index)
        for array in (X.data, X.indices, X.indptr):
            array.flags.writeable = False
        np.testing.assert_array_equal(self.total(X), self.total(X.toarray()))

    @pytest.mark.parametrize("bad", [-1, 3, 2**31 - 1])
    def test_an_index_out_of_range_never_reaches_the_kernel(self, bad):
        X = sp.csr_matrix(np.eye(3))
        X.indices = np.array([0, bad, 2], dtype=np.int32)
        with pytest.raises(ValueError, match="index is out of range"):
            self.total(X)

    def test_a_broken_indptr_is_refused(self):
        X = sp.csr_matrix(np.eye(3))
        X.indptr = np.array([0, 2, 1, 3], dtype=np.int32)
        with pytest.raises(ValueError, match="not a valid CSR"):
            self.total(X)

    @pytest.mark.parametrize(
        "change",
        [
            {"indptr": np.array([0, 2**30, 2, 3], dtype=np.int32)},  # would be read before the fall is seen
            {"indptr": np.array([0, 1, 3], dtype=np.int32)},
            {"indptr": np.array([], dtype=np.int32)},
            {"indptr": np.array([0, 1, 2, 4], dtype=np.int32)},
            {"indptr": np.array([1, 1, 2, 3], dtype=np.int32)},
            {"indices": np.array([0, 1], dtype=np.int32)},
            {"data": np.ones(2)},
            {"indices": np.array([0, 1, -3], dtype=np.int32)},
        ],
    )
    def test_no_array_is_read_outside(self, change):
        X = sp.csr_matrix(np.eye(3))
        for name, value in change.items():
            setattr(X, name, value)
        with pytest.raises(ValueError, match="not a valid CSR"):
            gradient_kernel(X, np.zeros(3), LogisticLoss())

    def test_every_order_of_columns_is_told_apart(self):
        def state(*rows):
            indptr = np.cumsum([0, *map(len, rows)]).astype(np.int32)
            return csr_state(np.concatenate(rows).astype(np.int32), indptr, 40)

        ascending = np.arange(2, 39)
        assert state(ascending, [], [39], [0, 39]) == 0
        assert state(ascending, ascending[::-1]) == 1
        assert state(ascending, [3, 2], [2, 3]) == 1
        assert state(ascending, [3, 2, 3]) == state([5, 5]) == 2
        for bad in ([-1, 3], [3, 40], [3, 40, 2], [2, -1, 3]):
            assert state(ascending, bad, ascending) == -1

    def test_csr_array_and_no_rows(self):
        np.testing.assert_array_equal(self.total(sp.csr_array(np.eye(3))), self.total(sp.csr_matrix(np.eye(3))))
        assert self.total(sp.csr_matrix((0, 3)), ()).tolist() == [0, 0, 0, 0]


def test_read_only_strided_and_integer_input():
    rng, X, y = problem(6)
    theta = rng.standard_normal(38)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((301, 74))
    wide[:, ::2] = X
    expected = gradient_kernel(X, y, LogisticLoss()).clipped_sum(theta, 1.0, UNIT)
    for same in (frozen, wide[:, ::2]):
        result = gradient_kernel(same, y, LogisticLoss()).clipped_sum(theta, 1.0, UNIT)
        np.testing.assert_array_equal(result, expected)
    whole = rng.integers(-2, 3, (301, 37))
    np.testing.assert_array_equal(
        gradient_kernel(whole, y, LogisticLoss()).clipped_sum(theta, 1.0, UNIT),
        gradient_kernel(whole.astype(float), y, LogisticLoss()).clipped_sum(theta, 1.0, UNIT),
    )


@pytest.mark.parametrize("storage", STORAGES)
def test_memory_stays_within_a_few_arrays(storage, monkeypatch):
    monkeypatch.setenv("SKDP_NUM_THREADS", "2")
    rng = np.random.default_rng(7)
    X = STORAGES[storage](rng.standard_normal((4000, 300)) * (rng.random((4000, 300)) < 0.1))
    y = rng.integers(0, 2, 4000).astype(float)
    theta = rng.standard_normal(301)
    gradient_kernel(X, y, LogisticLoss()).clipped_sum(theta, 1.0, UNIT)
    tracemalloc.start()
    kernel = gradient_kernel(X, y, LogisticLoss())
    kernel.clipped_sum(theta, 1.0, UNIT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # No copy of X (0.5 MB at least), no vector of n: a few arrays of 301 and the Python objects.
    assert peak < 20 * 301 * 8 + 30_000


def test_a_row_of_zeros_and_a_weight_of_zero_add_nothing():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    kernel = gradient_kernel(X, [1, 1], LogisticLoss(), fit_intercept=False, sample_weight=[1.0, 0.0])
    assert kernel.clipped_sum(np.ones(2), 1.0, UNIT).tolist() == [0, 0]
    assert kernel.plain_sum(np.ones(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1]}, "y must have shape"),
        ({"sample_weight": [1.0]}, "must have shape"),
        ({"groups": [0, 1]}, "groups must be integer codes"),
        ({"groups": [0.0, 1.0, 2.0]}, "groups must be integer codes"),
        ({"groups": [0, -1, 2]}, "codes from 0"),
        ({"X": np.ones(3)}, "two dimensions"),
        ({"X": sp.csc_matrix(np.ones((3, 2)))}, "must be CSR"),
        ({"loss": MultinomialLoss(2), "y": [0, 1, 2]}, "class indices from 0 to 1"),
    ],
)
def test_bad_data(change, message):
    arguments = {"X": np.ones((3, 2)), "y": [0, 1, 1], "loss": LogisticLoss()} | change
    with pytest.raises(ValueError, match=message):
        gradient_kernel(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(2), 1.0, UNIT), "theta must have shape"),
        ((np.zeros(3), np.inf, UNIT), "clip_norm must be finite"),
        ((np.zeros(3), 0.0, UNIT), "clip_norm must be finite"),
        ((np.zeros(3), 1.0, np.nan), "unit must be finite"),
        ((np.zeros(3), 1.0, 1e-300), "unit must lie between"),
        ((np.zeros(3), 1.0, 0.6), "must exceed"),
        ((np.zeros(3), 2.0**51, 1.0), "stay below"),
        ((np.zeros(3), 1.0, UNIT, np.ones(2, bool)), "mask must have shape"),
    ],
)
def test_bad_arguments(arguments, message):
    kernel = gradient_kernel(np.ones((3, 2)), [0, 1, 1], LogisticLoss())
    with pytest.raises(ValueError, match=message):
        kernel.clipped_sum(*arguments)
