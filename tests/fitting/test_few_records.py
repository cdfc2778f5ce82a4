"""Few records for the budget: scales get a larger share, and what is released stays sane."""

import inspect
import math
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import skdp
from skdp.base.plan import BudgetSplit
from skdp.exceptions import UtilityWarning
from skdp.fitting.scales import LARGEST_SHARE, PRECISION, grown_share
from skdp.fitting.stochastic import StochasticFit
from skdp.linear_model.auto.fit import AutoFit
from skdp.linear_model.ight.estimators import ThresholdingFit
from skdp.multiparty.multiparty_fit import MultipartyFit
from skdp.multiparty.output_estimators import OutputPerturbationFit
from skdp.nn.net_fit import NetFit
from skdp.privacy import PrivacySession, accounting

pytestmark = pytest.mark.thorough

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)) * 3 + 0.8
Y = X @ np.array([1, -1, 0.5, 0, 0, 0]) + 10 + RNG.normal(size=N)


def test_the_share_of_the_scales_grows_where_units_are_few_by_public_numbers():
    session = PrivacySession(epsilon=1.0, delta=1e-5)
    mu = accounting.gaussian_mu(1.0, 1e-5)
    shares = [grown_share(BudgetSplit(session), n, 16) for n in (50, N, 1200, 10**6)]
    assert shares[0] == LARGEST_SHARE
    assert shares[1] == pytest.approx(16 * (PRECISION / (N * mu)) ** 2, rel=1e-3)
    assert shares[2:] == [0.02, 0.02]  # exactly: larger fits stay what they were
    assert grown_share(BudgetSplit(session), N, 16, part=0.9) == pytest.approx(shares[1] / 0.9)
    assert grown_share(BudgetSplit(PrivacySession(epsilon=math.inf, delta=1e-5)), 50, 16) == 0.02


@pytest.mark.parametrize(
    "kind",
    [
        "DPIGHT",
        "DPFrankWolfe",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("DPSLKT", "DPAdaSSP", "DPTwoStage", "DPAMP")),
    ],
)
def test_few_records_make_no_nonsense(kind):
    for seed in range(20):
        model = getattr(skdp, kind + "Regressor")(random_state=seed).fit(X, Y)
        assert model.score(X, Y) > -5.0


