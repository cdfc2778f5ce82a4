"""Windows, cuts and public bounds of the automatic estimator against neighbours that are built to hurt.

As in `test_auto_attacks` a fit on one data set is recorded, and its neighbour takes the same path. So what
the pair tells apart is exact along each path, and the claim bounds it without statistics. The pairs here take the
paths that public bounds, cells far outside, a second look at the targets and a wider histogram open.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.base.plan import BudgetSplit
from skdp.exceptions import PrivacyAccountingError
from skdp.linear_model.auto import regression, targets
from skdp.linear_model.auto.moments_method import MomentsMethod
from skdp.privacy import PrivacySession, PrivateRecords, accounting, noise
from skdp.privacy.session import claim
from skdp.privacy.session.ledger import Ledger
from tests.privacy.attacks.test_auto_attacks import Path
from tests.privacy.audit import mu_lower
from tools.defaults.override import set_defaults

EPSILON, DELTA = 6.0, 1e-2
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)
FAR = 1e300
BOUNDS = {-1: (-1.0, 1.0), 0: ([-1.0, -np.inf, 0.0], [1.0, np.inf, np.inf])}


class Fit:
    """An unfitted automatic estimator whose `fit` takes the groups as a third number."""

    def __init__(self, cls, seed, **params):
        labels = {"classes": (0, 1)} if cls is DPLogisticRegression else {}
        known = {"epsilon": EPSILON, "delta": DELTA, "solver": "moments", "random_state": seed}
        self.model = cls(**{**known, **labels, **params})

    def fit(self, X, y, groups=None):
        return self.model.fit(X, y, groups=groups)


@pytest.fixture(autouse=True)
def every_step(monkeypatch):
    """Also few records take all steps."""
    set_defaults(
        monkeypatch,
        choice__max_class_noise=np.inf,
        choice__min_effective_n=0.0,
        choice__min_effective_n_per_feature=0.0,
        slopes__min_effective_n=0.0,
    )


def table(cls, n, seed=0):
    """Columns with a tail, with codes, and of few ones."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), np.exp(2.0 * rng.normal(size=n)), (rng.random(n) < 0.05).astype(float)]
    )
    X[rng.random(n) < 0.05, 1] = 9999.0
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, ((y > 0).astype(int) if cls is DPLogisticRegression else y)


def replaced(cls, rows, kind, n=150):
    """Two tables that differ in the first rows, a group of its own: cells far outside, codes, missing, inside."""
    one, two = (tuple(part.copy() for part in table(cls, n)) for _ in range(2))
    cells = {
        "far": (FAR, -FAR), "codes": (9999.0, 0.0), "missing": (np.nan, FAR), "inside": (1.0, -1.0),
    }  # fmt: skip
    for (X, y), cell, label in zip((one, two), cells[kind], (0, 1)):
        X[:rows] = cell
        y[:rows] = label if cls is DPLogisticRegression else (2 * label - 1) * FAR
    return one, two


CLASSES = pytest.mark.parametrize("cls", [DPLinearRegression, DPLogisticRegression])


@pytest.mark.thorough
@CLASSES
@pytest.mark.parametrize("kind", ["far", "codes", "missing", "inside"])
@pytest.mark.parametrize("bounds", [None, *BOUNDS])
def test_a_record_far_outside_stays_within_the_claim(cls, kind, bounds, monkeypatch):
    given = {} if bounds is None else {"feature_bounds": BOUNDS[bounds]}
    if bounds is not None and cls is DPLinearRegression:
        given["y_bounds"] = (-2.0, 2.0)
    path = Path(monkeypatch)
    for run, fit_intercept in enumerate((True, False)):
        own, other = replaced(cls, 1, kind)
        for pair in ((own, other), (other, own)):
            params = {"fit_intercept": fit_intercept, **given}
            path.follow(lambda s: Fit(cls, s, **params), run, *pair)  # noqa: B023
            assert path.cost <= CLAIM**2


