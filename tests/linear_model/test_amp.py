"""DPAMPClassifier and DPAMPRegressor: what they fit, what their parameters mean, and what they refuse."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from skdp import DPAMPClassifier, DPAMPRegressor
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning
from skdp.privacy import BudgetAccountant, accounting

RNG = np.random.default_rng(3)
N = 4000
X = RNG.normal(size=(N, 6))
WEIGHTS = np.array([2.0, -1.0, 1.0, 0.0, 0.0, 0.5])
LABELS = (RNG.random(N) < expit(X @ WEIGHTS + 0.5)).astype(int)
TARGETS = 100.0 + 10.0 * (X @ WEIGHTS) + 5.0 * RNG.normal(size=N)
BOTH = [DPAMPClassifier, DPAMPRegressor]


def model(cls, **params):
    """With a seed, and declared classes where there are any."""
    classes = {"classes": (0, 1)} if cls is DPAMPClassifier else {}
    return cls(**{"random_state": 0, "delta": 1e-6, **classes, **params})


def target(cls):
    return LABELS if cls is DPAMPClassifier else TARGETS


def row(fitted):
    rows = fitted.privacy_.mechanisms
    (found,) = [r for r in rows if r["name"] == "objective_perturbation"]
    return found


# ------------------------------------------------------------------ what is fitted


def test_without_noise_it_is_regularised_logistic_regression():
    """At epsilon=inf: scikit-learn's optimum with the intercept penalised as a feature of a quarter of R."""
    R, alpha = 50.0, 0.01
    fitted = model(DPAMPClassifier, epsilon=math.inf, row_norm=R, alpha=alpha).fit(X, LABELS)
    rows = np.hstack([X, np.full((N, 1), R / 4)])
    exact = LogisticRegression(C=1 / (alpha * N), fit_intercept=False, tol=1e-10, max_iter=1000)
    coef = exact.fit(rows, LABELS).coef_[0]
    assert np.allclose(fitted.coef_[0], coef[:-1], atol=1e-5)
    assert fitted.intercept_[0] == pytest.approx(coef[-1] * R / 4, abs=1e-4)
    assert fitted.privacy_.guarantee == "none"


def test_accuracy_of_the_defaults():
    """Means over seeds whose spread is below .002 at epsilon 2; a miss is far in the tail."""
    best = LogisticRegression().fit(X, LABELS).score(X, LABELS)
    for epsilon, least in ((0.5, best - 0.02), (2.0, best - 0.006)):
        scores = [
            model(DPAMPClassifier, epsilon=epsilon, random_state=seed).fit(X, LABELS).score(X, LABELS)
            for seed in range(5)
        ]
        assert np.mean(scores) > least
    scores = [
        model(DPAMPRegressor, epsilon=1.0, random_state=seed).fit(X, TARGETS).score(X, TARGETS)
        for seed in range(5)
    ]
    assert np.mean(scores) > 0.9  # the noise in y allows .96


def test_scale_and_offset_of_the_targets_do_not_matter():
    plain = model(DPAMPRegressor, epsilon=2.0).fit(X, TARGETS)
    moved = model(DPAMPRegressor, epsilon=2.0).fit(X, 1e4 * TARGETS - 5e7)
    assert abs(plain.score(X, TARGETS) - moved.score(X, 1e4 * TARGETS - 5e7)) < 0.05


def test_huber_bounds_what_outliers_do():
    y = TARGETS.copy()
    y[:40] = 1e9
    fitted = model(DPAMPRegressor, epsilon=4.0).fit(X, y)
    assert fitted.score(X[40:], TARGETS[40:]) > 0.85


@pytest.mark.parametrize("cls", BOTH)
def test_sparse_and_dense_are_the_same_fit(cls):
    dense = np.where(np.abs(X) > 1, X, 0.0)
    a = model(cls).fit(dense, target(cls))
    b = model(cls).fit(sp.csr_matrix(dense), target(cls))
    assert a.row_norm_ == b.row_norm_
    assert np.allclose(a.coef_, b.coef_, rtol=1e-3, atol=1e-3 * np.abs(a.coef_).max())


# ------------------------------------------------------------------ what it costs


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_noise_follows_from_the_theorem(cls, adjacency):
    params = {"huber_threshold": 3.0} if cls is DPAMPRegressor else {}
    n_public = N + 10 if adjacency == "add-remove" else None
    fitted = model(cls, epsilon=0.5, row_norm=2.0, adjacency=adjacency, n_public=n_public, **params).fit(
        X, target(cls)
    )
    found, R = row(fitted), math.hypot(2.0, 0.5)
    steepness = 3.0 if cls is DPAMPRegressor else 1.0
    factor = 2 if adjacency == "replace-one" else 1
    assert found["sensitivity"] == pytest.approx(factor * steepness * R)
    assert found["epsilon"] == pytest.approx(0.98 * 0.5, rel=1e-4)
    assert found["delta"] == pytest.approx(0.98e-6, rel=1e-3)
    gaussian = accounting.noise_multiplier(found["epsilon"], found["delta"])
    ratio = found["noise_std"] / found["sensitivity"] / gaussian
    assert 0.999 < ratio < (1.15 if cls is DPAMPRegressor else 1.03)
    assert found["penalty"] == pytest.approx(fitted.alpha_ * (n_public or N))
    (point,) = [r for r in fitted.privacy_.mechanisms if r["purpose"] == "computed point"]
    assert point["noise_std"] < 1e-3 * np.abs(fitted.coef_).max()


