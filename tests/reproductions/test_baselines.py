"""Baselines of the multi-party methods: their noise, and what their reports say that it costs."""

import math
import warnings

import numpy as np
import pytest

import skdp
from skdp import (
    DPLocalGradientPerturbationClassifier,
    DPLocalObjectivePerturbationClassifier,
    DPLocalObjectivePerturbationRegressor,
    DPLocalOutputPerturbationClassifier,
    DPRajkumarAgarwalClassifier,
    MPCPathakClassifier,
    MPCPathakRegressor,
)
from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded
from skdp.multiparty import Owners
from skdp.privacy import BoundedStatistic, BudgetAccountant, PrivacySession, accounting
from skdp.privacy.mechanisms import grid
from skdp.reproductions import local_objective, own_noise
from skdp.reproductions.published import Setting, published_std, valid_std
from skdp.reproductions.rajkumar_agarwal import total_epsilon

LABELS = {"classes": (0, 1), "fit_intercept": False}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "random_state is a seed")
        warnings.filterwarnings("ignore", "delta=.* is too large for")
        warnings.simplefilter("ignore", skdp.exceptions.UtilityWarning)
        yield


def table(sizes, d=3, seed=0):
    """Rows in the unit ball, labels, and who holds them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X[:, 0] > 0).astype(int), np.repeat(np.arange(len(sizes)), sizes)


def spread(cls, data, seeds, **params):
    """Standard deviation of all coefficients over seeded fits of the same data, and how many there are."""
    X, y, owners = data
    fits = [
        np.ravel(cls(random_state=seed, row_norm=1.0, **LABELS, **params).fit(X, y, owners=owners).coef_)
        for seed in range(seeds)
    ]
    deviations = np.array(fits) - np.mean(fits, axis=0)
    return math.sqrt((deviations**2).sum() / (deviations.size - deviations.shape[1])), deviations.size


# ------------------------------------------------------------------ noise of every owner's own


def added_alone(noise, ratios, draws=40_000, **budget):
    """What `release_with_own_noise` adds to a statistic that is 0, over its sensitivity."""
    session = PrivacySession(random_state=3, **budget)
    release = own_noise.release_with_own_noise(session, ratios, noise=noise, releases=1)
    zero = BoundedStatistic.with_sensitivity(np.zeros(draws), adjacency="replace-one", l1=1.0, l2=1.0)
    return release([zero])


@pytest.mark.parametrize("ratios", [[1.0], [1.0] * 9, [0.25, 1.0, 0.5]])
def test_the_sum_has_the_gaussian_noise_of_all_owners(ratios):
    """Five standard errors of 40,000 draws: false alarm below 1e-6."""
    drawn = added_alone("gaussian", ratios, epsilon=1.0, delta=1e-5)
    one = accounting.noise_multiplier(1.0, 1e-5)
    wanted = one * math.sqrt(math.fsum(r**2 for r in ratios))
    assert abs(drawn.std() / wanted - 1) < 5 / math.sqrt(2 * drawn.size) + 1e-3


@pytest.mark.parametrize("ratios", [[1.0], [1.0] * 9, [0.25, 1.0, 0.5]])
def test_the_sum_has_the_laplace_noise_of_all_owners(ratios):
    """As above; the fourth moment of Laplace noise is 6 times the square of its variance."""
    drawn = added_alone("laplace", ratios, epsilon=0.7, delta=0.0)
    wanted = math.sqrt(2.0 * math.fsum(r**2 for r in ratios)) / 0.7
    assert abs(drawn.std() / wanted - 1) < 5 * math.sqrt(5 / (4 * drawn.size)) + 1e-3


def test_without_privacy_no_owner_adds_noise():
    session = PrivacySession.without_privacy()
    release = own_noise.release_with_own_noise(session, [1.0, 1.0], noise="gaussian", releases=1)
    zero = BoundedStatistic.with_sensitivity(np.zeros(4), adjacency="replace-one", l2=1.0)
    assert not release([zero]).any()


def test_noise_of_the_other_owners_is_not_what_the_claim_rests_on(monkeypatch):
    """The ledger holds the session's own noise: halving it is found, whatever is added afterwards."""

    X, y, owners = table([20, 30])
    honest = grid.gaussian_grid
    model = DPLocalOutputPerturbationClassifier(random_state=0, row_norm=1.0, **LABELS)
    model.fit(X, y, owners=owners)
    monkeypatch.setattr(grid, "gaussian_grid", lambda b, z, *rest: honest(b, z / 2, *rest))
    with pytest.raises(PrivacyAccountingError, match="bug in skdp"):
        model.fit(X, y, owners=owners)


