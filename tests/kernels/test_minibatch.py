"""Gradient sums over chosen units: the integers of the sum over all, row by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.kernels import gradient_kernel
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from tests.kinds import each_storage

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_matrix}
UNIT = 2.0**-30

# Values that are empty, tie in rounding, underflow or overflow when squared, or differ by a last place.
VALUES = [0.0, 0.0, 0.0, 0.5 * UNIT, 1.5 * UNIT, 5e-324, 1e-170, 1e154, 1e300, 1.0, 1 + 2**-52, -3.0]


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
@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
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


@each_storage(pytest.mark.thorough)
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


def gradients(X, y, loss, theta, weight, groups):
    """Gradients of all units, shape (units, p, K)."""
    rows = np.column_stack([X.astype(np.float64), np.full(len(X), 2.0)])
    r = loss.derivative(rows @ theta, y).reshape(len(X), -1) * weight[:, None]
    v = rows[:, :, None] * r[:, None, :]
    if groups is None:
        return v
    return np.stack([v[groups == g].sum(axis=0) for g in range(groups.max() + 1)])


def clipped(v, limit):
    norm = np.sqrt(np.sum(v * v))
    return v / UNIT if norm / UNIT <= limit else v * (limit / norm)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_recursive_sums_and_losses_equal_the_slow_counterpart(loss, storage):
    rng, X, y, theta = problem(loss, np.float64)
    previous = theta + 0.02 * rng.standard_normal(theta.shape)
    weight = rng.random(len(y)) + 0.5
    groups = rng.integers(0, 40, len(y))
    for by in (None, groups):
        kernel = gradient_kernel(
            STORAGES[storage](X), y, loss, sample_weight=weight, groups=by, intercept_value=2.0
        )
        rows = np.sort(rng.choice(kernel.n_units, kernel.n_units // 2, replace=False))
        now = gradients(X, y, loss, theta, weight, by)
        before = gradients(X, y, loss, previous, weight, by)
        for g, c1, c2 in [(0.0, 1.0, 0.05), (0.25, 1.5, 0.03), (1.0, 0.7, 0.1)]:
            bound = (1 - g) * c2 + g * c1
            room = bound / UNIT - np.sqrt(theta.size) / 2 - 1
            total = np.zeros(now.shape[1:])
            for u in rows:
                a = clipped(now[u] - before[u], room * c2 / bound)
                total += np.rint((1 - g) * a + g * clipped(now[u], room * c1 / bound))
            result = kernel.recursive_sum(theta, previous, g, c1, c2, UNIT, rows=rows)
            # A predictor's last bits move an entry by a few of 2**30 units.
            np.testing.assert_allclose(result, total.reshape(result.shape), rtol=0, atol=len(rows))
        both = np.stack([theta, previous])
        extended = np.column_stack([X, np.full(len(X), 2.0)])
        found = kernel.loss_sums(both, 1.5, UNIT, rows=rows)
        for one, q in zip(both, found):
            row_losses = loss.value(extended @ one, y) * weight
            units = row_losses if by is None else np.bincount(by, row_losses)
            expected = np.rint((np.clip(units[rows], 0, 1.5) - 0.75) / UNIT).sum()
            assert abs(int(q) - expected) <= len(rows)
            assert abs(expected) > 1e6
        parts = parts_of(rng, kernel.n_units, 3)
        halves = [kernel.loss_sums(both, 1.5, UNIT, rows=part) for part in parts]
        np.testing.assert_array_equal(sum(halves), kernel.loss_sums(both, 1.5, UNIT))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_where_the_recursive_sum_is_a_clipped_sum(storage, grouped):
    rng, X, y, theta = problem(LogisticLoss(), np.float64)
    groups = rng.integers(0, 40, len(y)) if grouped else None
    kernel = gradient_kernel(STORAGES[storage](X), y, LogisticLoss(), groups=groups)
    np.testing.assert_array_equal(
        kernel.recursive_sum(theta, -theta, 1.0, 0.4, 0.1, UNIT), kernel.clipped_sum(theta, 0.4, UNIT)
    )
    # At the same point nothing is left of the difference; g times the clip is that of a finer grid.
    half = kernel.recursive_sum(theta, theta, 0.5, 0.4, 0.4, UNIT)
    whole = kernel.clipped_sum(theta, 0.4, UNIT)
    np.testing.assert_allclose(half, whole / 2, atol=(kernel.n_units) * 4)
    assert np.abs(whole).max() > 1e6


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_batch_without_units_gives_exact_zeros(storage, grouped):
    for loss in (LogisticLoss(), MultinomialLoss(3)):
        _, X, y, theta = problem(loss, np.float64)
        groups = np.arange(len(y)) // 3 if grouped else None
        kernel = gradient_kernel(STORAGES[storage](X), y, loss, groups=groups)
        for empty in (np.zeros(0, np.int64), []):
            assert not kernel.clipped_sum(theta, 1.0, UNIT, rows=empty).any()
            assert not kernel.plain_sum(theta, rows=empty).any()
            assert not kernel.recursive_sum(theta, -theta, 0.5, 1.0, 1.0, UNIT, rows=empty).any()
            assert kernel.loss_sums([theta], 1.0, UNIT, rows=empty).tolist() == [0]
        assert kernel.loss_sums(np.zeros((0, *theta.shape)), 1.0, UNIT).shape == (0,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1, 0], "ascend strictly"),
        ([1, 1], "ascend strictly"),
        ([-1, 1], "below the number of units"),
        ([0, 3], "below the number of units"),
        ([[0, 1]], "vector of integers"),
        ([0.0, 1.0], "vector of integers"),
        ([True, False, True], "vector of integers"),
        (np.array([2**63], np.uint64), "below the number of units"),
    ],
)
def test_rows_that_cannot_be_are_refused(rows, message):
    kernel = gradient_kernel(np.eye(3), [0, 1, 1], LogisticLoss())
    theta = np.zeros(4)
    calls = [
        lambda: kernel.clipped_sum(theta, 1.0, UNIT, rows=rows),
        lambda: kernel.plain_sum(theta, rows=rows),
        lambda: kernel.recursive_sum(theta, theta, 0.5, 1.0, 1.0, UNIT, rows=rows),
        lambda: kernel.loss_sums([theta], 1.0, UNIT, rows=rows),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_arguments_out_of_range_are_refused():
    kernel = gradient_kernel(np.eye(3), [0, 1, 1], LogisticLoss())
    theta = np.zeros(4)
    for momentum in (-0.1, 1.1, np.nan, 1e-300):
        with pytest.raises(ValueError, match="momentum must be 0 or lie"):
            kernel.recursive_sum(theta, theta, momentum, 1.0, 1.0, UNIT)
    for clips, name in [((np.inf, 1.0), "clip_norm"), ((1.0, 0.0), "clip_diff_norm")]:
        with pytest.raises(ValueError, match=name):
            kernel.recursive_sum(theta, theta, 0.5, *clips, UNIT)
    with pytest.raises(ValueError, match="use another unit"):
        kernel.recursive_sum(theta, theta, 0.5, UNIT, UNIT, UNIT)
    with pytest.raises(ValueError, match="must have shape"):
        kernel.recursive_sum(theta, np.zeros(3), 0.5, 1.0, 1.0, UNIT)
    with pytest.raises(ValueError, match="must have shape"):
        kernel.loss_sums([np.zeros(3)], 1.0, UNIT)
    for bound in (UNIT, 1e60, np.inf, np.nan, -1.0):
        with pytest.raises(ValueError, match="bound"):
            kernel.loss_sums([theta], bound, UNIT)


@pytest.mark.parametrize("storage", STORAGES)
def test_sums_do_not_depend_on_the_number_of_threads(storage, monkeypatch):
    rng, X, y, theta = problem(LogisticLoss(), np.float64, n=20011, d=40)
    kernel = gradient_kernel(STORAGES[storage](X), y, LogisticLoss())
    rows = np.sort(rng.choice(20011, 15000, replace=False))
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setenv("SKDP_NUM_THREADS", str(threads))
        results.append(
            np.concatenate(
                [
                    kernel.clipped_sum(theta, 0.1, UNIT, rows=rows),
                    kernel.plain_sum(theta, rows=rows),
                    kernel.recursive_sum(theta, -theta, 0.5, 0.1, 0.1, UNIT, rows=rows),
                    kernel.loss_sums([theta], 1.0, UNIT, rows=rows),
                ]
            )
        )
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