def test_what_is_adaptive_is_paid_for():
    given = model(DPAMPRegressor, row_norm=2.0, huber_threshold=1.0).fit(X, TARGETS - 100)
    adaptive = model(DPAMPRegressor).fit(X, TARGETS)
    assert "scale" not in [r["purpose"] for r in given.privacy_.mechanisms]
    assert "scale" in [r["purpose"] for r in adaptive.privacy_.mechanisms]
    assert row(given)["epsilon"] == pytest.approx(0.98, rel=1e-4)
    assert "calibration" in [r["purpose"] for r in adaptive.privacy_.mechanisms]
    assert row(adaptive)["epsilon"] == pytest.approx(0.98 - 5 * 0.05, rel=1e-4)
    assert (given.target_center_, given.huber_threshold_, given.row_norm_) == (0.0, 1.0, 2.0)
    assert adaptive.target_center_ == pytest.approx(100.0, abs=5)
    assert 1.0 < adaptive.row_norm_ < 6.0
    total = accounting.recheck_epsilon(adaptive.privacy_.mechanisms, 1e-6)
    assert 0.9 < total <= 1.0


def test_alpha_is_honoured_and_raised_to_what_the_theorem_needs():
    fitted = model(DPAMPClassifier, alpha=0.1).fit(X, LABELS)
    assert fitted.alpha_ == pytest.approx(0.1)
    low = model(DPAMPClassifier, alpha=0.0, row_norm=2.0).fit(X, LABELS)
    assert low.alpha_ == pytest.approx(2.0 * 4.25 / N)
    auto = model(DPAMPClassifier, row_norm=2.0).fit(X, LABELS)
    wide = model(DPAMPClassifier, row_norm=2.0).fit(np.hstack([X] * 16), LABELS)
    assert low.alpha_ <= auto.alpha_ < wide.alpha_


def test_more_than_two_classes_are_refused_with_a_way_out():
    y = np.arange(N) % 3
    tags = DPAMPClassifier().__sklearn_tags__()
    assert not tags.classifier_tags.multi_class
    with pytest.raises(ValueError, match="use DPLogisticRegression or DPIGHTClassifier"):
        model(DPAMPClassifier, classes=(0, 1, 2)).fit(X, y)
    accountant = BudgetAccountant(5.0, 1e-5, allow_seeded=True)
    with pytest.raises(ValueError, match="DPIGHTClassifier"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(DPAMPClassifier, classes=None, accountant=accountant).fit(X, y)
    assert accountant.spent() == (0.0, 0.0)
    with pytest.warns(PrivacyLeakWarning, match="OneVsRestClassifier around this fit"):
        made = OneVsRestClassifier(model(DPAMPClassifier)).fit(X, y)
    assert made.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("cls", BOTH)
def test_an_accountant_adds_up_epsilon_and_delta(cls):
    accountant = BudgetAccountant(2.0, 1e-5, allow_seeded=True)
    model(cls, accountant=accountant).fit(X, target(cls))
    model(cls, accountant=accountant, epsilon=0.5).fit(X, target(cls))
    assert accountant.spent() == pytest.approx((1.5, 2e-6))
    with pytest.raises(PrivacyBudgetExceeded):
        model(cls, accountant=accountant, epsilon=0.6).fit(X, target(cls))


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"row_norm": 0.0}, "row_norm must be >= 1e-45"),
        ({"row_norm": math.inf}, "row_norm"),
        ({"row_norm": "median"}, "row_norm"),
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"delta": 0.0}, "delta"),
        ({"unit": "group"}, "unit='group'"),
        ({"adjacency": "add-remove"}, "n_public"),
    ],
)
def test_bad_parameters(cls, params, message):
    accountant = BudgetAccountant(2.0, 1e-5, allow_seeded=True)
    with pytest.raises(ValueError, match=message):
        model(cls, accountant=accountant, **params).fit(X, target(cls))
    assert accountant.ledger() == []


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, "adaptive"])
def test_bad_thresholds(value):
    with pytest.raises(ValueError, match="huber_threshold"):
        model(DPAMPRegressor, huber_threshold=value).fit(X, TARGETS)


@pytest.mark.parametrize("cls", BOTH)
def test_degenerate_data_fit_all_the_same(cls):
    """Nothing that depends on the whole of the data raises: constant y, rows of zeros, one record, huge values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for rows, y in (
            (X, np.zeros(N, dtype=int)),
            (np.zeros((30, 2)), np.arange(30) % 2),
            (np.ones((1, 2)), np.ones(1, dtype=int)),
            (1e200 * X[:50], np.arange(50) % 2),
            (1e-200 * X[:50], np.arange(50) % 2),
        ):
            assert np.isfinite(model(cls).fit(rows, y).coef_).all()
