"""Few records for the budget: scales get a larger share, and what is released stays sane."""

import math
import warnings

import numpy as np
import pytest

import skdp
from skdp.linear_model._scales import LARGEST_SHARE, PRECISION, grown_share
from skdp.privacy import PrivacySession, accounting

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)) * 3 + 0.8
Y = X @ np.array([1, -1, 0.5, 0, 0, 0]) + 10 + RNG.normal(size=N)


def test_the_share_of_the_scales_grows_where_units_are_few_by_public_numbers():
    session = PrivacySession(epsilon=1.0, delta=1e-5)
    mu = accounting.gaussian_mu(1.0, 1e-5)
    shares = [grown_share(session, n, 16) for n in (50, N, 1200, 10**6)]
    assert shares[0] == LARGEST_SHARE
    assert shares[1] == pytest.approx(16 * (PRECISION / (N * mu)) ** 2, rel=1e-3)
    assert shares[2:] == [0.02, 0.02]  # exactly: larger fits stay what they were
    assert grown_share(session, N, 16, part=0.9) == pytest.approx(shares[1] / 0.9)
    assert grown_share(PrivacySession(epsilon=math.inf, delta=1e-5), 50, 16) == 0.02


@pytest.mark.parametrize(
    "kind", ["DPIGHT", "DPSLKT", "DPAdaSSP", "DPTwoStage", "DPFrankWolfe", "DPAMP"]
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
    return [str(w.message) for w in caught if w.category is UserWarning]


NAMES = sorted(name for name, _ in skdp.all_estimators() if name.startswith("DP"))


@pytest.mark.parametrize("name", NAMES)
def test_few_records_are_named_once_and_many_are_not(name):
    cls = getattr(skdp, name)
    params = {"classes": (0, 1)} if "Classifier" in name else {}
    y = (Y > 10).astype(int) if params else Y
    messages = told(cls(**params), X[:60], y[:60])
    assert len([m for m in messages if "60 records at epsilon=1 are few" in m]) == 1
    assert not any("are few" in m for m in told(cls(**params), X, y))
    assert not any("are few" in m for m in told(cls(epsilon=20.0, **params), X[:60], y[:60]))


def test_the_warning_names_parameters_that_would_help():
    (message,) = told(skdp.DPAdaSSPRegressor(), X[:60], Y[:60])
    assert "give row_norm= and y_bounds= as public numbers" in message
    assert not told(skdp.DPAdaSSPRegressor(row_norm=8.0, y_bounds=(0, 20)), X[:60], Y[:60])
    groups = np.repeat(np.arange(40), 10)
    messages = told(skdp.DPIGHTRegressor(unit="group"), X, Y, groups=groups)
    assert any("40 groups at epsilon=1 are few" in m for m in messages)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_mostly_empty_are_named(name):
    cls, params = getattr(skdp, name), {"epsilon": 20.0}
    empty = np.tile(X, (5, 1))
    y = np.tile(Y, 5)
    if "Classifier" in name:
        params["classes"], y = (0, 1), (y > 10).astype(int)
    assert not any("smallest that can" in m for m in told(cls(**params), empty, y))
    empty[np.arange(len(empty)) % 10 > 0] = 0.0
    if "Classifier" not in name:
        y = np.where(np.any(empty != 0, axis=1), y, 0.0)
    assert len([m for m in told(cls(**params), empty, y) if "smallest that can" in m]) == 1


def test_what_amp_sets_aside_follows_from_public_numbers():
    def searched(n, **params):
        return 0.98 - skdp.DPAMPClassifier(**params)._share_aside(n)

    assert [round(searched(n), 9) for n in (50, N, 10**4)] == [0.2, 0.2, 0.05]
    assert searched(50, row_norm=1.0) == pytest.approx(0.0)
    fits = [
        skdp.DPAMPRegressor(adjacency="add-remove", n_public=50).fit(X[:n], Y[:n]) for n in (60, N)
    ]
    assert fits[0].privacy_.epsilon == fits[1].privacy_.epsilon == 1.0
    of_search = [{r["purpose"]: r for r in f.privacy_.mechanisms}["scale"] for f in fits]
    assert of_search[0]["noise_multiplier"] == of_search[1]["noise_multiplier"]  # n_public, not n
