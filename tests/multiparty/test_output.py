"""Output perturbation: the average of minimisers, its noise, ridge regression, and an attacker."""

import functools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from skdp import MPCOutputPerturbationClassifier, MPCOutputPerturbationRegressor
from skdp.exceptions import UtilityWarning
from skdp.losses import HuberLoss, LogisticLoss, SquaredLoss
from skdp.multiparty import Owners
from skdp.multiparty.output import average_of_minimizers, ridge_loss
from skdp.privacy import BoundedStatistic, PrivacySession, accounting, noise
from tests.privacy.audit import shown

SIZES = (5, 8, 20)
LABELS = np.repeat(["x", "y", "z"], SIZES)


def table(n=33, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1)[:, None], (rng.random(n) < 0.5) * 1.0


def ridge(Z, y, alpha):
    """Minimiser of the mean of (z - y)^2 / 2 plus the penalty, in closed form."""
    return np.linalg.solve(Z.T @ Z / len(y) + alpha * np.eye(Z.shape[1]), Z.T @ y / len(y))


@pytest.mark.parametrize("weighting", ["owner", "record"])
def test_without_noise_it_is_the_average_of_the_owners_models(weighting):
    X, y = table()
    Z, models = np.hstack([X, np.ones((33, 1))]), []
    for label in "xyz":
        rows, target = Z[label == LABELS], y[label == LABELS]

        def objective(theta, rows=rows, target=target):
            z = rows @ theta
            value = (np.logaddexp(0, z) - target * z).mean() + 0.05 * theta @ theta
            return value, rows.T @ (expit(z) - target) / len(target) + 0.1 * theta

        models.append(minimize(objective, np.zeros(4), jac=True, tol=1e-12).x)
    share = np.full(3, 1 / 3) if weighting == "owner" else np.array(SIZES) / 33
    owners = Owners(X, y, owners=LABELS, weighting=weighting, fit_intercept=True)
    found = average_of_minimizers(
        PrivacySession.without_privacy(), owners, LogisticLoss(), alpha=0.1, noise="gaussian"
    )
    assert found == pytest.approx(share @ np.array(models), abs=1e-5)


@pytest.mark.parametrize(("weighting", "share"), [("owner", 1 / (3 * 5)), ("record", 1 / 33)])
def test_the_sensitivity_is_that_of_the_theorem_with_the_gap(weighting, share):
    X, y = table()
    owners = Owners(X, y, owners=LABELS, weighting=weighting)
    for adjacency, sides in (("replace-one", 2.0), ("zero-out", 1.0)):
        session = PrivacySession(epsilon=1.0, delta=1e-5, adjacency=adjacency, random_state=0)
        average_of_minimizers(session, owners, LogisticLoss(), alpha=0.01, noise="gaussian")
        (row,) = session.report().mechanisms
        published = sides * 1.0 * share / 0.01
        assert published < row["sensitivity"] < published * (1 + 1e-4)


def test_laplace_noise_is_calibrated_to_the_l1_norm():
    X, y = table()
    owners = Owners(X, y, owners=LABELS)
    session = PrivacySession(epsilon=1.0, delta=0.0, random_state=0)
    average_of_minimizers(session, owners, LogisticLoss(), alpha=0.01, noise="laplace")
    report = session.report()
    (row,) = report.mechanisms
    assert row["sensitivity"] == pytest.approx(math.sqrt(3) * 2 / (3 * 5 * 0.01), rel=1e-3)
    assert report.epsilon == pytest.approx(1.0, rel=1e-4)
    assert report.delta < 1e-20


# ------------------------------------------------------------------ ridge regression


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("hurting", [False, True])
def test_the_huber_loss_has_the_minimizer_of_ridge_regression(alpha, hurting):
    """Also where the coefficients are as large as they can be: all rows alike, and one far off."""
    X, _ = table(40)
    y = np.random.default_rng(1).uniform(-1, 1, 40)
    if hurting:
        X[:], y[:] = [1.0, 0.0, 0.0], 1.0
        y[0] = -1.0
    owners = Owners(X, y, fit_intercept=True)
    loss = ridge_loss(alpha, math.sqrt(2.0))
    found = average_of_minimizers(PrivacySession.without_privacy(), owners, loss, alpha=alpha, noise="gaussian")
    Z = np.hstack([X, np.ones((40, 1))])
    wanted = ridge(Z, y, alpha)
    assert found == pytest.approx(wanted, abs=4e-6 / alpha * loss.threshold / 40)
    assert np.linalg.norm(wanted) <= 0.5 / math.sqrt(alpha)
    assert np.abs(Z @ wanted - y).max() <= loss.threshold