def test_local_output_noise_of_unequal_owners():
    """The average of owners' noises, each for its own size; mutant: equal noise for all, which is larger."""
    sizes, alpha = [20, 40, 80], 0.5
    found, n = spread(DPLocalOutputPerturbationClassifier, table(sizes), 60, epsilon=1.0, delta=1e-3, alpha=alpha)
    each = [2.0 / (size * alpha) * accounting.noise_multiplier(1.0, 1e-3) for size in sizes]
    wanted = math.sqrt(sum(std**2 for std in each)) / len(sizes)
    error = 5 / math.sqrt(2 * n)
    assert abs(found / wanted - 1) < error
    mutant = max(each) / math.sqrt(len(sizes))
    assert abs(found / mutant - 1) > error / 2


def test_local_gradient_noise_of_unequal_owners():
    """One round from 0 with step 1: the noise of the gradient is that of the model."""
    sizes = [10, 40, 40]
    found, n = spread(
        DPLocalGradientPerturbationClassifier, table(sizes), 80,
        epsilon=1.0, delta=1e-3, max_iter=1, learning_rate=1.0,
    )  # fmt: skip
    each = [2.0 / size * accounting.noise_multiplier(1.0, 1e-3) for size in sizes]
    wanted = math.sqrt(sum(std**2 for std in each)) / len(sizes)
    assert abs(found / wanted - 1) < 5 / math.sqrt(2 * n)


@pytest.mark.parametrize(("loss", "ratios"), [("squared", [1.0, 1.0, 1.0]), ("huber", [1.0, 0.25, 0.25])])
def test_a_plan_expects_the_noise_that_owners_of_unequal_size_add(loss, ratios):
    """Gradients of the squared loss have no bound but the clip norm, whatever they weigh."""
    model = skdp.DPLocalGradientPerturbationRegressor(
        epsilon=1.0, delta=1e-3, row_norm=1.0, max_iter=1, learning_rate=1.0, fit_intercept=False,
        y_bounds=(-1, 1), loss=loss,
    )  # fmt: skip
    made = model.plan([10, 40, 40], 3).decision
    added = np.array(ratios) * 2.0 / (3 * 10) * accounting.noise_multiplier(1.0, 1e-3)
    assert made.prediction_noise == pytest.approx(math.hypot(*added), rel=1e-4)
    assert made.prediction_noise == made.settings.noise_std
    X, y, owners = table([10, 40, 40])
    assert model.fit(X, y, owners=owners).prediction_noise_ == made.prediction_noise


def test_a_clip_below_the_gradients_makes_messages_of_equal_sensitivity():
    """Weighted gradients are clipped at C: an owner with a smaller weight then moves its message by C as well."""
    sizes = [10, 20]
    model = DPLocalGradientPerturbationClassifier(row_norm=1.0, **LABELS)

    class Given:
        records = Owners(*table(sizes)[:2], owners=table(sizes)[2])
        loss = skdp.losses.LogisticLoss()

    assert np.allclose(model._ratios(Given, 1.0), [1.0, 0.5])
    assert np.allclose(model._ratios(Given, 0.25), [1.0, 1.0])
    assert np.allclose(model._ratios(Given, 0.8), [1.0, 0.625])


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_local_output_has_the_noise_of_table_6_1_with_a_proof(noise):
    """30 owners of 10 records; `valid_std` against fits."""
    setting = Setting(n_owners=30, smallest=10, alpha=0.5)
    params = {"delta": 0.0 if noise == "laplace" else setting.delta, "noise": noise}
    found, n = spread(
        DPLocalOutputPerturbationClassifier, table([10] * 30), 20,
        epsilon=setting.epsilon, alpha=setting.alpha, **params,
    )  # fmt: skip
    wanted = valid_std("Local Out P", setting, n_features=3, noise=noise)
    assert abs(found / wanted - 1) < 5 / math.sqrt(2 * n) + 0.01


# ------------------------------------------------------------------ Pathak et al.


