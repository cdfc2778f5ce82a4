"""Rows built to enter a recursive sum, or a sum of losses, with more than their bound."""

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
    0.0, 0.5, -0.5, 1.0, 1.5 * UNIT, 0.5 * UNIT, 5e-324, 1e-310, 1e-170, -1e-160, 1e150, -1e153,
    1e154, 1e300, 1.7e308, 3.0, 1 + 2**-52, 1 / 3, 1e8, -1e-8,
]  # fmt: skip

# Next points: the same, one last place away (the difference cancels), and far away.
MOVES = [1.0, 1 + 2**-52, 1 - 2**-53, 1 + 1e-9, -1.0, 0.0, 1e5]


def square_norm(q):
    """Exact squared norm of an integer vector."""
    return sum(int(value) ** 2 for value in np.ravel(q))


def bound_units(momentum, clip_norm, clip_diff_norm):
    """The claimed bound as an exact fraction."""
    g = Fraction(momentum)
    return ((1 - g) * Fraction(clip_diff_norm) + g * Fraction(clip_norm)) / Fraction(UNIT)


def kernel_of(X, y, loss, storage="C", **options):
    return gradient_kernel(STORAGES[storage](np.atleast_2d(X)), y, loss, **options)


@each_storage(pytest.mark.thorough)
def test_no_unit_enters_with_more_than_both_clips_allow(storage, grouped):
    @settings(deadline=None, derandomize=True, max_examples=150)
    @given(
        x=st.lists(st.sampled_from(NASTY), min_size=1, max_size=8),
        y=st.sampled_from([0.0, 1.0, -1e300, 1e160, 1e-300]),
        weight=st.sampled_from([1.0, 1e-300, 0.3, 1e300]),
        scale=st.sampled_from([0.0, 1e-5, 1.0, 1e200]),
        move=st.sampled_from(MOVES),
        momentum=st.sampled_from([0.0, 2.0**-500, 1e-9, 0.1, 0.5, 1 - 2**-53, 1.0]),
        clips=st.sampled_from([(20 * UNIT, 25 * UNIT), (1.0, 1e-3), (30 * UNIT, 700.0)]),
    )
    def check(x, y, weight, scale, move, momentum, clips):
        theta = scale * np.resize([1.0, -1.0, 0.5], len(x) + 1)
        target = [y, 1.0 - y] if grouped else [y]
        X = np.resize(x, (len(target), len(x)))
        options = {"sample_weight": [weight] * len(target)}
        options["groups"] = [0, 0] if grouped else None
        for loss in (SquaredLoss(), HuberLoss(1e100), LogisticLoss()):
            kernel = kernel_of(X, target, loss, storage, **options)
            q = kernel.recursive_sum(theta, move * theta, momentum, *clips, UNIT)
            assert square_norm(q) <= bound_units(momentum, *clips) ** 2

    check()


@each_storage(pytest.mark.thorough)
def test_no_unit_enters_a_multinomial_sum_with_more(storage, grouped):
    @settings(deadline=None, derandomize=True, max_examples=100)
    @given(
        x=st.lists(st.sampled_from(NASTY), min_size=1, max_size=6),
        y=st.integers(0, 2),
        weight=st.sampled_from([1.0, 1e-300, 1e300]),
        scale=st.sampled_from([0.0, 1e-5, 3.0]),
        move=st.sampled_from(MOVES),
        momentum=st.sampled_from([0.0, 0.3]),
    )
    def check(x, y, weight, scale, move, momentum):
        theta = scale * np.resize([1.0, -1.0, 0.5, 0.25], (len(x) + 1, 3))
        kernel = kernel_of(
            x, [y], MultinomialLoss(3), storage,
            sample_weight=[weight], groups=[0] if grouped else None,
        )  # fmt: skip
        q = kernel.recursive_sum(theta, move * theta, momentum, 0.4, 0.1, UNIT)
        assert square_norm(q) <= bound_units(momentum, 0.4, 0.1) ** 2

    check()


def half_unit_sum(momentum=0.5, width=10**4):
    """Every entry is 0.6 units before it is rounded: nearest rounding makes it 1."""
    clip_norm = 0.6 * np.sqrt(width) * UNIT
    kernel = kernel_of(np.ones(width), [1.0], SquaredLoss(), fit_intercept=False)
    theta = np.zeros(width)
    # Present residual -1, former residual +1: both parts point the same way.
    previous = np.full(width, 2.0 / width)
    q = kernel.recursive_sum(theta, previous, momentum, clip_norm, clip_norm, UNIT)
    return q, bound_units(momentum, clip_norm, clip_norm)