def test_the_coefficients_of_ridge_regression_reach_their_bound():
    """One feature of size sqrt(alpha), targets of 1: theta* = 1 / (2 sqrt(alpha)), so the bound is reached."""
    alpha = 0.01
    X, y = np.full((30, 1), math.sqrt(alpha)), np.ones(30)
    assert ridge(X, y, alpha) == pytest.approx(0.5 / math.sqrt(alpha))


def test_a_threshold_without_the_norm_of_the_rows_would_be_another_model():
    """The mutant: c = 2 looks enough for targets in [-1, 1]; residuals at the ridge minimiser can be larger."""
    X = np.ones((400, 1)) * 0.05
    y = np.ones(400)
    X[0], y[0] = 1.0, -1.0
    owners = Owners(X, y)
    models = [
        average_of_minimizers(PrivacySession.without_privacy(), owners, loss, alpha=1e-5, noise="gaussian")
        for loss in (ridge_loss(1e-5, 1.0), HuberLoss(2.0))
    ]
    assert models[0] == pytest.approx(ridge(X, y, 1e-5), rel=1e-4)
    assert abs(models[0] - models[1]) > 0.1


def test_targets_are_clipped_moved_and_scaled_by_public_numbers():
    X, _ = table(60)
    y = 20.0 + 3.0 * X[:, 0]
    model = MPCOutputPerturbationRegressor(
        epsilon=math.inf, alpha=1e-3, row_norm=1.0, y_bounds=(15, 25), random_state=0
    ).fit(X, y)
    Z = np.hstack([X, np.ones((60, 1))])
    theta = ridge(Z, (y - 20) / 5, 1e-3)
    assert model.coef_ == pytest.approx(5 * theta[:3], abs=1e-3)
    assert model.intercept_ == pytest.approx(20 + 5 * theta[3], abs=1e-3)
    bare = model.set_params(fit_intercept=False).fit(X, y)
    assert bare.intercept_ == 0.0
    assert bare.coef_ == pytest.approx(25 * ridge(X, y / 25, 1e-3), abs=1e-2)
    far, near = (
        model.set_params(fit_intercept=True).fit(X, np.where(y > 20, *ends)).coef_
        for ends in ((1e9, -1e9), (25.0, 15.0))
    )
    assert np.array_equal(far, near)


# ------------------------------------------------------------------ the attacker

EPSILON, DELTA, RUNS = 6.0, 1e-5, 1000
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)


@pytest.fixture(autouse=True)
def one_calibration(monkeypatch):
    """Releases by the hundred with one calibration."""
    monkeypatch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))


def attack(victim=0, bound=1.0):
    """A record of a Huber regression at both ends of its gradient's range; all other rows are 0."""
    found = []
    for side, target in enumerate((-1.0, 1.0)):
        X, y = np.zeros((33, 2)), np.zeros(33)
        X[victim, 0], y[victim] = 1.0, target
        owners = Owners(X, y, owners=LABELS)
        statistics = owners.minimizer(HuberLoss(0.1), alpha=1.0, adjacency="replace-one")
        told = [
            BoundedStatistic.from_source(b._value, b.shape, l2=b.l2 * bound, adjacency=b.adjacency)
            for b in statistics
        ]
        owners = Fixed(told)
        found.append([opened(owners, 2 * run + side) for run in range(RUNS)])
    return shown(*map(np.array, found))


class Fixed:
    """Owners whose minimisers are computed once for all runs."""

    def __init__(self, statistics):
        self.statistics = statistics

    def minimizer(self, loss, *, alpha, adjacency):
        return self.statistics


def opened(owners, run):
    session = PrivacySession(epsilon=EPSILON, delta=DELTA, random_state=run)
    options = dict(alpha=1.0, noise="gaussian")
    return average_of_minimizers(session, owners, SquaredLoss(), **options)[0]


def test_a_record_of_the_smallest_owner_keeps_its_claim_and_comes_near_it():
    found = attack()
    assert found <= CLAIM
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * EPSILON
    assert attack(victim=32) < 0.5 * CLAIM  # of the largest owner


def test_the_mutant_with_half_the_noise_is_caught(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(
        noise, "rounded_gaussian",
        lambda sigma, size, stream: honest(sigma, size, stream) // 2,
    )  # fmt: skip
    assert attack() > CLAIM


def test_the_mutant_with_the_bound_of_the_pooled_data_is_caught():
    assert attack(bound=3 * 5 / 33) > CLAIM


def test_the_errata_are_in_the_report():
    X, y = table()
    model = MPCOutputPerturbationClassifier(classes=(0, 1), random_state=0)
    with pytest.warns(UtilityWarning, match="the noise moves the scores"):
        model.fit(X, y, owners=LABELS)
    assert "Theorem 6.3.1" in model.privacy_.erratum
    assert "sqrt(n_parameters)" in model.privacy_.erratum
