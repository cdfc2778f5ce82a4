"""The recalibration of net classifiers: probabilities that can be trusted, from records of the net's outputs."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from skdp import DPCNNClassifier, DPMLPClassifier
from skdp.exceptions import UtilityWarning
from skdp.nn import Dense, Sequential, SquaredError, Tanh
from skdp.nn.calibration import released_line
from skdp.nn.inputs import Inputs
from skdp.nn.task import NetTask, Targets
from skdp.privacy import PrivateRecords

pytestmark = pytest.mark.filterwarnings("ignore:random_state is a seed")


def coins(n=4500, k=2, seed=0):
    """Labels that depend a little on one column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-0.3 * X[:, 0]))).astype(int)
    return X, np.where(rng.random(n) < 0.3, 2, y) if k == 3 else y


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("epsilon", [0.5, pytest.param(4.0, marks=pytest.mark.thorough)])
def test_probabilities_are_no_worse_than_frequencies(k, epsilon):
    """A net fits noise with scores of any size; before the recalibration the loss was 1.4 for two classes."""
    X, y = coins(k=k)
    T, t = coins(k=k, seed=1)
    classes = range(k)
    base = log_loss(t, np.tile(np.bincount(y) / len(y), (len(t), 1)))
    alone = []
    for seed in range(2):
        model = DPMLPClassifier(epsilon=epsilon, classes=classes, random_state=seed).fit(X, y)
        assert log_loss(t, model.predict_proba(T)) < base + 0.02
        # The net by itself: what the recalibration is for.
        kept, model.calibration_ = model.calibration_, None
        alone.append(log_loss(t, model.predict_proba(T)))
        assert kept.shape == ((2, 1) if k == 2 else (4, 3))
        assert [row["purpose"] for row in model.privacy_.mechanisms].count("recalibration") >= 3
    assert np.mean(alone) > base + 0.05


@pytest.mark.thorough
def test_a_cnn_is_recalibrated_too():
    rng = np.random.default_rng(0)
    X, y = rng.random((3000, 8, 8)).reshape(3000, -1), rng.integers(0, 2, 3000)
    model = DPCNNClassifier(
        epsilon=4.0, classes=(0, 1), image_shape=(8, 8), input_range=(0, 1), max_iter=40, random_state=0
    ).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < np.log(2) + 0.02


@pytest.mark.parametrize(("n", "words"), [(300, "few for a net"), (1200, "may be worse than the frequencies")])
def test_few_records_are_told_once(n, words):
    """Of the net where it is too large, and else of the probabilities."""
    model = DPMLPClassifier(epsilon=0.5, classes=(0, 1), max_iter=3, random_state=0)
    with pytest.warns(UtilityWarning) as caught:
        model.fit(*coins(n))
    (told,) = (str(w.message) for w in caught if w.category is UtilityWarning)
    assert words in told


def test_without_privacy_nothing_is_recalibrated():
    X, y = coins(200)
    model = DPMLPClassifier(epsilon=np.inf, classes=(0, 1), max_iter=3, random_state=0).fit(X, y)
    assert model.calibration_ is None


def test_mapped_records_are_those_of_the_function():
    """Their sums are those of the mapped rows, one by one; a group adds the mean of its rows."""
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(150, 3)), rng.normal(size=150), np.arange(150) // 10
    seen = []

    def doubled(rows):
        seen.append(len(rows))
        return np.column_stack([2 * rows[:, 0], rows[:, 1]])

    mapped = PrivateRecords(X, y).mapped(doubled, 2, fit_intercept=True)
    assert max(seen) <= 64
    assert (mapped.n_features, mapped.n_parameters, mapped.n_units) == (2, 3, 150)
    total = mapped.clipped_sum(lambda Z, t: Z, 1e3, size=2)
    expected = np.array([2 * X[:, 0].sum(), X[:, 1].sum()])
    np.testing.assert_allclose(total._value.plain(), expected, rtol=1e-6)
    of_groups = PrivateRecords(X, y, groups=groups).mapped(doubled, 2)
    total = of_groups.clipped_sum(lambda Z, t: Z, 1e3, size=2)
    np.testing.assert_allclose(total._value.plain(), expected / 10, rtol=1e-6)


