"""The automatic estimator against the best attacker: the likelihood ratio of everything that a whole fit releases.

A fit on one data set is recorded. The same path is then taken with its neighbour: the code is run on the neighbour
while every release returns what was recorded. So for each release the statistics of both data sets are known along
the path, and with them the log likelihood ratio of all that was released together. No statistic separates two data
sets better (Neyman and Pearson). The mutant is the shipped fit with half the noise.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier

import skdp
from skdp import DPLinearRegression, DPLogisticRegression
from skdp.exceptions import PrivacyAccountingError
from skdp.privacy import accounting, noise
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.session import claim
from skdp.privacy.session.ledger import Ledger
from tests.privacy.audit import mu_lower
from tools.defaults.override import set_defaults

EPSILON, DELTA = 6.0, 1e-2
CLAIM = accounting.gaussian_mu(EPSILON, DELTA)
RUNS, TWIN_RUNS = 500, 800
FAR = 1e9


class Path:
    """Records what a fit releases, or gives a neighbour's fit what was recorded.

    Attributes
    ----------
    ratio : float
        log p(all that was released | neighbour) / p(... | own data).
    cost : float
        Sum of (change / standard deviation)^2: mu^2 of what the pair really tells apart along the path.
    """

    def __init__(self, monkeypatch):
        self.honest = gaussian_release.gaussian
        self.events, self.place, self.ratio, self.cost = [], None, 0.0, 0.0
        monkeypatch.setattr(gaussian_release, "gaussian", self.release)

    def release(self, bounded, drawn_with, stream):
        if self.place is None:
            released, line = self.honest(bounded, drawn_with, stream)
            value = bounded._value.on_grid(line["grid"]).astype(float) * line["grid"]
            self.events.append((value, released.copy(), dict(line)))
            return released, line
        value, released, line = self.events[self.place]
        self.place += 1
        other = bounded._value.on_grid(line["grid"]).astype(float) * line["grid"]
        variance = line["noise_std"] ** 2
        near = np.sum((released - value) ** 2) - np.sum((released - other) ** 2)
        self.ratio += float(near) / (2 * variance)
        self.cost += float(np.sum((other - value) ** 2)) / variance
        return released.copy(), dict(line)

    def follow(self, make, run, own, other):
        """Fit ``own``, then take the same path with ``other``."""
        self.events, self.place, self.ratio, self.cost = [], None, 0.0, 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(run).fit(*own)
            self.place = 0
            make(run).fit(*other)
        assert self.place == len(self.events)
        return self.ratio


@pytest.fixture(autouse=True)
def every_step(monkeypatch):
    """The automatic estimator releases a constant for so few records; here it is to release all that it can."""
    set_defaults(
        monkeypatch,
        choice__max_class_noise=np.inf,
        choice__min_effective_n=0.0,
        choice__min_effective_n_per_feature=0.0,
        slopes__min_effective_n=0.0,
    )


def attack(monkeypatch, make, pair, runs):
    """Samples of the log likelihood ratio of the second data set to the first, under each of them."""
    path = Path(monkeypatch)
    low = [path.follow(make, 2 * run, *pair) for run in range(runs)]
    high = [-path.follow(make, 2 * run + 1, *pair[::-1]) for run in range(runs)]
    return np.array(low), np.array(high)


def classifier(seed):
    return DPLogisticRegression(epsilon=EPSILON, delta=DELTA, solver="moments", classes=(0, 1), random_state=seed)


def regressor(seed):
    return DPLinearRegression(epsilon=EPSILON, delta=DELTA, solver="moments", random_state=seed)


def pair(task):
    """The pair that costs most of some hundred that were tried: a record replaced among 200 of one column."""
    X = np.random.default_rng(0).normal(size=(200, 1))
    y = (X[:, 0] > 0).astype(int) if task is classifier else X[:, 0].copy()
    one, two = (X.copy(), y.copy()), (X.copy(), y.copy())
    if task is classifier:
        one[0][0], one[1][0], two[0][0], two[1][0] = -1.0, 1, 0.0, 0
    else:
        one[0][0], one[1][0], two[0][0], two[1][0] = 1.0, -FAR, 3.0, FAR
    return one, two


TASKS = pytest.mark.parametrize("task", [classifier, regressor])


@TASKS
def test_what_the_pair_tells_apart_is_most_of_the_claim_and_no_more(task, monkeypatch):
    """Exact along each path: no statistics, so no false alarms."""
    path, found = Path(monkeypatch), []
    for run in range(5):
        path.follow(task, run, *pair(task))
        assert path.cost <= CLAIM**2
        found.append(accounting.gaussian_epsilon(path.cost**0.5, DELTA))
    assert np.mean(found) >= 0.6 * EPSILON


@pytest.mark.slow
@TASKS
def test_the_fit_stays_below_its_claim(task, monkeypatch):
    """False alarm below 1e-6: two bounds of 2.5e-7 at a threshold that no run decides."""
    found = mu_lower(*attack(monkeypatch, task, pair(task), RUNS), 0.0)
    assert 0.4 * CLAIM <= found <= CLAIM


@pytest.mark.slow
@TASKS
def test_the_mutant_with_half_the_noise_is_caught(task, monkeypatch):
    """Its lines say twice the noise: the attacker's ratio is a quarter of the true one, its sign is right."""
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda *args: honest(*args) // 2)
    assert mu_lower(*attack(monkeypatch, task, pair(task), TWIN_RUNS), 0.0) > CLAIM


