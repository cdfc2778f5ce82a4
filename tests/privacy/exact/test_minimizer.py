"""The certified minimiser: it meets tau on any data, and no replaced unit moves it further than declared."""

import math

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

import skdp.kernels.minimizer as minimizer
from skdp.exceptions import UnsupportedAccounting
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import perturbed_minimizer, ridge_minimizer

pytestmark = pytest.mark.blas

LOSSES = [LogisticLoss(), HuberLoss(0.7), MultinomialLoss(3)]
NAMES = [loss.name for loss in LOSSES]


def targets(loss, rng, n):
    if loss.name == "huber":
        return rng.normal(size=n) * 10.0 ** rng.integers(-2, 4)
    return rng.integers(0, max(2, loss.n_outputs), size=n).astype(float)


def minimiser(X, y, loss, *, alpha=0.1, row_norm=1.0, adjacency="replace-one", mask=None, **params):
    records = PrivateRecords(X, y, **{"fit_intercept": True, **params})
    bounded = ridge_minimizer(records, loss, alpha=alpha, row_norm=row_norm, adjacency=adjacency, mask=mask)
    return bounded, bounded._value.plain()


def slow_gradient(X, y, loss, theta, alpha, row_norm, value=1.0):
    """Gradient of F in extended precision, row by row."""
    total = np.zeros(theta.shape, dtype=np.longdouble)
    for row, target in zip(np.asarray(X, dtype=np.longdouble), y):
        row = row * min(1, row_norm / max(np.sqrt((row**2).sum()), np.longdouble(1e-300)))
        row = np.append(row, np.longdouble(value))
        z = row @ theta.astype(np.longdouble)
        if loss.name == "logistic":
            slope = 1 / (1 + np.exp(-z)) - target
        elif loss.name == "huber":
            slope = np.clip(z - target, -loss.threshold, loss.threshold)
        else:
            slope = np.exp(z - z.max())
            slope /= slope.sum()
            slope[int(target)] -= 1
        total += np.multiply.outer(row, slope)
    return total / len(y) + alpha * theta.astype(np.longdouble)


def tau_of(bounded, gradient, n, alpha):
    """What of the declared sensitivity is the gap of the solver."""
    return 0.5 * alpha * (bounded.l2 - 2 * gradient / (n * alpha))


def worst_data(loss, n=40, d=5, row_norm=1.0):
    """Separable, every row at the norm bound and nearly the same."""
    X = np.full((n, d), row_norm / math.sqrt(d)) + 1e-6 * np.random.default_rng(1).normal(size=(n, d))
    y = np.ones(n) if loss.name != "huber" else np.full(n, 1e6)
    return 10 * X, y


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_worst_case_data_meet_tau(loss, alpha):
    X, y = worst_data(loss)
    bounded, theta = minimiser(X, y, loss, alpha=alpha)
    gradient = minimizer.lipschitz(loss) * math.hypot(1, 1)
    tau = tau_of(bounded, gradient, len(y), alpha)
    size = np.linalg.norm(slow_gradient(X, y, loss, theta, alpha, 1.0).ravel().astype(float))
    assert size <= tau
    assert 0 < tau <= 1e-3 * gradient / len(y)  # the gap costs next to nothing


@pytest.mark.parametrize("which", ["momentum", "descent"])
@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_fixed_schedule_suffices_without_newton(loss, which, monkeypatch):
    monkeypatch.setattr(minimizer, "newton", lambda objective, tau: None)
    if which == "descent":  # as if rounding had spoilt every accelerated point
        whole = minimizer.schedule

        def second_part(objective, tau):
            points = list(whole(objective, tau))
            start = [i for i, point in enumerate(points) if not point.any()][-1]
            return iter(points[start:])

        monkeypatch.setattr(minimizer, "schedule", second_part)
    X, y = worst_data(loss)
    bounded, theta = minimiser(X, y, loss, alpha=0.02)
    tau = tau_of(bounded, minimizer.lipschitz(loss) * math.hypot(1, 1), len(y), 0.02)
    size = np.linalg.norm(slow_gradient(X, y, loss, theta, 0.02, 1.0).ravel().astype(float))
    assert size <= tau


