"""The penalty of the automatic estimators: Stein's risk, the C it chooses, and releases without C."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_regression

from skdp import BudgetAccountant, DPLinearRegression, DPLogisticRegression
from skdp.exceptions import UtilityWarning
from skdp.linear_model.auto.penalty import evidence, evidence_and_risk, matching_C, stein_risk, weighing
from skdp.linear_model.auto.steps import posterior_step
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from tools.defaults.override import set_defaults

pytestmark = pytest.mark.filterwarnings("ignore:random_state is a seed")

PENALTIES = (math.inf, 0.1, "auto")


def numbers(n=2000, d=6):
    return make_regression(n, d, noise=40.0, random_state=0)


def classes(n=2000, d=6):
    return make_classification(n, d, n_informative=3, n_redundant=0, random_state=0)


def fits(**params):
    """A fit of each kind."""
    common = {"epsilon": 2.0, "random_state": 0, **params}
    yield DPLinearRegression(**common), numbers
    yield DPLogisticRegression(classes=(0, 1), **common), classes


# ------------------------------------------------------------------ the risk

# Standard errors that a mean may be off: 2 x 10^-8 for each of twelve means.
OFF = 5.6
DRAWS = 20_000


def deviations(assumed):
    """Standard errors by which the mean of Stein's risk misses the risk of (G + alpha I)^-1 b, G fixed.

    It is simulated with dense matrices: b = G theta + noise, and the loss is (x - theta)' G (x - theta).
    """
    rng, p, noise = np.random.default_rng(0), 5, 0.3
    root = rng.normal(size=(p, p)) / math.sqrt(p)
    gram = root @ root.T + 0.05 * np.eye(p)
    values, vectors = np.linalg.eigh(gram)
    h = values[:, None]
    for size in (0.0, 0.5, 3.0):
        theta = size * rng.normal(size=p)
        cross = gram @ theta + noise * rng.normal(size=(DRAWS, p))
        for alpha in (0.0, 0.1, 1.0, 1e6):
            wrong = np.linalg.solve(gram + alpha * np.eye(p), cross.T).T - theta
            loss = np.einsum("ij,jk,ik->i", wrong, gram, wrong)
            turned = (cross @ vectors)[:, :, None]
            kept = np.broadcast_to(h / (h + alpha), turned.shape)
            risk = stein_risk(turned, h, assumed * noise, kept)
            error = np.std(risk - loss, ddof=1) / math.sqrt(DRAWS)
            yield abs(float(np.mean(risk - loss))) / error


def test_steins_risk_is_unbiased():
    """Missed by chance with probability 2.6e-7; half of the noise is caught."""
    assert max(deviations(1.0)) < OFF
    assert max(deviations(0.5)) > 2 * OFF


def test_the_penalty_that_matches_a_prior():
    variance, h, noise, n = 0.7, 1.3, 0.02, 500
    C = matching_C(variance, h, noise, n)
    assert h / (h + 1 / (C * n)) == pytest.approx(h**2 * variance / (h**2 * variance + noise**2))


def shrunk(size, noise, rule):
    """The mean scale of the prior for coefficients of this size, twelve of them."""
    b = size * np.random.default_rng(1).normal(size=(12, 1))
    h, prior = np.linspace(0.3, 2.0, 12)[:, None], np.ones((12, 1))
    gradient = h * b + noise * np.random.default_rng(2).normal(size=(12, 1))
    return posterior_step(gradient, h, noise, prior, 2.0 ** np.arange(-8, 6), rule).scale


@pytest.mark.parametrize("rule", [evidence, evidence_and_risk])
def test_larger_coefficients_are_shrunk_less(rule):
    small, middle, large = (shrunk(size, 0.1, rule) for size in (0.0, 0.5, 4.0))
    assert small < 0.02
    assert 0.1 < middle < 1.0
    assert large > 8.0


def test_the_risk_takes_part():
    """The evidence asks how large coefficients are, the risk how much is lost: here some are large."""
    h = np.ones((10, 1))
    gradient = np.array([3.0] + [0.3] * 9)[:, None]
    step = [
        posterior_step(gradient, h, 0.3, h, 2.0 ** np.arange(-6, 4), weighing(automatic))
        for automatic in (False, True)
    ]
    assert step[0].scale != step[1].scale


# ------------------------------------------------------------------ the C that is chosen


def test_more_records_are_shrunk_less():
    """About as n mu^2 for classes; for numbers less, because clips go farther out too."""
    for model, make in fits(C="auto"):
        found = [model.fit(*make(n)).C_ for n in (1000, 4000, 30_000)]
        assert 0 < 1.5 * found[0] < found[2]
        assert all(np.isfinite(found))


def test_what_C_was():
    for model, make in fits():
        X, y = make()
        assert model.fit(X, y).C_ == math.inf
        assert model.set_params(C=0.5).fit(X, y).C_ == 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert model.set_params(C="auto", epsilon=0.01).fit(X[:50], y[:50]).C_ == 0.0


def test_a_small_C_shrinks_a_regression():
    X, y = numbers()
    free = DPLinearRegression(epsilon=2.0, C=1.0, random_state=0).fit(X, y)
    with pytest.warns(UtilityWarning, match="0% of the variance"):
        held = DPLinearRegression(epsilon=2.0, C=1e-6, random_state=0).fit(X, y)
    assert np.linalg.norm(held.coef_) < 0.05 * np.linalg.norm(free.coef_)
    assert held.intercept_ == pytest.approx(np.mean(y), abs=0.3 * np.std(y))


def test_other_solvers_take_a_number():
    X, y = numbers()
    model = DPLinearRegression(epsilon=8.0, solver="ight", random_state=0)
    free, held = (model.set_params(C=C).fit(X, y).coef_ for C in (math.inf, 1e-6))
    assert np.linalg.norm(held) < 0.5 * np.linalg.norm(free)


# ------------------------------------------------------------------ the same releases for every C


def releases(model, X, y, monkeypatch, groups=None):
    """What each release was, what it gave, and the ledger; the noise of every C is the same here."""
    honest, seen = gaussian_release.gaussian, []

    def release(bounded, drawn_with, stream):
        released, line = honest(bounded, drawn_with, stream)
        seen.append(released.copy())
        return released, line

    with monkeypatch.context() as patch:
        patch.setattr(gaussian_release, "gaussian", release)
        patch.setattr(type(model), "_noise_parameters", lambda self: {})
        report = model.fit(X, y, groups=groups).privacy_
    # Noise in units of the sensitivity: that of a gradient is in units of released residuals.
    # The quotient of two numbers that were rounded apart may differ in its last bit.
    rows = [
        (row["name"], row["purpose"], row["count"], row["sampling"], f"{row['noise_multiplier']:.14g}")
        for row in report.mechanisms
    ]
    return seen, (report.epsilon, report.delta, rows)


@pytest.mark.parametrize("unit", ["record", "group"])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("kind", [0, 1])
def test_every_C_has_the_same_releases(kind, adjacency, unit, monkeypatch):
    """The number, noise and shape of all; and up to the first gradient, whose point is the same, the values."""
    model, make = list(fits(adjacency=adjacency, unit=unit))[kind]
    X, y = make()
    # Groups of 1, 2, 3 and 4 rows.
    groups = np.repeat(np.arange(800), np.tile([1, 2, 3, 4], 200)) if unit == "group" else None
    if adjacency == "add-remove":
        model.set_params(n_public=800 if unit == "group" else len(X))
    (values, ledger), *others = (releases(model.set_params(C=C), X, y, monkeypatch, groups) for C in PENALTIES)
    before = [row[1] for row in ledger[2]].index("gradient")
    for given, own in others:
        assert own == ledger
        assert [value.shape for value in given] == [value.shape for value in values]
        same = [np.array_equal(a, b) for a, b in zip(values, given)]
        # A row of the ledger is a release or more; the first gradient is taken at a point that knows no C.
        assert all(same[: before + 1])
        assert not same[-1]


def test_a_release_that_depends_on_C_would_be_seen(monkeypatch):
    """The mutant gives the Gram matrix a larger share with C="auto"."""
    X, y = numbers()
    model = DPLinearRegression(epsilon=2.0, random_state=0)
    _, honest = releases(model, X, y, monkeypatch)
    set_defaults(monkeypatch, numbers__gram_part=0.21)
    assert releases(model.set_params(C="auto"), X, y, monkeypatch)[1] != honest


def test_C_takes_part_in_the_noise_of_a_seed():
    """Two fits at one noise would tell the data apart from it; the default draws what it always drew."""
    for model, _ in fits():
        given = [model.set_params(C=C)._noise_parameters() for C in PENALTIES]
        assert given[1] != given[0] != given[2] != given[1]


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("wrong", ["foo", "AUTO", 0, -1.0, math.nan])
def test_a_wrong_C_is_named(wrong):
    for model, make in fits(C=wrong):
        with pytest.raises(ValueError, match=r"C must be .* or 'auto'"):
            model.fit(*make())


@pytest.mark.parametrize("wrong", [None, [1.0], True])
def test_a_C_of_a_wrong_type_is_named(wrong):
    for model, make in fits(C=wrong):
        with pytest.raises(TypeError, match="C must be a number or 'auto'"):
            model.fit(*make())


def test_auto_needs_moments_and_costs_nothing_else():
    for model, make in fits(C="auto", solver="ight"):
        with pytest.raises(ValueError, match="C='auto' is for solver='moments'"):
            model.fit(*make())
    wide = sp.random(300, 200, 0.05, format="csr", random_state=0)
    with BudgetAccountant(1.0, 1e-5) as accountant:
        for kind in (DPLinearRegression(C="auto"), DPLogisticRegression(C="auto", classes=(0, 1))):
            with pytest.raises(ValueError, match="takes solver='ight'"):
                kind.fit(wide, np.arange(300) % 2)
        assert accountant.spent() == (0.0, 0.0)
