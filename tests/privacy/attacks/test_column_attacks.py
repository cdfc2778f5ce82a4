"""Released statistics of columns and the scalers, against an adversary who sees every release.

The adversary holds both data sets of a pair. He hears every question that a fit asks and every answer. Of each
question he computes the exact statistics v0 and v1 of the two data sets, and he adds up the logarithms of the
likelihood ratios, ``(released - (v0 + v1) / 2) (v1 - v0) / noise^2``. No other attack is stronger. On a pair that
moves every release by its whole sensitivity this is Gaussian, with means exactly mu standard deviations apart.

The same numbers tell without sampling what a pair costs: the sum of ``(v1 - v0)^2 / noise^2`` is its mu^2.
"""

import functools
import math

import numpy as np
import pytest
import scipy.sparse as sp

import skdp.privacy.mechanisms
import skdp.statistics.column_moments
from skdp import DPQuantileScaler, DPStandardScaler
from skdp.exceptions import PrivacyAccountingError
from skdp.privacy import PrivateRecords, accounting, noise
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.session import claim
from skdp.privacy.session.ledger import Ledger
from skdp.statistics import count, describe, histogram, mean, quantile, std
from tests.privacy.audit import shown

pytestmark = [
    pytest.mark.usefixtures("one_calibration"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]
EPSILON, DELTA, N = 16.0, 1e-5, 60
MU = accounting.gaussian_mu(EPSILON, DELTA)
RNG = np.random.default_rng(0)
ASKED = {
    "column_counts": PrivateRecords, "column_sums": PrivateRecords, "histogram": PrivateRecords,
    "column_moments": skdp.statistics.column_moments,
}  # fmt: skip


def scaler(cls, **params):
    def release(X, groups=None, **privacy):
        return cls(**params, **privacy).fit(X, groups=groups)

    return release


def described(X, **privacy):
    return describe(X, bounds=(-1, 1), **privacy)


def crowd(low, high, columns):
    """The other records of a pair."""
    return RNG.uniform(low, high, size=(N - 1, columns))


def points(*values):
    """Other records at a few points: searches ask about points between one of them and 1e9 again and again."""
    return RNG.permuted(np.tile(np.resize(values, (N - 1, 1)), 2), axis=0)


# What is released, the other records, and two values of one record: it moves nearly every release all the way.
CASES = {
    "mean": (functools.partial(mean, bounds=(-1, 1)), crowd(-1, 1, 3), -9.0, 9.0),
    "mean in a released window": (mean, points(1.0, -1.0, 1.0, -1.0, 1.0), -1e9, 1e9),
    "quantile": (functools.partial(quantile, bounds=(0, 2)), crowd(0.9, 1.1, 2), -9.0, 9.0),
    "quantile of any size": (functools.partial(quantile, q=0.7), crowd(0.9, 1.1, 2), -0.5, 1e9),
    "mean of what is there": (
        functools.partial(mean, bounds=(-1, 1), skipna=True), crowd(-1, 1, 3), -9.0, 9.0,
    ),
    "quantiles": (
        functools.partial(quantile, q=[0.3, 0.6], bounds=(0, 2)), crowd(0.9, 1.1, 2), -9.0, 9.0,
    ),
    "std": (functools.partial(std, bounds=(-1, 1)), crowd(-1, 1, 3), -9.0, 9.0),
    "describe": (described, crowd(-0.1, 0.1, 3), -9.0, 9.0),
    "count": (functools.partial(count, bounds=(0, math.inf)), crowd(-1, 1, 3), -1.0, 1.0),
    "histogram": (functools.partial(histogram, bins=[-1, 0, 1]), crowd(-1, 1, 3), -0.5, 0.5),
    "histogram in a released window": (histogram, points(1.0, -1.0, 1.0, -1.0, 1.0), -0.9, 0.9),
    "DPStandardScaler": (scaler(DPStandardScaler), points(1.0, -1.0, 1.0, -1.0, 1.0), 0.3, 1e9),
    "DPStandardScaler in bounds": (
        scaler(DPStandardScaler, bounds=(-1, 1)), crowd(-1, -0.9, 3), -1.0, 9.0,
    ),
    "DPStandardScaler of CSR": (scaler(DPStandardScaler), crowd(0.9, 1.1, 2), 0.0, 1e9),
    "DPQuantileScaler": (scaler(DPQuantileScaler, quantile=0.7), points(1.0, -1.0, 1.8, -1.0, 1.8), 0.7, 1e9),
    "DPQuantileScaler about 0": (
        scaler(DPQuantileScaler, with_centering=False), crowd(0.9, 1.1, 2), 0.0, 1e9,
    ),
}  # fmt: skip
each_case = pytest.mark.parametrize("name", list(CASES))


class Ear:
    """Hears the questions and the answers of fits, and the noise of the answers."""

    def __init__(self, monkeypatch):
        self.question, self.heard = {}, []
        for name, owner in ASKED.items():
            monkeypatch.setattr(owner, name, self.asking(owner, name))
        honest = gaussian_release.gaussian

        def gaussian(bounded, drawn_with, stream):
            released, row = honest(bounded, drawn_with, stream)
            self.heard.append((self.question[id(bounded)][1], released, row["noise_std"]))
            return released, row

        monkeypatch.setattr(gaussian_release, "gaussian", gaussian)

    def asking(self, owner, name):
        honest = getattr(owner, name)

        def ask(records, *args, **options):
            made = honest(records, *args, **options)
            self.question[id(made)] = made, lambda other: honest(other, *args, **options)
            return made

        return ask

    def ratios(self, release, data, pair, **privacy):
        """The log likelihood ratio of one run, and the mu^2 that the pair costs on its path."""
        self.question, self.heard = {}, []
        release(**data, **privacy)
        ratio = cost = 0.0
        for ask, released, sigma in self.heard:
            v0, v1 = (ask(records)._value.plain() for records in pair)
            ratio += float(np.sum((released - (v0 + v1) / 2) * (v1 - v0))) / sigma**2
            cost += float(np.sum((v1 - v0) ** 2)) / sigma**2
        return ratio, cost


def neighbours(name, unit="record", adjacency="replace-one"):
    """Two data sets, as arguments of a release and as records; None takes the unit away."""
    _, others, low, high = CASES[name]
    made = []
    for rows, value in ((1, low), (7, high)):
        rows = rows if unit == "group" else 1
        if adjacency != "replace-one" and value == low:
            rows = 0
        X = np.vstack([others, np.full((rows, others.shape[1]), value)])
        groups = np.r_[np.repeat(np.arange((N - 1) // 3), 3), np.full(N - 1 - (N - 1) // 3 * 3, 0)]
        codes = np.r_[groups, np.full(rows, groups.max() + 1)] if unit == "group" else None
        n_public = None if adjacency == "replace-one" else N
        table = sp.csr_matrix(X) if "CSR" in name else X
        data = {"X": table, **({} if codes is None else {"groups": codes})}
        made.append((data, PrivateRecords(table, groups=codes, n_public=n_public)))
    (one, r0), (two, r1) = made
    return one, two, (r0, r1)


def costs(name, monkeypatch, **options):
    """The mu that the pair really costs on the paths of a few runs, over the claimed one."""
    ear = Ear(monkeypatch)
    adjacency, unit = options.get("adjacency", "replace-one"), options.get("unit", "record")
    one, two, pair = neighbours(name, unit, adjacency)
    privacy = dict(epsilon=EPSILON, delta=DELTA, adjacency=adjacency, unit=unit)
    privacy["n_public"] = None if adjacency == "replace-one" else N
    found = [
        ear.ratios(CASES[name][0], data, pair, random_state=seed, **privacy)[1]
        for seed, data in enumerate((one, two, one, two))
    ]
    return [math.sqrt(cost) / MU for cost in found]


@each_case
@pytest.mark.parametrize(
    "options",
    [
        {},
        pytest.param({"unit": "group"}, marks=pytest.mark.thorough),
        pytest.param({"adjacency": "zero-out"}, marks=pytest.mark.thorough),
        pytest.param({"adjacency": "add-remove"}, marks=pytest.mark.thorough),
        {"adjacency": "add-remove", "unit": "group"},
    ],
    ids=["replaced", "replaced group", "zero-out", "add-remove", "group add-remove"],
)
def test_a_bad_pair_costs_most_of_the_claim_and_no_more(name, options, monkeypatch):
    found = costs(name, monkeypatch, **options)
    assert max(found) <= 1 + 1e-9
    if not options:
        assert max(found) >= 0.6


@each_case
def test_the_mutant_with_half_the_noise_costs_more_than_it_claims(name, monkeypatch):
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    with pytest.raises(PrivacyAccountingError):  # the recheck sees it by itself
        costs(name, monkeypatch)
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    assert max(costs(name, monkeypatch)) > 1.2


def attack(name, monkeypatch, runs):
    """Log likelihood ratios of runs on both data sets."""
    ear = Ear(monkeypatch)
    one, two, pair = neighbours(name)
    privacy = dict(epsilon=EPSILON, delta=DELTA)
    return [
        np.array(
            [
                ear.ratios(CASES[name][0], data, pair, random_state=2 * run + side, **privacy)[0]
                for run in range(runs)
            ]
        )
        for side, data in enumerate((one, two))
    ]


def halved(monkeypatch):
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, stream: honest(sigma, size, stream) // 2)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name != "mean" else name for name in CASES]
)
def test_the_adversary_shows_most_of_the_claim_and_no_more(name, monkeypatch):
    runs = {"mean": 500, "count": 500, "DPStandardScaler": 2000, "DPQuantileScaler": 2000}
    found = shown(*attack(name, monkeypatch, runs.get(name, 1000)))
    assert found <= MU
    assert accounting.gaussian_epsilon(found, DELTA) >= 0.6 * EPSILON


@pytest.mark.parametrize(
    "name",
    [
        "mean",
        pytest.param("count", marks=pytest.mark.thorough),
        *(pytest.param(name, marks=pytest.mark.slow) for name in CASES if name not in ("mean", "count")),
    ],
)
def test_the_adversary_catches_the_mutant_with_half_the_noise(name, monkeypatch):
    halved(monkeypatch)
    assert shown(*attack(name, monkeypatch, 500)) > MU