def test_pathak_reports_what_its_noise_costs():
    X, y, owners = table([20] * 8)
    for version, cost in (("published", math.sqrt(3) / 8), ("corrected", 1 / 8)):
        model = MPCPathakClassifier(
            row_norm=1.0, epsilon=2.0, delta=0.0, version=version, random_state=0, **LABELS
        ).fit(X, y, owners=owners)
        report = model.privacy_
        assert report.guarantee == "proven"
        assert report.epsilon == pytest.approx(2.0 * cost, rel=1e-3)
        assert report.delta < 1e-20
        assert "sqrt(p) / m" in report.erratum


@pytest.mark.parametrize(("version", "more"), [("published", 1.0), ("corrected", math.sqrt(3.0))])
def test_pathak_noise_is_the_published_formula(version, more):
    """2 G / (n_(1) alpha epsilon) in every coordinate, sqrt(p) more when corrected."""
    sizes, alpha = [20, 40, 60, 80], 0.5
    params = dict(epsilon=1.0, delta=0.0, alpha=alpha, version=version)
    found, n = spread(MPCPathakClassifier, table(sizes), 80, **params)
    wanted = more * published_std("Pathak", Setting(4, min(sizes), alpha, 1.0))
    assert abs(found / wanted - 1) < 5 * math.sqrt(5 / (4 * n)) + 1e-3


def test_published_noise_of_few_owners_is_refused_before_anything_is_spent():
    X, y, owners = table([20, 20], d=9)
    accountant = BudgetAccountant(5.0, 1e-3)
    model = MPCPathakClassifier(
        row_norm=1.0, epsilon=1.0, delta=0.0, version="published", accountant=accountant, **LABELS
    )
    with pytest.raises(PrivacyBudgetExceeded, match=r"costs 1.5 times epsilon"):
        model.fit(X, y, owners=owners)
    assert accountant.spent() == (0.0, 0.0)
    assert not hasattr(model, "coef_")


def test_pathak_of_ridge_regression_bounds_what_a_replaced_record_moves():
    """One record that no other holds back: its minimiser moves by 2 / (1 + n alpha), the average by half of it."""
    X, y, alpha = np.zeros((24, 2)), np.zeros(24), 0.05
    X[0, 0] = 1.0
    owners, found = np.repeat([0, 1], 12), []
    for y[0] in (-1.0, 1.0):
        model = MPCPathakRegressor(epsilon=math.inf, alpha=alpha, fit_intercept=False, row_norm=1.0)
        found.append(model.fit(X, y, owners=owners).coef_)
    moved = np.linalg.norm(found[0] - found[1])
    assert moved == pytest.approx(1.0 / (1.0 + 12 * alpha), rel=1e-4)
    private = MPCPathakRegressor(epsilon=1.0, delta=0.0, alpha=alpha, fit_intercept=False, row_norm=1.0)
    (row,) = private.fit(X, y, owners=owners).privacy_.mechanisms
    assert moved < row["sensitivity"]


# ------------------------------------------------------------------ objective perturbation


def test_every_owner_has_a_session_of_its_own(monkeypatch):
    """Seeds differ, noise differs, and each ledger is rechecked."""
    seen = []
    honest = local_objective.PrivacySession

    class Watched(honest):
        def report(self, **more):
            seen.append((self.epsilon, self.delta))
            return super().report(**more)

    monkeypatch.setattr(local_objective, "PrivacySession", Watched)
    X, y, owners = table([30, 20, 40])
    model = DPLocalObjectivePerturbationClassifier(epsilon=3.0, delta=1e-3, random_state=0, **LABELS).fit(
        X, y, owners=owners
    )
    assert seen == [(3.0, 1e-3)] * 2  # the smallest owner's is the fit's own session
    report = model.privacy_
    assert (report.epsilon, report.delta, report.guarantee) == (3.0, 1e-3, "proven")
    assert [row["purpose"] for row in report.mechanisms] == ["minimiser", "gap"]
    assert any("whoever sees" in line for line in report.assumptions)


def test_owners_with_equal_records_do_not_share_their_noise(monkeypatch):
    released = []
    honest = local_objective.PrivacySession.objective_perturbation
    keep = lambda self, *a, **k: released.append(honest.__get__(self)(*a, **k)) or released[-1]  # noqa: E731
    monkeypatch.setattr(local_objective.PrivacySession, "objective_perturbation", keep)
    X, y, _ = table([30])
    DPLocalObjectivePerturbationClassifier(random_state=0, **LABELS).fit(
        np.vstack([X, X]), np.append(y, y), owners=[0] * 30 + [1] * 30
    )
    assert len(released) == 2
    assert not np.any(np.isclose(released[0], released[1]))


