"""Rows built to enter a sum with more than the clip, and the mutants that would let them."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from skdp.kernels import GradientKernel, gradient_kernel
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from tests.kinds import each_storage

STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sp.csr_matrix}
UNIT = 2.0**-20

# Values whose squares underflow, overflow, tie in rounding or differ by a last place.
NASTY = [
    0.0, 0.5, -0.5, 1.0, 1.5 * UNIT, 0.5 * UNIT, 0.5000001 * UNIT, 5e-324, 1e-310, 1e-170, -1e-160,
    1e-155, 1e150, -1e153, 1e154, 1.4e154, 1e300, 1.7e308, 3.0, 1 + 2**-52, 1 / 3, 1e8, -1e-8,
]  # fmt: skip


def square_norm(q):
    """Exact squared norm of an integer vector."""
    return sum(int(value) ** 2 for value in np.ravel(q))


def within(q, clip_norm, unit, times=1):
    """Whether the exact norm of q is at most ``times`` clips."""
    bound = times * Fraction(clip_norm) / Fraction(unit)
    return square_norm(q) <= bound * bound


def one_row(x, y, loss, theta, clip_norm, storage="C", unit=UNIT, **options):
    kernel = gradient_kernel(STORAGES[storage](np.atleast_2d(x)), [y], loss, **options)
    return kernel.clipped_sum(theta, clip_norm, unit)


@each_storage(pytest.mark.thorough)
def test_no_row_enters_with_more_than_the_clip(storage, grouped):
    @settings(deadline=None, derandomize=True, max_examples=300)
    @given(
        x=st.lists(st.sampled_from(NASTY), min_size=1, max_size=12),
        y=st.sampled_from([0.0, 1.0, -1e300, 1e160, 1e-300, 7.3]),
        weight=st.sampled_from([1.0, 1e-300, 0.3, 1e300]),
        scale=st.sampled_from([0.0, 1e-5, 1.0, 1e200]),
        clip_norm=st.sampled_from([20 * UNIT, 1.0, 777.7]),
    )
    def check(x, y, weight, scale, clip_norm):
        theta = scale * np.resize([1.0, -1.0, 0.5], len(x) + 1)
        for loss in (SquaredLoss(), HuberLoss(1e100), LogisticLoss()):
            q = one_row(
                x, y, loss, theta, clip_norm, storage,
                sample_weight=[weight], groups=[0] if grouped else None,
            )  # fmt: skip
            assert within(q, clip_norm, UNIT)

    check()


@pytest.mark.parametrize("storage", STORAGES)
def test_no_row_enters_a_multinomial_sum_with_more_than_the_clip(storage):
    @settings(deadline=None, derandomize=True, max_examples=200)
    @given(
        x=st.lists(st.sampled_from(NASTY), min_size=1, max_size=8),
        y=st.integers(0, 2),
        weight=st.sampled_from([1.0, 1e-300, 1e300]),
        scale=st.sampled_from([0.0, 1e-5, 3.0]),
    )
    def check(x, y, weight, scale):
        theta = scale * np.resize([1.0, -1.0, 0.5, 0.25], (len(x) + 1, 3))
        q = one_row(x, y, MultinomialLoss(3), theta, 1.0, storage, sample_weight=[weight])
        assert within(q, 1.0, UNIT)

    check()


def half_unit_row(width):
    """Every entry of the clipped gradient is 0.6 units: nearest rounding makes it 1."""
    clip_norm = 0.6 * np.sqrt(width) * UNIT
    return np.ones(width), clip_norm


@pytest.mark.parametrize("storage", STORAGES)
def test_rounding_up_every_entry_cannot_exceed_the_clip(storage):
    x, clip_norm = half_unit_row(10**6)
    q = one_row(x, 1.0, SquaredLoss(), np.zeros(10**6), clip_norm, storage, fit_intercept=False)
    assert within(q, clip_norm, UNIT)


def test_without_the_rounding_margin_the_same_row_is_caught(monkeypatch):
    """The mutant: the limit is the clip itself, as if rounding were free."""

    def no_margin(self, clip_norm, unit, mask):
        return clip_norm / unit, clip_norm / unit

    monkeypatch.setattr(GradientKernel, "_limit", no_margin)
    x, clip_norm = half_unit_row(10**4)
    q = one_row(x, 1.0, SquaredLoss(), np.zeros(10**4), clip_norm, fit_intercept=False)
    assert not within(q, clip_norm, UNIT)


@pytest.mark.parametrize("storage", STORAGES)
def test_squares_that_underflow_do_not_hide_a_row(storage):
    """x**2 is 0 in float64, so a norm without the upward margin is 0 and nothing is clipped."""
    x = np.full(50, 1e-170)
    assert np.sum(x * x) == 0.0
    assert 1e300 * np.linalg.norm(x * 1e170) * 1e-170 > 1e100
    for options in ({}, {"groups": [0]}):
        q = one_row(x, 1e300, SquaredLoss(), np.zeros(50), 1.0, storage, fit_intercept=False, **options)
        assert within(q, 1.0, UNIT)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_units_that_are_not_finite_add_zero_and_leave_the_others(storage, grouped):
    X = np.array([[1.0, 2.0], [1e200, 1e200], [3.0, -1.0], [1e308, 1e308], [0.0, 0.5], [1.0, 1.0]])
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0, np.inf])
    theta = np.array([1.0, 1.0, 0.0])
    groups = np.arange(6) if grouped else None
    bad = np.array([1, 3, 5])
    good = np.array([0, 2, 4])

    def total(rows):
        kernel = gradient_kernel(
            STORAGES[storage](X[rows]), y[rows], SquaredLoss(),
            groups=np.arange(len(rows)) if grouped else None,
        )  # fmt: skip
        return kernel.clipped_sum(theta, 1.0, UNIT)

    whole = gradient_kernel(STORAGES[storage](X), y, SquaredLoss(), groups=groups)
    np.testing.assert_array_equal(whole.clipped_sum(theta, 1.0, UNIT), total(good))
    assert not total(bad).any()
    assert np.isinf(whole.norms(theta)[bad]).all()
    assert np.isfinite(whole.norms(theta)[good]).all()


@pytest.mark.parametrize("storage", STORAGES)
def test_a_stored_infinity_does_not_poison_the_sum(storage):
    """Merged duplicates can overflow after X was found finite."""
    X = np.array([[1.0, 2.0], [np.inf, 1.0], [3.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    kernel = gradient_kernel(STORAGES[storage](X), np.ones(5), LogisticLoss())
    result = kernel.clipped_sum(np.zeros(3), 0.1, UNIT)
    rest = gradient_kernel(STORAGES[storage](X[[0, 2, 3, 4]]), np.ones(4), LogisticLoss())
    np.testing.assert_array_equal(result, rest.clipped_sum(np.zeros(3), 0.1, UNIT))


@pytest.mark.parametrize("storage", STORAGES)
def test_norms_are_never_below_the_exact_norm(storage):
    rng = np.random.default_rng(0)
    X = rng.choice(NASTY[:14], (60, 6))
    y = rng.choice([1.0, -3.7, 1e-5, 1e100], 60)
    norms = gradient_kernel(STORAGES[storage](X), y, SquaredLoss()).norms(np.zeros(7))
    for x, target, norm in zip(X, y, norms):
        exact = Fraction(target) ** 2 * (1 + sum(Fraction(value) ** 2 for value in x))
        assert Fraction(norm) ** 2 >= exact


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(2.0), MultinomialLoss(3)])
@pytest.mark.parametrize("grouped", [False, True])
def test_replacing_a_unit_moves_the_sum_by_two_clips_at_most(storage, loss, grouped):
    rng = np.random.default_rng(1)
    n, d, clip_norm = 257, 11, 50 * UNIT
    X = rng.standard_normal((n, d))
    y = rng.integers(0, 2, n)
    if loss.name == "huber":
        y = 100 * y - 50
    groups = rng.integers(0, 30, n) if grouped else None
    shape = (d + 1,) if loss.n_outputs == 1 else (d + 1, 3)
    theta = rng.standard_normal(shape)
    units = np.arange(n) if groups is None else groups
    before = gradient_kernel(STORAGES[storage](X), y, loss, groups=groups)
    first = before.clipped_sum(theta, clip_norm, UNIT)
    largest = 0
    for trial in range(40):
        other, labels = X.copy(), y.copy()
        rows = np.flatnonzero(units == units[rng.integers(n)])
        labels[rows] = y.min() + y.max() - labels[rows]
        # The same row with the other label is the pair that hurts most; then wilder ones.
        if trial % 2:
            other[rows] = rng.choice([-1e3, 1e-200, 1e9, 1e160, 0.3], (len(rows), d))
        codes = groups
        if grouped and trial % 3:  # a group of another size, its rows somewhere else
            gone, size = groups[rows[0]], int(rng.choice([1, 2, 70, 300]))
            kept, new = groups != gone, np.resize(rows, size)
            other = np.vstack([other[new], other[kept]])
            labels, codes = (np.append(labels[new], labels[kept]), np.append(groups[new], groups[kept]))
        after = gradient_kernel(STORAGES[storage](other), labels, loss, groups=codes)
        moved = after.clipped_sum(theta, clip_norm, UNIT) - first
        assert within(moved, clip_norm, UNIT, times=2)
        largest = max(largest, square_norm(moved))
    # The bound is not idle: some replacement moves the sum by clearly more than one clip.
    assert largest > (1.2 * 50) ** 2


def test_a_mask_restricts_what_is_clipped():
    """Huge masked-out coordinates neither count in the norm nor reach the sum."""
    X = np.array([[1e300, 0.5, 1.0], [-1e308, 0.25, 2.0]])
    mask = np.array([False, True, True, True])
    for storage in STORAGES.values():
        for groups in (None, [0, 1]):
            kernel = gradient_kernel(storage(X), [0.0, 1.0], LogisticLoss(), groups=groups)
            result = kernel.clipped_sum(np.zeros(4), 10.0, UNIT, mask)
            expected = 0.5 * X[0] - 0.5 * X[1]
            assert result[0] == 0
            np.testing.assert_allclose(result[1:3] * UNIT, expected[1:], atol=2 * UNIT)
            assert result[3] == 0