@CLASSES
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("kind", ["far", "codes"])
def test_a_group_of_any_size_stays_within_the_claim(cls, rows, kind, monkeypatch):
    groups = np.append(np.zeros(rows, int), 1 + np.arange(150 - rows) // 2)
    own, other = replaced(cls, rows, kind)
    path = Path(monkeypatch)
    for bounds in (None, BOUNDS[0]):
        make = lambda s, b=bounds: Fit(cls, s, unit="group", feature_bounds=b)  # noqa: E731
        path.follow(make, 0, (*own, groups), (*other, groups))
        assert path.cost <= CLAIM**2


@CLASSES
def test_a_record_that_comes_or_goes_stays_within_the_claim(cls, monkeypatch):
    own, _ = replaced(cls, 1, "far")
    less = tuple(part[1:] for part in own)
    path = Path(monkeypatch)
    for bounds in (None, BOUNDS[0]):
        params = {"adjacency": "add-remove", "n_public": 150, "feature_bounds": bounds}
        for pair in ((own, less), (less, own)):
            path.follow(lambda s: Fit(cls, s, **params), 0, *pair)  # noqa: B023
            assert path.cost <= CLAIM**2


@CLASSES
def test_csr_rows_stay_within_the_claim(cls, monkeypatch):
    pair = replaced(cls, 1, "far")
    pair = [(sp.csr_matrix(X), y) for X, y in pair]
    path = Path(monkeypatch)
    for bounds in (None, ([-1.0, 0.0, -np.inf], [0.0, 1.0, 1.0])):
        path.follow(lambda s: Fit(cls, s, feature_bounds=bounds), 0, *pair)  # noqa: B023
        assert path.cost <= CLAIM**2


# ------------------------------------------------------------------ looks at the targets


def looks(y, **params):
    """How many releases of a fit are of the range of the targets."""
    X = np.random.default_rng(0).normal(size=(len(y), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = Fit(DPLinearRegression, 0, **params).fit(X, y).privacy_
    return sum(line["purpose"] == targets.PURPOSE for line in report.mechanisms)


def atoms(n, far):
    """Most targets are 0, a few are far away in one power-of-two bin: the tables differ in one far target."""
    y = np.zeros(n)
    y[: n // 3] = 1e6
    other = y.copy()
    y[-1], other[-1] = far, 0.0
    X = np.random.default_rng(0).normal(size=(n, 1))
    return (X, y), (X.copy(), other)


@pytest.mark.parametrize("far", [FAR, -FAR, 1e6, 3.0, 1e-9])
@pytest.mark.parametrize("n", [12, *(pytest.param(n, marks=pytest.mark.thorough) for n in (40, 150))])
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_a_second_look_at_the_targets_is_in_the_claim(far, n, epsilon, monkeypatch):
    path, mu = Path(monkeypatch), accounting.gaussian_mu(epsilon, DELTA)
    for pair in (atoms(n, far), atoms(n, far)[::-1]):
        for run in range(2):
            path.follow(lambda s: Fit(DPLinearRegression, s, epsilon=epsilon), run, *pair)
            assert path.cost <= mu**2


def test_the_paths_of_the_second_look_and_of_the_wider_histogram_are_taken(monkeypatch):
    """The releases decide, not the table: a table takes the path, and its neighbour follows."""
    rng = np.random.default_rng(0)
    set_defaults(monkeypatch, choice__min_effective_n=75.0)
    hidden = 2.0 ** rng.uniform(-25, 40, size=150)
    # Bins twice, and no histogram: nothing was found, and the rest is spent on looks.
    assert looks(hidden, epsilon=0.5) == 3
    X, other = rng.normal(size=(150, 1)), np.append(FAR, hidden[1:])
    path = Path(monkeypatch)
    path.follow(lambda s: Fit(DPLinearRegression, s, epsilon=0.5), 0, (X, hidden), (X, other))
    assert 0.0 < path.cost <= accounting.gaussian_mu(0.5, DELTA) ** 2
    path.place = None  # record again
    honest, taken = targets.released_spread, []
    monkeypatch.setattr(targets, "released_spread", lambda *args: taken.append(args[4]) or honest(*args))
    apart = np.where(rng.random(3000) < 0.6, 1e-3 * rng.normal(size=3000), 1e6)
    assert looks(apart) >= 3
    assert max(float(half_width[0]) for half_width in taken) >= 1e6 / 2


# ------------------------------------------------------------------ many runs


class OfFew:
    """A fit of few records with public ends of the targets: the new path, without the table's checks."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, y):
        records = PrivateRecords(np.zeros((len(y), 1)), y, fit_intercept=True)
        session = PrivacySession(records, epsilon=EPSILON, delta=DELTA, random_state=self.seed)
        plan = MomentsMethod(y_bounds=(0.0, 1.0), constant=True)
        regression.moment_regression(session, records, plan)


RUNS, TWIN_RUNS = 500, 150
FEW_PAIR, LEAST_PAIR = (tuple((np.append(end, np.full(n - 1, 0.5)),) for end in (0.0, 1.0)) for n in (20, 6))


def test_a_constant_with_public_bounds_gives_away_its_claim_and_no_more(monkeypatch):
    """Exact along each path: no statistics."""
    path = Path(monkeypatch)
    for run in range(5):
        path.follow(OfFew, run, *FEW_PAIR)
        assert 0.99 * CLAIM**2 <= path.cost <= CLAIM**2


def attacked(monkeypatch, runs):
    """Samples of the log likelihood ratio under both tables."""
    path, samples = Path(monkeypatch), []
    for side, pair in enumerate((LEAST_PAIR, LEAST_PAIR[::-1])):
        sign = 1 - 2 * side
        samples.append([sign * path.follow(OfFew, 2 * k + side, *pair) for k in range(runs)])
    return [np.array(part) for part in samples]


@pytest.mark.thorough
def test_a_constant_with_public_bounds_stays_below_its_claim(monkeypatch):
    """False alarm below 1e-6: two bounds of 2.5e-7 at a threshold that no run decides."""
    found = mu_lower(*attacked(monkeypatch, RUNS), 0.0)
    assert 0.6 * CLAIM <= found <= CLAIM


def test_half_the_noise_is_caught(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda *args: honest(*args) // 2)
    assert mu_lower(*attacked(monkeypatch, TWIN_RUNS), 0.0) > CLAIM


def test_four_times_the_budget_is_seen_exactly(monkeypatch):
    """Half the noise by the plan, with the recheck of the ledger switched off."""
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    path = Path(monkeypatch)
    path.follow(OfFew, 0, *FEW_PAIR)
    assert path.cost > CLAIM**2


# ------------------------------------------------------------------ a sweep of adversarial tables


def column(rng, n):
    """A column or targets of a kind that hurts."""
    x = rng.normal(size=n)
    kinds = [
        x * 10.0 ** rng.integers(-8, 9), np.zeros(n), np.full(n, 10.0 ** rng.integers(-12, 13)),
        (rng.random(n) < 0.02).astype(float), np.append(FAR, x[1:]), FAR * np.sign(x), np.exp(2.5 * x),
        np.where(rng.random(n) < 0.03, 9999.0, x), 1e6 + x * 1e-6, np.where(rng.random(n) < 0.5, 0.0, 1e9 * x),
        np.full(n, 5e-324), rng.standard_cauchy(n), np.clip(x, -1, 1) * 1.7e308,
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]


def a_fit(rng):
    """An automatic estimator with public numbers that fit the table or do not, and what it is fitted to."""
    n, d = int(10 ** rng.uniform(0.7, 3.7)), int(rng.choice([1, 2, 5]))
    X, csr = np.column_stack([column(rng, n) for _ in range(d)]), rng.random() < 0.3
    params = {
        "epsilon": float(np.exp(rng.uniform(np.log(0.05), np.log(8.0)))),
        "delta": 1e-5,
        "fit_intercept": bool(rng.integers(2)),
        "adjacency": ["replace-one", "zero-out", "add-remove"][rng.integers(3)],
    }
    if params["adjacency"] == "add-remove":
        params["n_public"] = int(max(2, n * rng.choice([0.5, 1.0, 2.0])))
    if rng.random() < 0.3:
        size = 10.0 ** rng.integers(-6, 7, d)
        low = np.where(rng.random(d) < 0.3, -np.inf, -size * rng.integers(2, size=d))
        high = np.where(rng.random(d) < 0.3, np.inf, size)
        shift = 0.0 if csr else float(rng.choice([0.0, 1e4])) * size
        params["feature_bounds"] = (low + shift, high + shift)
    groups = rng.integers(0, max(2, n // 4), n) if rng.random() < 0.3 else None
    params["unit"] = "record" if groups is None else "group"
    cls = DPLogisticRegression if rng.random() < 0.4 else DPLinearRegression
    y = rng.integers(0, 2, n) if cls is DPLogisticRegression else column(rng, n)
    if cls is DPLinearRegression and rng.random() < 0.3:
        size = 10.0 ** rng.integers(-6, 7)
        shift = float(rng.choice([0.0, 1e3, 1e8])) * size
        params["y_bounds"] = (shift - size * rng.integers(2), shift + size)
    return Fit(cls, 0, **params), (sp.csr_matrix(X) if csr else X), y, groups


def swept(monkeypatch, seeds):
    """Fit adversarial tables; every plan must have a share that is left, and every model must be finite."""
    honest, least = BudgetSplit.take, []

    def plan(self, share, purpose, releases=1):
        assert 0.0 < share <= self.left + 1e-12, purpose
        least.append(self.left)
        return honest(self, share, purpose, releases)

    monkeypatch.setattr(BudgetSplit, "take", plan)
    for seed in seeds:
        fit, X, y, groups = a_fit(np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit.fit(X, y, groups)
        report = model.privacy_  # made after the recheck of the ledger
        spent = sum((line["sensitivity"] / line["noise_std"]) ** 2 for line in report.mechanisms)
        mu = accounting.gaussian_mu(model.epsilon, model.delta)
        assert 0.0 < spent <= mu**2
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict(X)).all()
    assert min(least) > 0.0


def test_no_fit_of_an_adversarial_table_raises_or_spends_more_than_its_claim(monkeypatch):
    swept(monkeypatch, range(40))


@pytest.mark.slow
def test_thousands_of_adversarial_tables(monkeypatch):
    monkeypatch.undo()  # also the constants that few records get
    swept(monkeypatch, range(1000, 4000))


def test_the_sweep_sees_a_budget_that_is_half_too_large(monkeypatch):
    """By the recheck of the ledger, and without it by the sum over the ledger."""
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 1.5 * calibrate(ledger))
    with pytest.raises(PrivacyAccountingError):
        swept(monkeypatch, range(3))
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    with pytest.raises(AssertionError):
        swept(monkeypatch, range(3))