def test_the_penalty_leaves_half_of_epsilon_to_the_noise():
    loss = skdp.losses.LogisticLoss()
    penalty = local_objective.least_penalty(loss, 1.0, 0.5)
    assert math.log1p(loss.smoothness / penalty) == pytest.approx(0.25)
    X, y, owners = table([20, 200])
    model = DPLocalObjectivePerturbationClassifier(epsilon=0.5, delta=1e-3, alpha=1e-4, **LABELS)
    model.fit(X, y, owners=owners)
    expected = local_objective.least_penalty(loss, 1.0, local_objective.OBJECTIVE_SHARE * 0.5) / 20
    assert model.alpha_ == pytest.approx(expected)


@pytest.mark.parametrize("cls", [DPLocalObjectivePerturbationClassifier, DPLocalObjectivePerturbationRegressor])
def test_only_records_are_protected_by_objective_perturbation(cls):
    with pytest.raises(ValueError, match="unit='owner' is not proven"):
        cls(unit="owner").fit(np.eye(4), [0, 1, 0, 1])


# ------------------------------------------------------------------ Rajkumar & Agarwal


def test_objective_perturbation_of_several_owners_is_charged_by_basic_composition():
    X, y, holders = table((30, 30))
    model = DPLocalObjectivePerturbationClassifier(random_state=0, **LABELS)
    report = model.fit(X, y, owners=holders).privacy_
    assert any("h times epsilon and h times delta" in line for line in report.assumptions)
    assert not any("h times mu" in line for line in report.assumptions)


def test_the_report_of_rajkumar_agarwal_is_the_total_over_the_rounds():
    X, y, owners = table([20, 20])
    params = dict(epsilon=0.5, delta=1e-3, max_iter=50, random_state=0, **LABELS)
    once = DPRajkumarAgarwalClassifier(epsilon_of="iteration", **params).fit(X, y, owners=owners)
    report = once.privacy_
    assert report.epsilon == pytest.approx(total_epsilon(0.5, 1e-3, 50), rel=1e-3)
    assert report.epsilon > 8 * 0.5
    (row,) = report.mechanisms
    assert row["count"] == 50
    assert row["noise_multiplier"] == pytest.approx(accounting.noise_multiplier(0.5, 1e-3), rel=1e-3)
    assert row["noise_multiplier"] <= accounting.noise_multiplier(0.5, 1e-3) * (1 + 1e-3)
    whole = DPRajkumarAgarwalClassifier(**params).fit(X, y, owners=owners)
    assert whole.privacy_.epsilon == 0.5
    assert "trusts" in " ".join(whole.privacy_.assumptions)


def test_an_accountant_is_charged_with_the_total():
    X, y, owners = table([20, 20])
    model = DPRajkumarAgarwalClassifier(epsilon=0.5, delta=1e-3, epsilon_of="iteration", max_iter=50, **LABELS)
    small = BudgetAccountant(1.0, 1e-2)
    with pytest.raises(PrivacyBudgetExceeded):
        model.set_params(accountant=small).fit(X, y, owners=owners)
    assert small.spent() == (0.0, 0.0)
    large = BudgetAccountant(10.0, 1e-2)
    model.set_params(accountant=large).fit(X, y, owners=owners)
    assert large.spent()[0] > 8 * 0.5


def test_the_rounds_must_be_known_before_the_budget():
    with pytest.raises(ValueError, match="give max_iter as a number"):
        DPRajkumarAgarwalClassifier(epsilon_of="iteration").fit(np.eye(4), [0, 1, 0, 1])


def test_both_noises_are_there():
    """One round from 0 with step 1: variances of the Gaussian and of the Laplace noise add up."""
    found, n = spread(
        DPRajkumarAgarwalClassifier, table([20, 20]), 80,
        epsilon=1.0, delta=1e-3, max_iter=1, learning_rate=1.0,
    )  # fmt: skip
    moved = 2.0 / 40
    wanted = moved * math.hypot(accounting.noise_multiplier(1.0, 1e-3), math.sqrt(2.0))
    assert abs(found / wanted - 1) < 5 * math.sqrt(5 / (4 * n))
