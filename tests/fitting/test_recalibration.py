"""Probabilities of finished classifiers: their means, slopes and rows in the ledger; weights of the classes."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss

import skdp
from skdp.fitting.linear import LinearFit
from skdp.multiparty.multiparty_fit import MultipartyFit
from skdp.nn.net_fit import NetFit
from skdp.privacy import accounting
from tests.kinds import of_each_kind

# The recalibration of nets, from records of their outputs, has tests/nn/test_calibration.py.
PRIVATE = {
    name: cls
    for name, cls in skdp.all_estimators()
    if name.startswith("DP") and name.endswith("Classifier") and not issubclass(cls, (MultipartyFit, NetFit))
}
LEFT_OUT = {"DPAMPClassifier", "DPSRMClassifier"}  # of two classes
RECALIBRATED = sorted(set(PRIVATE) - LEFT_OUT)
WEIGHTED = [name for name in sorted(PRIVATE) if "class_weight" in PRIVATE[name]().get_params()]


def data(k, n=6000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    z = X @ rng.normal(size=(d, k)) - 0.5 * np.arange(k)
    y = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    return X, y


def worst_mean(model, X, y):
    labels = model.classes_
    return np.abs(model.predict_proba(X).mean(axis=0) - np.mean(y[:, None] == labels, axis=0)).max()


def rows(model):
    return [row for row in model.privacy_.mechanisms if row["purpose"] == "recalibration"]


@pytest.mark.parametrize("name", of_each_kind(RECALIBRATED, pytest.mark.thorough))
def test_mean_probabilities_are_the_frequencies(name):
    X, y = data(2)
    model = PRIVATE[name](epsilon=2.0, classes=(0, 1), random_state=0).fit(X, y)
    assert worst_mean(model, X, y) < 0.02
    assert rows(model)


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("name", ["DPIGHTClassifier", pytest.param("DPSRMClassifier", marks=pytest.mark.thorough)])
def test_so_are_those_of_several_classes(name, k):
    X, y = data(k)
    model = PRIVATE[name](epsilon=2.0, classes=range(k), random_state=0).fit(X, y)
    assert worst_mean(model, X, y) < 0.02


def test_clipped_gradients_would_bend_them(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 6))
    y = (rng.random(6000) < expit(X @ np.full(6, 0.6) - 1.2)).astype(int)
    whole = skdp.DPIGHTClassifier(epsilon=20.0, classes=(0, 1), random_state=0).fit(X, y)
    assert worst_mean(whole, X, y) < 0.01
    monkeypatch.setattr(LinearFit, "_closing", lambda self, problem: ())
    model = skdp.DPIGHTClassifier(epsilon=20.0, classes=(0, 1), random_state=0).fit(X, y)
    assert not rows(model)
    assert worst_mean(model, X, y) > 0.02


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_what_does_not_bend_them_is_left_alone(name):
    X, y = data(2, 2000)
    assert not rows(PRIVATE[name](epsilon=2.0, classes=(0, 1), random_state=0).fit(X, y))


def test_probabilities_are_those_of_the_coefficients():
    X, y = data(3)
    model = skdp.DPIGHTClassifier(epsilon=2.0, classes=(0, 1, 2), random_state=0).fit(X, y)
    z = X @ model.coef_.T + model.intercept_
    assert model.predict_proba(X) == pytest.approx(softmax(z, axis=1))
    X, y = data(2)
    model = skdp.DPIGHTClassifier(epsilon=2.0, classes=(0, 1), random_state=0).fit(X, y)
    z = X @ model.coef_[0] + model.intercept_[0]
    assert model.predict_proba(X)[:, 1] == pytest.approx(expit(z))


def test_the_slope_alone_without_an_intercept():
    X, y = data(2)
    y = (X[:, 0] > 0).astype(int)
    model = skdp.DPIGHTClassifier(epsilon=2.0, classes=(0, 1), fit_intercept=False, random_state=0).fit(X, y)
    assert model.intercept_ == 0
    assert rows(model)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("unit", ["record", "group"])
def test_units_and_adjacencies(unit, adjacency):
    X, y = data(2, 8000)
    groups = np.sort(np.random.default_rng(0).integers(0, 4000, len(X)) ** 2 // 4000)
    own = {"groups": groups} if unit == "group" else {}
    n_public = {"record": 8000, "group": 2500}[unit] if adjacency == "add-remove" else None
    model = skdp.DPIGHTClassifier(
        epsilon=4.0, classes=(0, 1), unit=unit, adjacency=adjacency, n_public=n_public, random_state=0
    ).fit(X, y, **own)
    assert rows(model)
    weight = 1 / np.bincount(groups)[groups] if own else np.ones(len(X))
    gap = np.average(model.predict_proba(X)[:, 1] - y, weights=weight)
    assert abs(gap) < 0.02
    assert model.privacy_.guarantee == "proven"


def test_storage_changes_nothing_but_rounding():
    X, y = data(2)
    found = [
        skdp.DPIGHTClassifier(epsilon=2.0, classes=(0, 1), random_state=0).fit(Z, y).coef_
        for Z in (X, np.asfortranarray(X), sp.csr_matrix(X))
    ]
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=0.05)


@pytest.mark.parametrize("k", [3, 10])
def test_mean_probabilities_of_several_classes(k):
    """The last round releases the residuals alone: their mean has less noise than with the curvature."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(5000, 10))
    z = X @ rng.normal(size=(10, k)) / 2 + 0.7 * rng.normal(size=k)
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    errors = []
    for seed in range(8):
        model = skdp.DPGDClassifier(classes=np.arange(k), random_state=seed).fit(X, y)
        found = np.abs(model.predict_proba(X).mean(axis=0) - np.bincount(y) / len(y))
        errors.append(found.max())
    assert max(errors) < 0.02
    assert np.mean(errors) < 0.014


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_it_is_left_out_where_its_noise_is_worse():
    X, y = data(2, 200)
    model = skdp.DPIGHTClassifier(epsilon=0.5, classes=(0, 1), random_state=0).fit(X, y)
    assert not rows(model)