def test_agrees_with_mpmath():
    X, y = np.array([[0.6, 0.0], [0.0, -0.5], [0.3, 0.4]]), np.array([1.0, 0.0, 0.0])
    alpha = 0.05
    rows = [(*map(mpmath.mpf, map(str, row)), mpmath.mpf(1)) for row in X]

    def gradient(*theta):
        total = [alpha * t for t in theta]
        for row, target in zip(rows, y):
            slope = 1 / (1 + mpmath.exp(-sum(a * b for a, b in zip(row, theta)))) - target
            total = [g + slope * a / 3 for g, a in zip(total, row)]
        return total

    exact = mpmath.findroot(gradient, (0, 0, 0))
    bounded, theta = minimiser(X, y, LogisticLoss(), alpha=alpha)
    gap = tau_of(bounded, math.sqrt(2), 3, alpha) / alpha
    assert np.linalg.norm(theta - np.array([float(t) for t in exact])) <= gap


def neighbours(rng, loss, n, d):
    """A random data set and one row of another scale, sign and target."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2)
    y = targets(loss, rng, n)
    other, label = X.copy(), y.copy()
    i = rng.integers(n)
    other[i] = rng.choice([-1, 0, 1, 1e6]) * X[i] + rng.choice([0, 1]) * rng.normal(size=d) * 100
    label[i] = targets(loss, rng, 1)[0]
    return (X, y), (other, label)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_replaced_record_never_moves_it_further(loss):
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(300):
        alpha = 10.0 ** rng.uniform(-4, 0)
        first, second = neighbours(rng, loss, int(rng.integers(1, 12)), 3)
        bounded, a = minimiser(*first, loss, alpha=alpha)
        b = minimiser(*second, loss, alpha=alpha)[1]
        worst = max(worst, float(np.linalg.norm(a - b)) / bounded.l2)
    assert 0.2 < worst <= 1


def built_pair(loss, n=2000):
    """All others push theta along e1 until their gradients vanish; the pair pulls along +-e2."""
    X = np.tile([1.0, 0.0], (n, 1))
    y = np.ones(n) if loss.name != "huber" else np.zeros(n)
    X[0], other = [-0.4, 0.9165], X.copy()
    other[0] = [-0.4, -0.9165]
    if loss.name == "huber":
        y[0] = 1e9
    return (X, y), (other, y)


@pytest.mark.parametrize("loss", LOSSES[:2], ids=NAMES[:2])
def test_built_pair_comes_close_to_the_bound(loss):
    first, second = built_pair(loss)
    bounded, a = minimiser(*first, loss, alpha=1e-3, fit_intercept=False)
    b = minimiser(*second, loss, alpha=1e-3, fit_intercept=False)[1]
    assert 0.6 * bounded.l2 <= np.linalg.norm(a - b) <= bounded.l2


@pytest.mark.parametrize(
    ("adjacency", "params"), [("zero-out", {"n_public": 2000}), ("add-remove", {"n_public": 2000})]
)
def test_record_that_goes_moves_it_half_as_far(adjacency, params):
    (X, y), _ = built_pair(HuberLoss(0.7))
    options = dict(alpha=1e-3, adjacency=adjacency, fit_intercept=False, **params)
    bounded, a = minimiser(X, y, HuberLoss(0.7), **options)
    b = minimiser(X[1:], y[1:], HuberLoss(0.7), **options)[1]
    assert 0.6 * bounded.l2 <= np.linalg.norm(a - b) <= bounded.l2
    full = minimiser(X, y, HuberLoss(0.7), alpha=1e-3, fit_intercept=False)[0]
    assert bounded.l2 < 0.51 * full.l2


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_group_counts_as_one_unit_whatever_its_size(loss):
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(60):
        X, y = rng.normal(size=(30, 3)) * 10, targets(loss, rng, 30)
        groups = np.r_[np.zeros(24, int), np.arange(1, 7)]
        size = int(rng.choice([1, 24, 100, 1030, 4100]))
        other = np.vstack([np.tile(rng.normal(size=3) * 100, (size, 1)), X[24:]])
        label = np.append(np.full(size, targets(loss, rng, 1)[0]), y[24:])
        codes = np.r_[np.zeros(size, int), np.arange(1, 7)]
        bounded, a = minimiser(X, y, loss, alpha=1.0, groups=groups)
        same, b = minimiser(other, label, loss, alpha=1.0, groups=codes)
        assert same.l2 == bounded.l2  # tau, too, follows from public numbers
        worst = max(worst, float(np.linalg.norm(a - b)) / bounded.l2)
    assert bounded.l2 >= 2 * minimizer.lipschitz(loss) * math.sqrt(2) / 7
    assert 0.2 < worst <= 1


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_storage_makes_no_difference(loss):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.4)
    y = targets(loss, rng, 60)
    mask = np.array([1, 0, 1, 1, 0, 1, 1, 1], dtype=bool)
    for chosen in (None, mask):
        bounded, expected = minimiser(X, y, loss, mask=chosen, row_norm=0.8)
        repeated = sp.csr_matrix(
            (np.r_[X[0], X[0]] / 2, np.r_[np.arange(7), np.arange(7)], np.r_[0, np.full(60, 14)]), shape=(60, 7)
        )
        rest = sp.csr_matrix(np.r_[np.zeros((1, 7)), X[1:]])
        forms = [np.asfortranarray(X), sp.csr_matrix(X), sp.vstack([repeated[:1], rest[1:]]).tocsr()]
        for form in forms:
            before = form.copy()
            found = minimiser(form, y, loss, mask=chosen, row_norm=0.8)[1]
            assert np.linalg.norm(found - expected) <= 2e-6 * bounded.l2
            assert abs(form - before).max() == 0
        if chosen is not None:
            assert np.all(expected[~mask] == 0)
    single = X.astype(np.float32)
    a = minimiser(single, y, loss)[1]
    assert np.allclose(a, minimiser(single.astype(float), y, loss)[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_penalty_about_a_center(loss):
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(25, 4)), targets(loss, rng, 25)
    records = PrivateRecords(X, y, fit_intercept=True)
    options = dict(row_norm=1.0, adjacency="replace-one")
    shape = ridge_minimizer(records, loss, alpha=1.0, **options).shape
    center = rng.normal(size=shape)
    for alpha in (1e6, 0.1):
        bounded = ridge_minimizer(records, loss, alpha=alpha, center=center, **options)
        theta = bounded._value.plain()
        # Gradient of the mean loss alone, plus the penalty's.
        gradient = slow_gradient(X, y, loss, theta, 0.0, 1.0) + alpha * (theta - center)
        tau = tau_of(bounded, minimizer.lipschitz(loss) * math.sqrt(2), 25, alpha)
        assert np.linalg.norm(gradient.ravel().astype(float)) <= tau + 1e-9 * alpha
        plain = ridge_minimizer(records, loss, alpha=alpha, **options)
        assert bounded.l2 == pytest.approx(plain.l2, rel=1e-4)  # a center costs nothing
        if alpha > 1:
            assert np.allclose(theta, center, atol=1e-4)
    other = X.copy()
    other[0] = -100 * X[0]
    moved = ridge_minimizer(
        PrivateRecords(other, y, fit_intercept=True), loss, alpha=0.1, center=center, **options
    )
    assert 0 < np.linalg.norm(moved._value.plain() - theta) <= bounded.l2
    with pytest.raises(ValueError, match="center"):
        ridge_minimizer(records, loss, alpha=1.0, center=np.zeros(2), **options)


def test_rounding_of_the_last_addition_is_paid_for():
    """Adding any center, however small, rounds a vector as long as the minimiser can be: relative n u."""
    n, alpha = 20_000, 0.5
    records = PrivateRecords(np.ones((n, 1)), np.ones(n))
    options = dict(alpha=alpha, row_norm=1.0, adjacency="replace-one")
    plain = ridge_minimizer(records, LogisticLoss(), **options).l2
    moved = ridge_minimizer(records, LogisticLoss(), center=np.full(1, 1e-100), **options).l2
    assert moved - plain >= 2 * 2.0**-53 / alpha


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_extreme_records_stay_within_the_bound(loss):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(20, 4)), targets(loss, rng, 20)
    bounded, expected = minimiser(X, y, loss)
    for row in (np.full(4, 1e308), np.full(4, -1.7e308), np.full(4, 1e-310), np.full(4, np.nan)):
        extreme, label = X.copy(), y.copy()
        extreme[0] = row
        if loss.name == "huber":
            label[0] = 1e308
        for form in (extreme, sp.csr_matrix(extreme)):
            theta = minimiser(form, label, loss)[1]
            assert np.isfinite(theta).all()
            assert np.linalg.norm(theta - expected) <= bounded.l2


@pytest.mark.parametrize("label", [-1.0, 2.0, 0.5, -30.0, 1e308, math.nan, math.inf])
@pytest.mark.parametrize("loss", [LogisticLoss(), MultinomialLoss(2)], ids=lambda loss: loss.name)
def test_labels_that_are_no_class_weigh_nothing(loss, label):
    """The derivative of the logistic loss at y = -1 reaches 2: labels -1 and 1 moved it 1.5 times the bound."""
    X = np.vstack([np.eye(3), np.ones((5, 3)), -np.eye(3)])
    y = np.r_[np.arange(8) % 2, label, 0.0, 1.0]
    bounded, theta = minimiser(X, y, loss, n_public=10)
    known = np.arange(11) != 8
    expected = minimiser(X[known], y[known], loss, n_public=10)[1]
    assert np.linalg.norm(theta - expected) <= 1e-5 * bounded.l2
    alone = minimiser(X[:1], np.full(1, label), loss)[1]
    assert np.all(alone == 0)


@pytest.mark.parametrize("label", [-1.0, 2.0, math.nan])
def test_replaced_record_of_labels_that_are_no_class(label):
    X, y = np.full((51, 1), -1.0), np.full(51, -1.0)
    other, labels = X.copy(), y.copy()
    other[0], labels[0] = 1.0, label
    first, second = (minimiser(*data, LogisticLoss(), fit_intercept=False) for data in ((X, y), (other, labels)))
    assert np.linalg.norm(first[1] - second[1]) <= first[0].l2
    records = [PrivateRecords(*data) for data in ((X, y), (other, labels))]
    found = []
    for one in records:
        made = perturbed_minimizer(one, LogisticLoss(), penalty=5.0, row_norm=1.0)
        found.append(made._domain(1.0).minimizer(one._rows, np.zeros(1)))
    assert np.linalg.norm(found[0] - found[1]) <= 2 / 5.0  # a gradient of at most 1 each


def test_clipped_rows_have_the_norm_they_claim():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 50)) * 10.0 ** rng.uniform(-3, 3, size=(200, 1))
    for form in (X, sp.csr_matrix(X)):
        rows = minimizer.clipped_rows(form, None, 1.0)[0]
        dense = rows.toarray() if sp.issparse(rows) else rows
        exact = [math.fsum(value * value for value in row) for row in dense]
        assert max(exact) <= 1.0
        assert max(exact) > 1 - 1e-10
    small = X / 1e6
    assert minimizer.clipped_rows(small, None, 1.0)[0] is small  # nothing to do: no copy


@pytest.mark.parametrize("loss", LOSSES, ids=NAMES)
def test_the_bound_is_made_of_public_numbers(loss):
    rng = np.random.default_rng(8)
    bounds = {
        minimiser(rng.normal(size=(30, 4)) * size, targets(loss, rng, 30), loss)[0].l2 for size in (1e-3, 1.0, 1e6)
    }
    assert len(bounds) == 1


def test_release_is_within_its_noise_and_exact_without():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(400, 3))
    records = PrivateRecords(X, (X[:, 0] > 0) * 1.0, fit_intercept=True)
    bounded = ridge_minimizer(records, LogisticLoss(), alpha=0.1, row_norm=2.0, adjacency="replace-one")
    session = PrivacySession(records, epsilon=1.0, delta=1e-5, random_state=0)
    plan = session.plan_gaussian(1)
    std = session.noise_std(bounded, plan)
    assert std == pytest.approx(plan.noise_multiplier * bounded.l2, rel=1e-5)
    assert np.abs(session.gaussian(bounded, plan) - bounded._value.plain()).max() < 7 * std
    other = PrivacySession(records, epsilon=1.0, delta=1e-5, adjacency="zero-out")
    with pytest.raises(UnsupportedAccounting, match="replace-one"):
        other.gaussian(bounded, other.plan_gaussian(1))


def test_what_has_no_proof_is_refused():
    X, y = np.eye(3), np.array([0.0, 1.0, 1.0])
    options = dict(alpha=0.1, row_norm=1.0, adjacency="replace-one")
    with pytest.raises(ValueError, match="Huber"):
        ridge_minimizer(PrivateRecords(X, y), SquaredLoss(), **options)
    with pytest.raises(ValueError, match="sample_weight"):
        ridge_minimizer(PrivateRecords(X, y, sample_weight=y), LogisticLoss(), **options)
    with pytest.raises(ValueError, match="n_public"):
        ridge_minimizer(PrivateRecords(X, y), LogisticLoss(), **{**options, "adjacency": "add-remove"})
    for bad in ({"alpha": 0.0}, {"alpha": math.nan}, {"row_norm": math.inf}):
        with pytest.raises(ValueError, match="between"):
            ridge_minimizer(PrivateRecords(X, y), LogisticLoss(), **{**options, **bad})
    with pytest.raises(ValueError, match="mask"):
        ridge_minimizer(PrivateRecords(X, y), LogisticLoss(), **options, mask=[True])
