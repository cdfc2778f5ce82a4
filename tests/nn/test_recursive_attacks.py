"""An adversary who sees every release of a net's fit by recursive momentum.

A fit is recorded. Then the fit of a neighbouring data set is given the same releases, one after the other. So it
takes the same path, and the difference of what it would have released is what the record moved. The noise is
measured over seeds, with an exact bound for normal numbers. Together they bound from below what the best adversary
can claim. The record's gradient grows in each step: both clips are reached, in nearly one direction.
The mutants are the shipped code with one thing replaced.
"""

import copy
import dataclasses
import functools
import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta, binom, chi2

from skdp import DPNetworkClassifier, DPNetworkRegressor
from skdp.exceptions import PrivacyAccountingError
from skdp.fitting import recursive
from skdp.fitting.recursive import RecursiveMean
from skdp.nn import SGD, Dense, Flatten, RecursiveMomentum, Sequential
from skdp.nn.task import NetTask
from skdp.privacy import BoundedStatistic, PrivateRecords, accounting
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.session import base as session_base
from skdp.privacy.session.base import MinibatchSampler
from tests.kinds import quick_alone
from tests.privacy import audit

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("one_calibration")]

STEPS, RUNS, N, EPSILON, DELTA = 5, 20, 8, 12.0, 1e-5
C1, C2, G = 0.1, 0.05, 0.5
RADIUS = (1 - G) * C2 + G * C1
HONEST = gaussian_release.gaussian


@pytest.fixture(scope="module")
def one_calibration():
    """Fits by the hundred with one calibration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield


class Tape:
    """The releases of as many numbers as the net has, recorded and played back.

    Attributes
    ----------
    events : list
        What `gaussian_release.gaussian` returned.
    exact : list of ndarray
        What the last fit would have released without noise.
    """

    def __init__(self, monkeypatch, size):
        self.events, self.exact, self.playing, Tape.last = [], [], False, self

        def gaussian(bounded, drawn_with, stream):
            if bounded.size != size:
                return HONEST(bounded, drawn_with, stream)
            exact = bounded._value.on_grid(drawn_with[0]) * drawn_with[0]
            self.exact.append(exact)
            if not self.playing:
                self.events.append(HONEST(bounded, drawn_with, stream))
            return copy.deepcopy(self.events[len(self.exact) - 1])  # a session takes its rows apart

        monkeypatch.setattr(gaussian_release, "gaussian", gaussian)

    def fit(self, model, data, *, playing):
        self.exact, self.playing = [], playing
        if not playing:
            self.events = []
        try:
            model.fit(*data[:2], **({"groups": data[2]} if len(data) > 2 else {}))
        except PrivacyAccountingError:  # the recheck finds a mutant; what it released is out
            assert len(self.exact) == STEPS

    def noises(self):
        """Noise that was drawn, of the last fit."""
        events = self.events[: len(self.exact)]
        return [released - exact for (released, _), exact in zip(events, self.exact, strict=True)]


@pytest.fixture
def shown(monkeypatch):
    """The least and the largest lower bound of epsilon over seeds, for a pair; false alarms below 1e-6."""

    def bounds(cls, start, low, high, rate, **params):
        tape, squares, moves = Tape(monkeypatch, start.size), [], []
        scale = np.array([C1] + [RADIUS] * (STEPS - 1)) / N
        for seed in range(RUNS):
            model = cls(
                epsilon=EPSILON, delta=DELTA, max_iter=STEPS, batch_size=N, clip_norm=C1, learning_rate=rate,
                optimizer=SGD(momentum=0.0, schedule="constant"), parameters_init=start, random_state=seed,
                gradient_estimator=RecursiveMomentum(momentum=G, clip_diff_norm=C2, initial_batch_size=N),
                **params,
            )  # fmt: skip
            tape.fit(model, low, playing=False)
            before = tape.exact
            squares += [(z / s) ** 2 for z, s in zip(tape.noises(), scale, strict=True)]
            tape.fit(model, high, playing=True)
            change = [np.linalg.norm(b - a) for a, b in zip(before, tape.exact, strict=True)]
            moves.append(np.sum((change / scale) ** 2))
        z = np.sqrt(np.sum(squares) / chi2.ppf(audit.ALARM, RUNS * STEPS * start.size))
        return tuple(accounting.gaussian_epsilon(np.sqrt(move) / z, DELTA) for move in (min(moves), max(moves)))

    return bounds


# Without a public range images are taken as they are, so that a record can be large.
NET = {"network": Sequential([Flatten(), Dense(1), Dense(2)]), "image_shape": (1, 1), "classes": (0, 1)}
# The softmax is saturated: a record of class 0 has gradient 0, so it is an absent one. Records of class 1 move the
# first weight and the two after it, and the gradients of these grow with them.
START = np.array([0.1, 0.0, -0.1, 0.1, 1e6, -1e6])


def table(value, label, rows=1):
    """The first unit's ``rows`` rows hold this number and label; of all others 10 and class 1."""
    X, y = np.full((rows * N, 1), 10.0), np.ones(rows * N, dtype=int)
    X[:rows], y[:rows] = value, label
    return (X, y) if rows == 1 else (X, y, np.arange(rows * N) // rows)


PAIRS = {
    "zero-out": (table(0.0, 0), table(1e3, 1), {}),
    "replace-one": (table(-1e3, 1), table(1e3, 1), {"adjacency": "replace-one"}),
    "groups": (table(0.0, 0, 2), table(1e3, 1, 2), {"unit": "group"}),
    "one-by-one": (table(0.0, 0), table(1e3, 1), {"clipping": "one-by-one"}),
}
each_pair = pytest.mark.parametrize(
    "name", quick_alone(["replace-one", "one-by-one"], PAIRS, pytest.mark.thorough)
)


def attack(shown, name):
    low, high, params = PAIRS[name]
    return shown(DPNetworkClassifier, START, low, high, 1.0, **NET, **params)


@each_pair
def test_a_record_comes_near_the_claim_and_stays_below(shown, name):
    least, largest = attack(shown, name)
    assert 0.6 * EPSILON <= least <= largest <= EPSILON


@each_pair
def test_half_the_noise_is_caught(shown, name, monkeypatch):
    honest = grid.gaussian_grid
    monkeypatch.setattr(grid, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z / 2, *rest))
    assert attack(shown, name)[0] > EPSILON


