"""DP-GD: the steps without noise, its plan, and what "auto" becomes."""

import math

import numpy as np
import pytest

from skdp import DPGDClassifier
from skdp.fitting.start import precision
from skdp.privacy import PrivacySession, PrivateRecords, accounting

EXACT = {"epsilon": math.inf, "clip_norm": math.inf, "learning_rate": 0.5, "classes": (0, 1)}


def data(n=400, d=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noise = 0.3 * rng.normal(size=(n, n_classes))
    return X, np.argmax(X[:, :n_classes] + noise, axis=1)


def logistic_descent(X, y, steps, rate, alpha):
    """The mathematics: mean log-loss and alpha sum w^2 / (1 + w^2), the intercept without penalty."""
    w, b = np.zeros(X.shape[1]), 0.0
    for _ in range(steps):
        r = 1 / (1 + np.exp(-(X @ w + b))) - y
        w, b = (w - rate * (X.T @ r / len(y) + 2 * alpha * w / (1 + w * w) ** 2), b - rate * r.mean())
    return w, b


def test_without_noise_the_literal_steps_are_gradient_descent():
    X, y = data()
    model = DPGDClassifier(max_iter=7, alpha=0.01, **EXACT).fit(X, y)
    w, b = logistic_descent(X, y, 7, 0.5, 0.01)
    assert np.allclose(model.coef_[0], w)
    assert np.allclose(model.intercept_, b)
    assert model.n_iter_ == 7


def test_the_l2_penalty_and_softmax():
    X, y = data(n_classes=3)
    settings = {**EXACT, "classes": (0, 1, 2)}
    model = DPGDClassifier(max_iter=5, penalty="l2", alpha=0.1, **settings).fit(X, y)
    W, b, Y = np.zeros((4, 3)), np.zeros(3), np.eye(3)[y]
    for _ in range(5):
        p = np.exp(X @ W + b)
        r = p / p.sum(axis=1, keepdims=True) - Y
        W, b = W - 0.5 * (X.T @ r / len(y) + 0.1 * W), b - 0.5 * r.mean(axis=0)
    assert np.allclose(model.coef_, W.T)
    assert np.allclose(model.intercept_, b)


def test_the_noise_of_gradient_descent_is_that_of_exact_gdp():
    X, y = data(1200)
    model = DPGDClassifier(
        epsilon=1.0, max_iter=11, clip_norm=0.7, learning_rate=0.1, classes=(0, 1), random_state=0
    ).fit(X, y)
    row, *others = model.privacy_.mechanisms
    assert row["count"] == 11
    assert {other["purpose"] for other in others} == {"recalibration"}
    # 20 % are for the recalibration, the most: 400 records are few (test_recalibration).
    multiplier = math.sqrt(11 / 0.8) / accounting.gaussian_mu(1.0, 1e-5)
    assert row["noise_multiplier"] == pytest.approx(multiplier, rel=1e-4)
    assert row["sensitivity"] == pytest.approx(2 * 0.7 / len(X), rel=1e-6)
    assert model.privacy_.accountant.startswith("exact Gaussian DP")


def steps_of(n, epsilon, d=4):
    session = PrivacySession(epsilon=epsilon, delta=1e-5)
    records = PrivateRecords(np.zeros((2, d)), np.zeros(2), n_public=n)
    return precision(session, records, d)


def test_precision_is_public_and_grows_with_what_the_budget_sees():
    mu = accounting.gaussian_mu(0.5, 1e-5)
    assert steps_of(10_000, 0.5) == pytest.approx(10_000 * mu / 2)
    assert steps_of(20_000, 0.5) == pytest.approx(2 * steps_of(10_000, 0.5))
    assert steps_of(10_000, math.inf) == math.inf


# The public number of records is made up, and delta is too large for the last one.
@pytest.mark.filterwarnings("ignore:delta=.* is too large for")
@pytest.mark.parametrize(("n_public", "steps"), [(10, 20), (3000, 50), (10**6, 100)])
def test_the_number_of_steps_follows_from_public_numbers(n_public, steps):
    X, y = data(n=300)
    model = DPGDClassifier(
        epsilon=1.0, classes=(0, 1), n_public=n_public, adjacency="add-remove", random_state=0
    ).fit(X, y)
    wanted = n_public * accounting.gaussian_mu(1.0, 1e-5) / math.sqrt(5) / 8
    assert model.n_iter_ == round(min(100, max(20, wanted)))
    assert abs(model.n_iter_ - steps) <= 10


def test_the_callback_sees_released_iterates_in_the_users_units():
    X, y = data()
    path = []
    model = DPGDClassifier(
        epsilon=2.0, max_iter=6, learning_rate=0.1, classes=(0, 1), random_state=0,
        callback=lambda i, coef: path.append((i, coef.copy())),
    ).fit(X, y)  # fmt: skip
    assert [i for i, _ in path] == list(range(6))
    # The recalibration scales the last iterate.
    ratio = model.coef_ / path[-1][1]
    assert ratio == pytest.approx(np.full_like(ratio, ratio[0, 0]), rel=1e-12)
