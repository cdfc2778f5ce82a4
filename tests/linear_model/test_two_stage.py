"""Two stages: selection, fit on the support, shares, and what an adversary sees of a whole fit."""

from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression

import skdp.privacy.statistics.minimizer
from skdp import DPTwoStageClassifier, DPTwoStageRegressor
from skdp.base.plan import BudgetSplit
from skdp.datasets import make_sparse_classification, make_sparse_regression
from skdp.fitting.closing import TargetUnits
from skdp.linear_model.two_stage.solver import (
    PENALTY,
    TwoStagePlan,
    default_support,
    penalty,
    random_blocks,
    select_support,
)
from skdp.losses import HuberLoss, LogisticLoss, SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords, accounting, noise
from skdp.privacy.mechanisms.top_k import release as top_k_release
from tests.privacy.audit import epsilon_lower, shown


def sparse_problem(n=3000, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 3] * 2 - X[:, 17] + 0.5 * X[:, 30], rng


@pytest.mark.parametrize("selection", ["gumbel", "votes"])
def test_without_noise_it_is_least_squares_on_the_right_features(selection):
    X, z, rng = sparse_problem()
    y = 10 + z + 0.1 * rng.normal(size=3000)
    model = DPTwoStageRegressor(
        epsilon=np.inf, n_nonzero_coefs=3, selection=selection, row_norm=100.0, y_bounds=(-90, 110)
    ).fit(X, y)
    assert model.support_.tolist() == [3, 17, 30]
    exact = LinearRegression().fit(X[:, [3, 17, 30]], y)
    assert np.allclose(model.coef_[[3, 17, 30]], exact.coef_, atol=1e-8)
    assert np.isclose(model.intercept_, exact.intercept_)
    assert model.n_iter_ == 2