def without_the_second_clip(monkeypatch):
    """The difference of the gradients as it is, in a sum that takes the length of its vectors on trust."""
    monkeypatch.setattr(
        recursive, "factors",
        lambda parts, norm, of=recursive.factors: np.ones(len(parts[0])) if norm == C2 else of(parts, norm),
    )  # fmt: skip


def trusting(monkeypatch):
    honest = PrivateRecords.gradient_sum

    def gradient_sum(records, function, clip_norm, **more):
        if clip_norm == C1:  # the first release
            return honest(records, function, clip_norm, **more)
        source = honest(records, function, 1e3, **more)._value
        return BoundedStatistic.from_source(source, (more["size"],), l2=clip_norm)

    monkeypatch.setattr(PrivateRecords, "gradient_sum", gradient_sum)


@pytest.mark.parametrize(
    "name", ["replace-one", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("zero-out", "groups"))]
)
def test_the_second_clip_left_out_is_caught_if_the_sum_does_not_clip(shown, name, monkeypatch):
    without_the_second_clip(monkeypatch)
    assert attack(shown, name)[1] <= EPSILON  # the sum clips the whole vector
    trusting(monkeypatch)
    assert attack(shown, name)[0] > EPSILON


def test_a_difference_that_is_not_paid_for_is_caught(shown, monkeypatch):
    trusting(monkeypatch)
    monkeypatch.setattr(RecursiveMean, "norm", G * C1)
    assert attack(shown, "zero-out")[0] > EPSILON


# ------------------------------------------------------------------ an iterate that was not released

LINE = {"network": Sequential([Flatten(), Dense(1)]), "image_shape": (1, 20), "y_bounds": (-1, 1)}
RATE = 1e-6