def in_groups(rows, n_groups=400, seed=0):
    """Groups of so many rows each, whose labels one column tells in part."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_groups * rows, 3))
    p = 1 / (1 + np.exp(-2.5 * X[:, 0] - 1.5 * X[:, 1]))
    return X, (rng.random(len(X)) < p).astype(int), np.arange(len(X)) // rows


def test_groups_are_recalibrated_by_the_means_of_their_rows():
    """With weights 1 / m^2 the mean log loss of two fits was 0.56; it is 0.43 for groups of 10 rows."""
    T, t, _ = in_groups(1, 4000, seed=99)
    found = []
    for seed in range(2):
        X, y, groups = in_groups(10, seed=seed)
        model = DPMLPClassifier(epsilon=4.0, unit="group", classes=[0, 1], random_state=seed)
        found.append(log_loss(t, model.fit(X, y, groups=groups).predict_proba(T)))
    assert np.mean(found) < 0.48


def test_the_line_of_groups_is_that_of_their_rows():
    """A group's moments are means of its rows' moments: else the variance of the predictions would be wrong."""
    rng = np.random.default_rng(0)
    t = 0.2 * rng.choice([-1.0, 1.0], 2000)
    of_rows = lines(0.5 * t + 0.1, t, 0.0005, seeds=20)
    repeated = lines(0.5 * t + 0.1, t, 0.0005, seeds=20, rows=8)
    np.testing.assert_allclose(repeated, of_rows, atol=1e-6)


class NoisyMoments:
    """What `released_line` asks of a session, with noise of a given standard deviation."""

    def __init__(self, noise, seed):
        self.noise, self.rng = noise, np.random.default_rng(seed)

    def plan_gaussian(self, *args, **options):
        return None

    def noise_std(self, value, plan):
        return self.noise

    def gaussian(self, value, plan):
        return value._value.plain() + self.noise * self.rng.normal(size=4)


def lines(predictions, targets, noise, seeds=200, rows=None):
    """Slopes and shifts that are released for these predictions; each is a group of so many equal rows."""
    groups = None if rows is None else np.repeat(np.arange(len(targets)), rows)
    predictions, targets = (np.repeat(part, rows or 1) for part in (predictions, targets))
    X = np.column_stack([predictions, targets])
    task = SimpleNamespace(record_outputs=lambda parameters, x: x[:, :1], targets=SimpleNamespace(of=lambda y: y))
    records = PrivateRecords(X, np.asarray(targets), groups=groups)
    return np.array([released_line(NoisyMoments(noise, s), records, task, None, 0.1) for s in range(seeds)])


class Moments(NoisyMoments):
    """Keeps the sum that is released, in integers of 2**-20."""

    def gaussian(self, value, plan):
        self.total = value._value.on_grid(2.0**-20)
        return np.ones(4)


def test_a_replaced_group_moves_the_moments_of_a_line_by_at_most_two_bounds():
    """A net's own numbers, groups of any size, and a group replaced by one of another size."""
    rng = np.random.default_rng(0)
    network = Sequential([Dense(3), Tanh(), Dense(1)]).build((2,))
    flat = network.initialize(rng)
    inputs = Inputs(np.zeros(()), np.ones(()), (-np.inf, np.inf), (2,))
    task = NetTask(network, SquaredError(), inputs, Targets(0.0, 1.0), flat)
    X, y, others = rng.normal(size=(90, 2)), rng.normal(size=90), 1 + np.arange(90) % 7

    def moments(n_rows, value, target):
        session = Moments(0.01, 0)
        records = PrivateRecords(
            np.r_[np.full((n_rows, 2), value), X],
            np.r_[np.full(n_rows, target), y],
            groups=np.r_[np.zeros(n_rows, int), others],
        )
        with np.errstate(all="ignore"):
            released_line(session, records, task, flat, 0.1)
        return session.total

    found = [
        moments(n_rows, value, target)
        for n_rows in (1, 3, 64, 200)
        for value in (0.0, 1e38, -1e308, 5e-324)
        for target in (1.0, -1e308)
    ]
    moved = max(np.linalg.norm((a - b).astype(float)) for a in found for b in found)
    assert 0.1 < moved * 2.0**-20 <= 2 * 2.0 / 8  # a mean over 8 groups


@pytest.mark.parametrize("spread", [0.01, 0.1, 0.3])
def test_a_net_that_learnt_nothing_predicts_the_mean(spread):
    """Predictions that have nothing in common with the targets, and a noise that hides small spreads.

    The errors are seeded. The slope that is released is an error of the noise, and costs slope^2 spread^2 of the
    targets' variance, 0.04. Without the limits half of the lines have a slope.
    """
    rng = np.random.default_rng(0)
    f, t = np.clip(spread * rng.normal(size=2000), -1, 1), 0.2 * rng.choice([-1.0, 1.0], 2000)
    slope, shift = lines(f, t, 0.01).T
    assert (slope > 0).mean() < 0.15
    assert (slope**2).max() * spread**2 < 0.1 * 0.04
    assert np.abs(shift).max() < 0.06


def test_a_net_that_learnt_keeps_its_line():
    rng = np.random.default_rng(0)
    t = 0.2 * rng.choice([-1.0, 1.0], 2000)
    slope, shift = lines(0.5 * t + 0.1, t, 0.0005).T
    np.testing.assert_allclose(slope, 2.0, atol=0.4)
    np.testing.assert_allclose(0.1 * slope + shift, 0.0, atol=0.05)