def test_rounding_up_every_entry_stays_within_the_bound_and_without_the_margin_does_not(monkeypatch):
    q, bound = half_unit_sum()
    assert square_norm(q) <= bound**2
    monkeypatch.setattr(GradientKernel, "_limit", lambda self, clip, unit, mask: (clip / unit, clip / unit))
    q, bound = half_unit_sum()
    assert square_norm(q) > bound**2


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberLoss(2.0), MultinomialLoss(3)])
@pytest.mark.parametrize("grouped", [False, True])
def test_replacing_a_unit_moves_the_sum_by_two_bounds_at_most(storage, loss, grouped):
    rng = np.random.default_rng(1)
    n, d, arguments = 101, 7, (0.3, 60 * UNIT, 40 * UNIT)
    X = rng.standard_normal((n, d))
    y = rng.integers(0, 2, n)
    groups = rng.integers(0, 30, n) if grouped else None
    theta = rng.standard_normal((d + 1,) if loss.n_outputs == 1 else (d + 1, 3))
    previous = theta + rng.standard_normal(theta.shape)
    units = np.arange(n) if groups is None else groups
    rest = (theta, previous, *arguments, UNIT)
    first = kernel_of(X, y, loss, storage, groups=groups).recursive_sum(*rest)
    largest = 0
    for trial in range(45):
        other, labels = X.copy(), y.copy()
        rows = np.flatnonzero(units == units[rng.integers(n)])
        # All rows of the unit alike, so that their gradients point the same way; then wilder ones.
        labels[rows] = trial % 2
        other[rows] = 30 * rng.standard_normal(d)
        if trial % 3 == 0:
            other[rows] = rng.choice([-1e3, 1e-200, 1e9, 1e160, 0.3], (len(rows), d))
        codes = groups
        if grouped and trial % 4:  # a group of another size, its rows somewhere else
            gone, size = groups[rows[0]], int(rng.choice([1, 2, 70, 300]))
            kept, new = groups != gone, np.resize(rows, size)
            other = np.vstack([other[new], other[kept]])
            labels, codes = (np.append(labels[new], labels[kept]), np.append(groups[new], groups[kept]))
        after = kernel_of(other, labels, loss, storage, groups=codes).recursive_sum(*rest)
        moved = square_norm(after - first)
        assert moved <= (2 * bound_units(*arguments)) ** 2
        largest = max(largest, moved)
    # The bound is not idle: some replacement moves the sum by more than one bound.
    assert largest > bound_units(*arguments) ** 2


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_units_that_are_not_finite_add_zero_and_leave_the_others(storage, grouped):
    X = np.array([[1.0, 2.0], [1e200, 1e200], [3.0, -1.0], [1e308, 1e308], [0.0, 0.5], [1.0, 1.0]])
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0, np.inf])
    theta, previous = np.array([1.0, 1.0, 0.0]), np.array([0.5, 1.0, 0.1])
    kernel = kernel_of(X, y, SquaredLoss(), storage, groups=np.arange(6) if grouped else None)
    rest = (theta, previous, 0.4, 1.0, 0.5, UNIT)
    bad = kernel.recursive_sum(*rest, rows=np.array([1, 3, 5]))
    assert not bad.any()
    good = kernel.recursive_sum(*rest, rows=np.array([0, 2, 4]))
    assert good.any()
    np.testing.assert_array_equal(kernel.recursive_sum(*rest), good)


@each_storage(pytest.mark.thorough)
def test_no_unit_adds_more_than_half_the_bound_of_the_losses(storage, grouped):
    @settings(deadline=None, derandomize=True, max_examples=150)
    @given(
        x=st.lists(st.sampled_from(NASTY), min_size=1, max_size=6),
        y=st.sampled_from([0.0, 1.0]),
        weight=st.sampled_from([1.0, 1e-300, 1e300]),
        scale=st.sampled_from([0.0, 1e-5, 1.0, 1e200, np.inf]),
        bound=st.sampled_from([2 * UNIT, 2.99 * UNIT, 7 * UNIT, 1.0, 1e6]),
    )
    def check(x, y, weight, scale, bound):
        with np.errstate(invalid="ignore"):
            theta = scale * np.resize([1.0, -1.0, 0.5], len(x) + 1)
        for loss in (SquaredLoss(), HuberLoss(1e100), LogisticLoss()):
            kernel = kernel_of(x, [y], loss, storage, sample_weight=[weight], groups=[0] if grouped else None)
            for q in kernel.loss_sums([theta, -theta], bound, UNIT):
                assert abs(int(q)) <= Fraction(bound) / Fraction(UNIT) / 2

    check()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_loss_that_is_not_finite_counts_as_the_bound(storage, grouped):
    kernel = kernel_of([[1e308, 1e308]], [0.0], SquaredLoss(), storage, groups=[0] if grouped else None)
    top = [2**19, 2**19]
    assert kernel.loss_sums([[1e200, 1e200, 0.0], [1.0, 1.0, 0.0]], 1.0, UNIT).tolist() == top
    logistic = kernel_of([[1e308, -1e308]], [1.0], LogisticLoss(), storage)
    assert logistic.loss_sums([[1e308, 1e308, 0.0]], 1.0, UNIT).tolist() == [2**19]