def cancelling(target):
    """The others' gradients cancel, and all of them change by the same if the weight does."""
    X, y = np.zeros((N, 20)), np.tile([-1.0, 1.0], N // 2)
    X[:, 0], y[0] = 1e4, target
    return X, y


def line_attack(shown):
    pair = cancelling(-1.0), cancelling(1.0)
    return shown(DPNetworkRegressor, np.zeros(21), *pair, RATE, **LINE, adjacency="replace-one")


def test_a_released_iterate_gives_others_nothing_of_the_record(shown):
    assert line_attack(shown)[1] <= EPSILON


def test_an_iterate_that_was_not_released_is_caught(shown, monkeypatch):
    """The step before starts from where its gradient without noise would have led."""
    honest = NetTask.gradients_at

    def gradients_at(task, method):
        at, calls = honest(task, method), []

        def of(theta):
            calls.append(theta)
            step, previous = divmod(len(calls), 2)  # of calls 1; 2, 3; 4, 5; the second of a step
            if previous and step >= 2:
                theta = theta + RATE * Tape.last.noises()[step - 2]
            return at(theta)

        return of

    monkeypatch.setattr(NetTask, "gradients_at", gradients_at)
    assert line_attack(shown)[1] > EPSILON


# ------------------------------------------------------------------ Poisson batches

MANY, BATCH, FIRST, LOW_EPSILON, HIGH_DELTA = 40, 10, 20, 3.0, 1e-2


def many(value, label):
    """As `table`, with 40 records."""
    X, y = np.full((MANY, 1), 10.0), np.ones(MANY, dtype=int)
    X[0], y[0] = value, label
    return X, y


def best_adversary(rates, moves, delta, draws=400_000):
    """Epsilon at ``delta`` from releases of N(0, 1), each of which a record moves with a probability."""
    rng = np.random.default_rng(0)
    found = []
    for present in (True, False):
        loss = np.zeros(draws)
        for rate, move in zip(rates, moves, strict=True):
            x = rng.normal(size=draws) + present * move * (rng.random(draws) < rate)
            ratio = np.log1p(rate * np.expm1(x * move - move**2 / 2))
            loss += ratio if present else -ratio
        found.append(brentq(lambda e, t=loss: np.maximum(0, 1 - np.exp(e - t)).mean() - delta, 0, 99))
    return max(found)


@pytest.fixture
def shown_by_batches(monkeypatch):
    """The lower bound of epsilon from batches, moves and noise, and whether batches are fair; alarms < 1e-6."""
    units, honest = [], MinibatchSampler.units

    def drawn(sampler, plan, count):
        if Tape.last.playing:
            return units[len(Tape.last.exact)]
        units.append(honest(sampler, plan, count))
        return units[-1]

    monkeypatch.setattr(MinibatchSampler, "units", drawn)

    def bound(runs=60):
        tape = Tape(monkeypatch, START.size)
        expected = np.array([FIRST] + [BATCH] * (STEPS - 1))
        scale = np.array([C1] + [RADIUS] * (STEPS - 1)) / expected
        squares, sizes, moved = [], np.zeros(STEPS), [[] for _ in range(STEPS)]
        own, shared = np.zeros(STEPS), np.zeros(STEPS - 1)
        for seed in range(runs):
            units.clear()
            model = DPNetworkClassifier(
                epsilon=LOW_EPSILON, delta=HIGH_DELTA, max_iter=STEPS, batch_size=BATCH, clip_norm=C1,
                learning_rate=1.0, optimizer=SGD(momentum=0.0, schedule="constant"), parameters_init=START,
                random_state=seed,
                gradient_estimator=RecursiveMomentum(momentum=G, clip_diff_norm=C2, initial_batch_size=FIRST),
                **NET,
            )  # fmt: skip
            tape.fit(model, many(0.0, 0), playing=False)
            assert len(units) == STEPS
            own += [0 in found for found in units]
            shared += [len(np.intersect1d(a, b)) for a, b in itertools.pairwise(units)]
            sizes += [len(found) for found in units]
            before = tape.exact
            squares += [(z / s) ** 2 for z, s in zip(tape.noises(), scale, strict=True)]
            tape.fit(model, many(1e3, 1), playing=True)
            change = [np.linalg.norm(b - a) for a, b in zip(before, tape.exact, strict=True)]
            for t in range(STEPS):
                assert (change[t] > 0) == (0 in units[t])
                if change[t]:
                    moved[t].append(change[t] / scale[t])
        z = np.sqrt(np.sum(squares) / chi2.ppf(audit.ALARM / 2, runs * STEPS * START.size))
        # This record is drawn as often as all others, and batches are drawn apart.
        together = expected[1:] * expected[:-1] / MANY**2
        fair = all(
            (binom.ppf(audit.ALARM / (4 * STEPS), n, rate) <= count).all()
            and (count <= binom.isf(audit.ALARM / (4 * STEPS), n, rate)).all()
            for count, n, rate in ((own, runs, expected / MANY), (shared, runs * MANY, together))
        )
        # All batches after the first one are.
        parts = np.array([sizes[0], *[sizes[1:].sum()] * (STEPS - 1)])
        trials = runs * MANY * np.array([1] + [STEPS - 1] * (STEPS - 1))
        rates = beta.ppf(audit.ALARM / 4, parts, trials - parts + 1)
        return best_adversary(rates, [min(each) / z for each in moved], HIGH_DELTA), fair

    return bound


@pytest.mark.thorough
def test_poisson_batches_come_near_the_claim_and_stay_below(shown_by_batches):
    found, fair = shown_by_batches()
    assert fair
    assert 0.6 * LOW_EPSILON <= found <= LOW_EPSILON


@pytest.mark.thorough
def test_half_the_noise_on_poisson_batches_is_caught(shown_by_batches, monkeypatch):
    honest = grid.gaussian_grid
    monkeypatch.setattr(grid, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z / 2, *rest))
    assert shown_by_batches()[0] > LOW_EPSILON


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["always", "one batch"])
def test_unfair_batches_are_caught(way, shown_by_batches, monkeypatch):
    """The record is in every batch, or each step has the batch of the one before."""
    honest, last = session_base.draw_units, []

    def draw_units(*given):
        found = honest(*given)
        if way == "always":
            return np.union1d(found, 0)
        if not Tape.last.exact:  # the first step of a fit
            last[:] = [found]
        return last[0]

    monkeypatch.setattr(session_base, "draw_units", draw_units)
    assert not shown_by_batches(runs=20)[1]


@pytest.mark.thorough
def test_batches_twice_as_large_as_paid_for_are_caught(shown_by_batches, monkeypatch):
    honest = session_base.draw_units
    monkeypatch.setattr(
        session_base, "draw_units",
        lambda plan, *rest: honest(dataclasses.replace(plan, batch_size=2 * plan.batch_size), *rest),
    )  # fmt: skip
    assert shown_by_batches()[0] > LOW_EPSILON