@pytest.mark.parametrize(
    ("k", "epsilon", "n"),
    [(2, 1.0, 6000), (2, 1.0, 600), (2, 8.0, 6000), (3, 1.0, 6000), (3, 2.0, 6000), (3, 8.0, 6000)],
)
def test_the_share_follows_from_public_numbers(k, epsilon, n):
    """The noise of a mean probability is .008 or, of several classes, .005, for 2 to 20 or 30 % of mu^2."""
    X, y = data(k, n)
    model = skdp.DPGDClassifier(epsilon=epsilon, classes=range(k), random_state=0).fit(X, y)
    mu2 = accounting.gaussian_mu(epsilon, 1e-5) ** 2
    if k == 2:
        # A row's gradient, p - e and (p - e) u with |u| <= 1, and .7 of its curvature, p (1 - p) of (1, u).
        longest, noise, most = math.hypot(math.sqrt(2), 0.7 * 0.5), 0.008, 0.2
        parts = (0.07, 0.08, 0.1, 0.15, 0.2, 0.4)
    else:
        # In the last round p - e and .3 <p - e, u>, whose lengths are sqrt 2 and at most .3 sqrt 2.
        longest, noise, most = math.sqrt(2) * math.hypot(1, 0.3), 0.005, 0.3
        parts = (0.06, 0.06, 0.09, 0.12, 0.16, 0.51)
    wanted = (2 * longest / (noise * n)) ** 2 / parts[-1] / mu2  # for the last round
    share = min(most, max(0.02, wanted))
    plans = list(zip((5, 6, 1, 1, 1, 1), parts))
    assert len(rows(model)) == len(plans)
    for row, (releases, part) in zip(rows(model), plans):
        assert row["count"] <= releases
        paid = releases / row["noise_multiplier"] ** 2
        assert paid == pytest.approx(part * share * mu2, rel=2e-4)
    (steps,) = (row for row in model.privacy_.mechanisms if row["purpose"] == "steps")
    assert steps["count"] / steps["noise_multiplier"] ** 2 <= (1 - share) * mu2


def test_a_penalty_that_was_asked_for_stays():
    X, y = data(2)
    fits = [
        skdp.DPIGHTClassifier(epsilon=8.0, alpha=a, classes=(0, 1), random_state=0).fit(X, y) for a in (0.0, 1.0)
    ]
    assert np.linalg.norm(fits[1].coef_) < 0.5 * np.linalg.norm(fits[0].coef_)