@TASKS
def test_the_mutant_with_four_times_the_budget_is_caught(task, monkeypatch):
    """Half the noise by the plan: the same exact figure is above the claim, and the recheck sees it as well."""
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(PrivacyAccountingError):
            task(0).fit(*pair(task)[0])
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    path = Path(monkeypatch)
    path.follow(task, 0, *pair(task))
    assert path.cost > CLAIM**2


def at_the_end(name):
    """The purpose of the last releases, and a fit whose other releases the pair hardly moves."""
    cls = getattr(skdp, name)
    labels = {"classes": (0, 1)} if is_classifier(cls()) else {}
    purpose = "recalibration" if labels else "calibration"
    settings = {"epsilon": EPSILON, "delta": DELTA, **labels, **AT_THE_END[name]}
    return purpose, lambda seed: cls(random_state=seed, **settings)


# Full batches and all features: no batch and no choice is on the path. One round, where their number is drawn.
# Attacks on AdaSSP, two stages and random rounds (test_adassp, test_two_stage, test_attacks_fits) switch the last
# releases off, because their attacker listens to what comes before.
AT_THE_END = {
    "DPGDClassifier": {},
    "DPLogisticRegression": {"solver": "moments"},
    "DPIGHTRegressor": {},
    "DPSGDRegressor": {},
    "DPAdaSSPRegressor": {},
    "DPTwoStageRegressor": {"n_nonzero_coefs": 2},
    "DPRRPSGDClassifier": {"batch_size": 400, "max_iter": 1},
    "DPSRMClassifier": {"classes": (0, 1, 2), "batch_size": 400, "initial_batch_size": 400},
}


@pytest.mark.parametrize("name", AT_THE_END)
def test_what_follows_the_steps_is_in_the_claim(name, monkeypatch):
    """The whole fit with its last releases, exactly; and the mutant with half the noise: four times the mu^2."""
    numbers = {"classes__max_recalibrated_noise": np.inf, "classes__min_recalibrated_effective_n": 0.0}
    set_defaults(monkeypatch, **numbers)
    purpose, make = at_the_end(name)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int) if purpose == "recalibration" else X[:, 0].copy()
    one, two = (X.copy(), y.copy()), (X.copy(), y.copy())
    row, far = ([0.0, 3.0], (1, 0)) if purpose == "recalibration" else ([30.0, 30.0], (FAR, -FAR))
    one[0][0], two[0][0], one[1][0], two[1][0] = row, row, far[0], far[1]
    if name == "DPLogisticRegression":  # its counts of power-of-two bins do not change with the label
        one[0][0], two[0][0] = [-2.0, 0.3], [0.3, 2.0]
    path = Path(monkeypatch)
    path.follow(make, 0, one, two)
    honest = path.cost
    assert 0.5 * CLAIM**2 <= honest <= CLAIM**2
    path.place = None  # record again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = make(0).fit(*one).privacy_
    assert any(line["purpose"] == purpose for line in report.mechanisms)
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(PrivacyAccountingError):
            make(0).fit(*one)
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    path.follow(make, 0, one, two)
    assert path.cost > 2 * honest
    assert path.cost > CLAIM**2