def test_without_noise_the_classifier_is_a_penalised_minimiser():
    X, z, rng = sparse_problem()
    y = (z + rng.logistic(size=3000) > 0).astype(int)
    options = dict(epsilon=np.inf, n_nonzero_coefs=3, fit_intercept=False, classes=(0, 1))
    model = DPTwoStageClassifier(**options, row_norm=100.0, alpha=0.01).fit(X, y)
    exact = LogisticRegression(C=1 / (3000 * 0.01), fit_intercept=False, tol=1e-10)
    exact.fit(X[:, [3, 17, 30]], y)
    assert np.allclose(model.coef_[0, [3, 17, 30]], exact.coef_[0], atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regression_learns_with_defaults(loss):
    X, z, rng = sparse_problem()
    y = 10 + z + 0.1 * rng.normal(size=3000)
    for table in (X, sp.csr_matrix(X)):
        model = DPTwoStageRegressor(epsilon=4.0, n_nonzero_coefs=3, loss=loss, random_state=0)
        assert model.fit(table, y).support_.tolist() == [3, 17, 30]
        assert model.score(X, y) > (0.95 if loss == "squared" else 0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_learns_with_defaults(n_classes):
    X, z, rng = sparse_problem()
    y = np.digitize(z + 0.5 * rng.normal(size=3000), [-1.5, 1.5][3 - n_classes :])
    model = DPTwoStageClassifier(epsilon=4.0, n_nonzero_coefs=3, classes=range(n_classes), random_state=0).fit(
        X, y
    )
    assert set(model.support_) >= {3, 17}
    assert model.score(X, y) > np.bincount(y).max() / 3000 + 0.1


# The published setting has a large delta.
@pytest.mark.filterwarnings("ignore:delta=.* is too large for")
def test_gradient_scores_beat_votes_on_the_published_setting():
    X, y, theta = make_sparse_regression(1000, 1000, n_informative=10, coef=True, random_state=0)
    found = {}
    for selection in ("gumbel", "votes"):
        model = DPTwoStageRegressor(
            epsilon=4.0, delta=0.01, n_nonzero_coefs=10, selection=selection, random_state=0
        ).fit(X, y)
        found[selection] = np.sum(theta[model.support_] ** 2) / np.sum(theta**2)
    assert found["gumbel"] > 0.9 > found["votes"]


def test_rows_of_the_report():
    X, y = make_sparse_classification(2000, 30, n_informative=3, random_state=0)
    options = dict(n_nonzero_coefs=3, classes=(0, 1), random_state=0)
    gumbel = DPTwoStageClassifier(**options).fit(X, y).privacy_
    votes = DPTwoStageClassifier(selection="votes", row_norm=3.0, **options).fit(X, y).privacy_
    names = {row["purpose"]: (row["name"], row["count"]) for row in gumbel.mechanisms}
    assert names["selection"] == ("gumbel_top_k", 3)
    assert names["minimiser"] == ("gaussian", 1)
    assert names["class frequencies"] == ("gaussian", 1)
    kept = "recalibration"
    assert set(names) == {"scale", "selection", "minimiser", "class frequencies", kept}
    assert {row["purpose"] for row in votes.mechanisms} == {"selection", "minimiser", kept}
    # 20 % are for the recalibration, and half of the rest for each stage. All together is what was paid for, but
    # for questions that the search for the scale of the scores did not ask: it has 6, and 8 % of the 20 %.
    claimed = accounting.gaussian_mu(1.0, 1e-5) ** 2
    search = [r["count"] for r in votes.mechanisms if r["purpose"] == kept][1]
    spent = claimed * (1 - 0.2 * 0.08 * (6 - search) / 6)
    assert accounting.rows_mu(votes.mechanisms) ** 2 == pytest.approx(spent, rel=1e-4)
    assert any("row_norm" in line for line in votes.assumptions)
    row = next(r for r in votes.mechanisms if r["purpose"] == "selection")
    half = 3 * accounting.bounded_range_mu(row["epsilon"]) ** 2
    assert half == pytest.approx(0.8 * claimed / 2, rel=1e-4)
    assert row["sensitivity"] == pytest.approx(1.0, rel=1e-6)


def test_default_support_follows_from_public_numbers():
    session = PrivacySession(epsilon=1.0, delta=1e-5)
    mu = accounting.gaussian_mu(1.0, 1e-5)
    for n, d, expected in ((100, 500, 5), (20_000, 500, int(20_000 * mu / 150)), (100, 3, 3)):
        assert default_support(session, PrivateRecords(np.zeros((n, d)), np.zeros(n))) == expected
    assert default_support(PrivacySession.without_privacy(), PrivateRecords(np.eye(7))) == 7


def test_no_first_stage_where_all_features_are_kept():
    X, z, _ = sparse_problem(d=31)
    model = DPTwoStageRegressor(n_nonzero_coefs=31, random_state=0).fit(X, z)
    assert {row["purpose"] for row in model.privacy_.mechanisms} == {"scale", "second moment", "calibration"}
    assert model.n_iter_ == 1


def test_blocks_have_one_size_or_are_drawn_one_by_one():
    records = PrivateRecords(np.zeros((100, 2)), np.zeros(100))
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    assert np.bincount(random_blocks(session, records, 10)._blocks).tolist() == [10] * 10
    assert len(np.unique(random_blocks(session, records, None)._blocks)) == 5
    session = PrivacySession(epsilon=1.0, delta=1e-5, adjacency="add-remove", random_state=0)
    drawn = random_blocks(session, PrivateRecords(np.zeros((4000, 2)), n_public=100), None)
    counts = np.bincount(drawn._blocks)
    assert len(counts) == 5  # from n_public, not from the number of records
    assert len(set(counts)) > 1
    assert abs(counts / 800 - 1).max() < 0.25  # ten standard deviations


@pytest.mark.parametrize(
    ("loss", "p", "norm", "spread", "noise"),
    [(LogisticLoss(), 11, 2.0, 3.0, 0.01), (HuberLoss(0.5), 30, 0.3, 5.0, 0.002)],
)
def test_penalty_balances_its_two_terms(loss, p, norm, spread, noise):
    steepness = getattr(loss, "threshold", 1.0)

    def excess(alpha):
        sigma = 2 * noise * steepness * norm / alpha
        bent = loss.smoothness * norm**2 / 2 * sigma**2
        return bent + alpha / 2 * p * (spread / norm) ** 2

    best = penalty(loss, p, norm, spread, noise) / PENALTY
    assert excess(best) < min(excess(0.9 * best), excess(1.1 * best))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"selection": "best"}, "selection"),
        ({"n_blocks": 0}, "n_blocks"),
        ({"n_nonzero_coefs": 99}, "more than"),
        ({"row_norm": -1.0}, "row_norm"),
        ({"loss": "huber", "alpha": 0.0}, "alpha"),
        ({"delta": 0.0}, "delta"),
        ({"y_bounds": (2.0, 1.0)}, "low < high"),
    ],
)
def test_bad_parameters(params, words):
    X, z, _ = sparse_problem(n=50)
    with pytest.raises(ValueError, match=words):
        DPTwoStageRegressor(**params).fit(X, z)


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
@pytest.mark.parametrize("selection", ["gumbel", "votes"])
def test_other_adjacencies(adjacency, selection):
    X, y = make_sparse_classification(500, 30, n_informative=3, random_state=0)
    options = dict(n_public=500) if adjacency == "add-remove" else {}
    model = DPTwoStageClassifier(
        adjacency=adjacency, selection=selection, n_nonzero_coefs=4, classes=(0, 1), **options
    ).fit(X, y)
    assert len(model.support_) == 4
    assert model.privacy_.adjacency == adjacency