def told(model, X, y, **fit):
    """What a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **fit)
    return [str(w.message) for w in caught if w.category is UtilityWarning]


# Nets count their parameters: tests/nn/test_estimators.py has their warning of few records.
PRIVATE = {
    n: c
    for n, c in skdp.all_estimators()
    if "epsilon" in inspect.signature(c).parameters and not issubclass(c, NetFit)
}
NAMES = sorted(PRIVATE)
MODELS = [n for n in NAMES if is_classifier(PRIVATE[n]()) or is_regressor(PRIVATE[n]())]


def declared(cls):
    return {"classes": (0, 1)} if is_classifier(cls()) else {}


@pytest.mark.parametrize("name", NAMES)
def test_few_records_are_named_once_and_many_are_not(name):
    cls = PRIVATE[name]
    params = declared(cls)
    y = (Y > 10).astype(int) if params else Y
    messages = told(cls(**params), X[:60], y[:60])
    assert len([m for m in messages if "60 records at epsilon=1 are few" in m]) == 1
    if not issubclass(cls, AutoFit):  # its rule counts features, too
        assert not any("are few" in m for m in told(cls(**params), X, y))
        assert not any("are few" in m for m in told(cls(epsilon=20.0, **params), X[:60], y[:60]))


def test_the_warning_names_parameters_that_would_help():
    (message,) = [m for m in told(skdp.DPAdaSSPRegressor(), X[:60], Y[:60]) if "are few" in m]
    assert "give row_norm= and y_bounds= as public numbers" in message
    given = told(skdp.DPAdaSSPRegressor(row_norm=8.0, y_bounds=(0, 20)), X[:60], Y[:60])
    assert not any("are few" in m for m in given)
    groups = np.repeat(np.arange(40), 10)
    messages = told(skdp.DPIGHTRegressor(unit="group"), X, Y, groups=groups)
    assert any("40 groups at epsilon=1 are few" in m for m in messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in MODELS if not issubclass(PRIVATE[n], (AutoFit, MultipartyFit))])
def test_rows_that_are_mostly_empty_are_named(name):
    """The automatic estimator takes such rows as they are."""
    cls = PRIVATE[name]
    params = {"epsilon": 20.0, **declared(cls)}
    empty = np.tile(X, (5, 1))
    y = np.tile(Y, 5)
    if "classes" in params:
        y = (y > 10).astype(int)
    assert not any("smallest that can" in m for m in told(cls(**params), empty, y))
    empty[np.arange(len(empty)) % 10 > 0] = 0.0
    if "classes" not in params:
        y = np.where(np.any(empty != 0, axis=1), y, 0.0)
    assert len([m for m in told(cls(**params), empty, y) if "smallest that can" in m]) == 1


def least_needed(cls, d):
    """The least n mu at d features; None where few coefficients, or few numbers of a step, are released."""
    if issubclass(cls, OutputPerturbationFit) or cls.__name__.startswith("DPLocalObjective"):
        return None  # they warn of the noise of scores, or of the penalty
    if issubclass(cls, (StochasticFit, ThresholdingFit, MultipartyFit)):
        return 2 * math.sqrt(d + 1)  # a gradient of all parameters
    return (d + 1) ** 1.5 if cls is skdp.DPAdaSSPRegressor else None  # all second moments


def too_many(name, n, d, **params):
    cls = PRIVATE[name]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    messages = told(cls(**{**declared(cls), **params}), X, y)
    found = [m for m in messages if "are too many" in m]
    assert len(found) < 2
    return found[0] if found else None


@pytest.mark.parametrize("name", NAMES)
def test_too_many_coefficients_are_named_from_public_numbers(name):
    d, mu = 8, accounting.gaussian_mu(1.0, 1e-5)
    needed = least_needed(PRIVATE[name], d)
    if needed is None:
        assert too_many(name, 10, d) is None
        return
    least = math.ceil(needed / mu)
    assert "9 coefficients are too many for" in too_many(name, least - 1, d)
    assert too_many(name, least, d) is None
    if name != "DPIGHTRegressor":  # the rest is in the pure function: tests/fitting/test_utility.py
        return
    assert too_many(name, least - 1, d, epsilon=math.inf) is None
    assert too_many(name, 9, d, n_public=least, adjacency="add-remove") is None
    assert too_many(name, least // 2 - 1, d, adjacency="zero-out")


def test_the_advice_against_too_many_coefficients():
    message = too_many("DPIGHTRegressor", 20, 8)
    assert "9 coefficients are too many for 20 records at epsilon=1" in message
    assert "use fewer features, n_nonzero_coefs=, more records or a larger epsilon" in message
    assert too_many("DPIGHTRegressor", 20, 8, n_nonzero_coefs=2) is None
    assert "n_nonzero_coefs" not in too_many("DPSGDRegressor", 20, 8)
    X, y = np.random.default_rng(0).normal(size=(60, 8)), np.arange(60) % 3
    messages = told(skdp.DPIGHTClassifier(classes=(0, 1, 2), unit="group"), X, y, groups=np.arange(60) // 3)
    assert any("27 coefficients are too many for 20 groups" in m for m in messages)


def test_a_fit_with_delta_0_is_told_nothing_about_gaussian_noise():
    model = skdp.DPFrankWolfeRegressor(delta=0.0, clip_norm=1.0, radius=1.0, huber_threshold=1.0, loss="huber")
    assert not told(model, X[:20], Y[:20])


def test_beyond_the_limit_nothing_is_learnt_and_far_below_it_much():
    """The rule is measured: a dense classifier is no better than a coin at the limit."""
    scores = {1: [], 40: []}
    for times, found in scores.items():
        n = int(times * 2 * math.sqrt(41) / accounting.gaussian_mu(1.0, 1e-5))
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n + 2000, 40))
            y = (X @ rng.normal(size=40) > 0).astype(int)
            model = skdp.DPGDClassifier(classes=(0, 1), random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UtilityWarning)
                found.append(model.fit(X[:n], y[:n]).score(X[n:], y[n:]))
    assert np.mean(scores[1]) < 0.57
    assert np.mean(scores[40]) > 0.8


def test_what_amp_sets_aside_follows_from_public_numbers():
    def searched(n, **params):
        return 0.98 - skdp.DPAMPClassifier(**params)._set_aside(n)

    assert [round(searched(n), 9) for n in (50, N, 10**4)] == [0.2, 0.2, 0.05]
    assert searched(50, row_norm=1.0) == pytest.approx(0.0)
    fits = [skdp.DPAMPRegressor(adjacency="add-remove", n_public=50).fit(X[:n], Y[:n]) for n in (60, N)]
    assert fits[0].privacy_.epsilon == fits[1].privacy_.epsilon == 1.0
    of_search = [{r["purpose"]: r for r in f.privacy_.mechanisms}["scale"] for f in fits]
    assert of_search[0]["noise_multiplier"] == of_search[1]["noise_multiplier"]  # n_public, not n