def test_pure_fits_are_left_alone():
    X, y = data(2, 2000)
    model = skdp.DPFrankWolfeClassifier(
        epsilon=4.0, delta=0, radius=5.0, clip_norm=1.0, classes=(0, 1), random_state=0
    ).fit(X, y)
    assert not rows(model)
    assert model.privacy_.delta == pytest.approx(0, abs=1e-12)


def test_few_records_are_named_before_the_fit():
    X, y = data(2, 400)
    with pytest.warns(skdp.exceptions.UtilityWarning, match="worse than the frequencies"):
        skdp.DPGDClassifier(classes=(0, 1), random_state=0).fit(X, y)


# ---------------------------------------------------------------- weights of the classes


def rare(seed=0, n=20_000, d=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, d))
    z = 1.75 * X @ np.full(d, 1 / math.sqrt(d))
    y = (rng.random(2 * n) < expit(z - 4.85)).astype(int)  # 3 of 100
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("name", ["DPIGHTClassifier", "DPGDClassifier", "DPSGDClassifier"])
def test_weights_gain_what_they_gain_without_privacy(name):
    X, y, new, truth = rare()
    weight = {0: 1.0, 1: 32.0}
    free = [LogisticRegression(class_weight=w).fit(X, y).predict(new) for w in (None, weight)]
    assert np.diff([balanced_accuracy_score(truth, p) for p in free]) > 0.24
    private = [
        PRIVATE[name](classes=(0, 1), class_weight=w, random_state=0).fit(X, y).predict(new)
        for w in (None, weight)
    ]
    assert np.diff([balanced_accuracy_score(truth, p) for p in private]) > 0.19


@pytest.mark.parametrize("name", WEIGHTED)
def test_equal_weights_change_nothing(name):
    X, y = data(2, 800)
    options = {"epsilon": 8.0, "classes": (0, 1)}
    if "max_iter" in PRIVATE[name]().get_params():
        options["max_iter"] = 5
    fits = []
    for weight in ({}, {0: 7.0, 1: 7.0}):
        model = PRIVATE[name](class_weight=weight, random_state=0, **options)
        model._noise_parameters = dict  # one stream for both
        fits.append(model.fit(X, y))
    first, second = (getattr(fit, "coef_", None) for fit in fits)
    if first is None:  # of an additive model, which has curves as well
        first, second = (fit.decision_function(X) for fit in fits)
    assert second == pytest.approx(first)
    assert fits[1].privacy_.mechanisms == fits[0].privacy_.mechanisms


def test_weights_change_no_bound_and_no_divisor():
    """The multiplier, the sensitivity and the claim are those of a fit without weights."""
    X, y = data(2, 3000)
    options = {"classes": (0, 1), "clip_norm": 1.0, "learning_rate": 0.1, "max_iter": 5}
    plain = skdp.DPGDClassifier(random_state=0, **options).fit(X, y).privacy_
    weighted = skdp.DPGDClassifier(class_weight={1: 1.5, 0: 0.75}, random_state=0, **options).fit(X, y).privacy_
    first, second = (report.mechanisms[0] for report in (plain, weighted))
    assert first["sensitivity"] == second["sensitivity"]
    assert plain.epsilon == weighted.epsilon


@pytest.mark.parametrize("cls", [skdp.IGHTClassifier, skdp.STORMClassifier])
def test_exact_weights_are_those_of_scikit_learn(cls):
    X, y, *_ = rare(n=4000)
    weight = {0: 1.0, 1: 32.0}
    free = LogisticRegression(class_weight=weight, C=np.inf).fit(X, y)
    found = cls(class_weight=weight, classes=(0, 1)).fit(X, y)
    w = np.where(y == 1, 32.0, 1.0)
    losses = [log_loss(y, m.predict_proba(X), sample_weight=w) for m in (free, found)]
    assert losses[1] < losses[0] + 0.05


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ("balanced", ValueError, "would read the class counts"),
        ([1, 2], TypeError, "must be a dict"),
        ({0: 0.0}, ValueError, "class_weight"),
        ({0: float("nan")}, ValueError, "class_weight"),
        ({2: 1.0}, ValueError, "not in classes"),
        ({"1": 1.0}, ValueError, "not in classes"),
    ],
)
def test_wrong_weights_are_refused_before_the_data(weight, error, message):
    model = skdp.DPIGHTClassifier(classes=(0, 1), class_weight=weight)
    with pytest.raises(error, match=message):
        model.fit(None, None)