# ------------------------------------------------------------------ the adversary

EPSILON, DELTA, RUNS = 8.0, 1e-5, 900
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)


def attack_fit(runs=200):
    """All features kept: the whole budget goes to the minimiser, which one target pulls up or down."""
    X = np.ones((6, 1))
    settings = dict(
        epsilon=EPSILON, delta=DELTA, row_norm=1.0, y_bounds=(-1, 1), fit_intercept=False, loss="huber"
    )

    def one(target, seed):
        y = np.zeros(6)
        y[0] = target
        model = DPTwoStageRegressor(**settings, alpha=100.0, random_state=seed)
        # Without the calibration, which would hide what the minimiser shows. With it:
        # `test_what_follows_the_steps_is_in_the_claim` of tests/privacy/attacks/test_auto_attacks.py.
        with mock.patch.object(TargetUnits, "calibration_share", return_value=0.0):
            return model.fit(X, y).coef_[0]

    low = np.array([one(-1e6, 2 * run) for run in range(runs)])
    high = np.array([one(1e6, 2 * run + 1) for run in range(runs)])
    return shown(low, high)


@pytest.mark.slow
def test_a_whole_fit_stays_below_its_claim_and_the_pair_hurts():
    found = attack_fit(RUNS)
    assert found <= CLAIM
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * EPSILON


def halve(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, stream: honest(sigma, size, stream) // 2)


def test_mutant_with_half_the_noise_is_caught(monkeypatch):
    halve(monkeypatch)
    assert attack_fit() > CLAIM


def test_mutant_with_the_sensitivity_of_a_strongly_convex_sum_halved_is_caught(monkeypatch):
    monkeypatch.setattr(skdp.privacy.statistics.minimizer, "factor", lambda adjacency: 1.0)
    assert attack_fit() > CLAIM


def attack_selection(runs=700):
    """Two features whose scores one record exchanges: (2, 0) against (0, 2), in units of the clip norm."""
    plan = TwoStagePlan(1, "gumbel", None, 1.0, (-9.0, 9.0), None)
    X, y = 1e12 * np.array([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]), np.ones(3)
    other = X.copy()
    other[0] = -other[0]

    def one(table, seed):
        session = PrivacySession(epsilon=EPSILON, delta=DELTA, random_state=seed)
        records = PrivateRecords(table, y)
        support, _ = select_support(
            BudgetSplit(session).split(scale=0.05, choice=0.9), records, SquaredLoss(), 1, plan
        )
        return float(support[0])

    low = np.array([one(X, 2 * run) for run in range(runs)])
    high = np.array([one(other, 2 * run + 1) for run in range(runs)])
    return epsilon_lower(low, high, 0.0, 0.5)


@pytest.mark.slow
def test_the_choice_stays_below_its_epsilon_and_a_mutant_with_little_noise_is_caught(monkeypatch):
    # The pair's log ratio is half of the range; the release alone is tested on the worst pair in test_votes.
    claim = PrivacySession(epsilon=EPSILON, delta=DELTA).selection_epsilon(1, 0.9)
    assert 0.6 * claim / 2 < attack_selection(1200) <= claim / 2
    honest = top_k_release.gumbel_top_k
    monkeypatch.setattr(
        top_k_release, "gumbel_top_k", lambda scores, k, scale, stream: honest(scores, k, scale / 4, stream)
    )
    assert attack_selection() > claim / 2


def test_minima_perturbation_as_second_stage():
    X, y = make_sparse_classification(5000, 200, n_informative=5, coef=False, random_state=0)
    options = dict(epsilon=4.0, n_nonzero_coefs=5, classes=(0, 1), random_state=0)
    model = DPTwoStageClassifier(second_stage="amp", **options).fit(X, y)
    assert {row["purpose"] for row in model.privacy_.mechanisms} >= {"selection", "minimiser"}
    assert model.privacy_.epsilon == 4.0
    assert model.score(X, y) > 0.65
    groups = np.arange(5000) // 2
    with pytest.raises(ValueError, match="unit='group'"):
        DPTwoStageClassifier(second_stage="amp", unit="group").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="two classes"):
        DPTwoStageClassifier(second_stage="amp", classes=(0, 1, 2)).fit(X, y)
    with pytest.raises(ValueError, match="second_stage"):
        DPTwoStageClassifier(second_stage="exact").fit(X, y)
