"""Sup-norm clipped mean gradients: what a replaced record or group moves is what is declared."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import mean_sup_gradient

LOSSES = {
    "squared": SquaredLoss(),
    "huber": HuberLoss(1.0),
    "logistic": LogisticLoss(),
    "multinomial": MultinomialLoss(3),
}
GRID = 2.0**-30


def targets(rng, loss, n):
    if loss.name in ("squared", "huber"):
        return rng.normal(size=n) * 100
    return rng.integers(0, max(2, loss.n_outputs), n).astype(float)


def coefficients(rng, loss, p):
    return rng.normal(size=p if loss.n_outputs == 1 else (p, loss.n_outputs))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", LOSSES)
def test_replaced_record_moves_each_entry_within_the_bound(name, storage):
    rng = np.random.default_rng(3)
    loss = LOSSES[name]
    X = rng.normal(size=(30, 4)) * 10.0 ** rng.integers(-3, 4, (30, 1))
    y = targets(rng, loss, 30)
    theta, clip_norm, largest = coefficients(rng, loss, 5), 0.7, 0
    for trial in range(40):
        X2, y2, i = X.copy(), y.copy(), int(rng.integers(30))
        X2[i] = rng.normal(size=4) * 10.0 ** rng.integers(-3, 9)
        y2[i] = targets(rng, loss, 1)[0]
        batch = None if trial % 2 else rng.permutation(30)[:20]
        sums = []
        for data, target in ((X, y), (X2, y2)):
            r = PrivateRecords(storage(data), target, fit_intercept=True)
            bounded = mean_sup_gradient(r, loss, theta, clip_norm, units=batch, divisor=20)
            assert bounded.linf == pytest.approx(clip_norm / 20)
            assert bounded._value.roundings == 0
            sums.append(bounded._value.on_grid(GRID))
        moved = int(np.max(np.abs(sums[0] - sums[1])))
        assert moved <= 2 * math.floor(clip_norm / (20 * GRID))
        largest = max(largest, moved)
    assert largest >= 0.4 * clip_norm / (20 * GRID)


def test_opposite_clipped_records_reach_the_bound_and_halving_it_fails():
    sums = []
    for sign in (-1.0, 1.0):
        r = PrivateRecords(np.eye(4), np.array([sign * 1e6, 0, 0, 0]))
        bounded = mean_sup_gradient(r, SquaredLoss(), np.zeros(4), 1.0)
        assert bounded.linf == 0.25
        sums.append(bounded._value.on_grid(GRID))
    moved = int(np.max(np.abs(sums[0] - sums[1])))
    assert 1.99 * 0.25 / GRID <= moved <= 2 * 0.25 / GRID


@pytest.mark.parametrize("rows", [1, 7, 400])
def test_group_moves_like_one_record_whatever_its_size(rows):
    sums = []
    for sign in (-1, 1):
        X = np.r_[np.ones((rows, 2)), np.ones((3, 2))]
        y = np.r_[np.full(rows, sign * 1e6), np.zeros(3)]
        groups = np.r_[np.zeros(rows, int), [1, 1, 2]]
        r = PrivateRecords(X, y, groups=groups)
        bounded = mean_sup_gradient(r, SquaredLoss(), np.zeros(2), 1.0)
        assert bounded.linf == pytest.approx(1 / 3)
        sums.append(bounded._value.on_grid(GRID))
    moved = int(np.max(np.abs(sums[0] - sums[1])))
    assert 1.99 / (3 * GRID) <= moved <= 2 / (3 * GRID)


def test_norm_counts_count_units_at_or_below_the_bound():
    X = np.array([[3.0, -4.0], [1.0, 0.5], [0.0, 0.0], [9.0, 1.0]])
    r = PrivateRecords(X, np.array([1.0, 2.0, 3.0, 4.0]))
    assert float(r.norm_count(4.0, norm="max")._value.plain()[0]) == 1.0
    counted = r.norm_count(4.0, loss=SquaredLoss(), theta=np.zeros(2), norm="max")
    assert float(counted._value.plain()[0]) == 1.0  # norms 4, 2, 0, 36
    grouped = PrivateRecords(X, np.ones(4), groups=np.array([0, 1, 1, 0]))
    assert float(grouped.norm_count(4.0, norm="max")._value.plain()[0]) == 0.0
    assert (counted.l1, counted.linf) == (0.5, 0.5)


def test_exact_session_gives_the_plain_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    r = PrivateRecords(X, y)
    mean = mean_sup_gradient(r, SquaredLoss(), np.ones(3), math.inf)
    with PrivacySession.without_privacy() as session:
        found = session.gaussian(mean, session.plan_gaussian(1))
    assert np.allclose(found, X.T @ (X @ np.ones(3) - y) / 50)
