"""Simulated owners: a round of gradient perturbation beside one pass over the rows, and one secure opening."""

import numpy as np

import skdp
from benchmarks.common import best_of, ratio
from skdp.losses import LogisticLoss
from skdp.multiparty import Owners
from skdp.multiparty.engine.loopback import LoopbackEngine
from skdp.privacy import PrivacySession, sum_of_owners

ROWS, FEATURES, OWNERS = 50_000, 122, 1000  # KDD Cup 99 in Wang (2021)
ROUNDS = 20
VALUES, SIGMA = 104, 2.0**14


class PlainRounds:
    """Dense rows of 1,000 owners of equal size, in one process."""

    timeout = 300

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(ROWS, FEATURES)) / np.sqrt(FEATURES)
        self.y = (self.X[:, 0] > 0).astype(np.int64)
        self.holders = np.arange(ROWS) * OWNERS // ROWS
        self.records = Owners(self.X, self.y.astype(np.float64), owners=self.holders, pooled=True, n_classes=2)
        self.theta = rng.normal(size=FEATURES)
        self.session = PrivacySession(epsilon=0.5, delta=1e-6)
        self.plan = self.session.plan_gaussian(10_000)  # more rounds than are measured
        self.round()

    def round(self):
        """Gradients clipped, weighted, rounded and summed, and the noise."""
        means = self.records.mean_gradient(LogisticLoss(), self.theta, clip_norm=1.0)
        return self.session.gaussian(sum_of_owners(means), self.plan)

    def time_fit(self):
        """20 rounds, with reading the rows and dividing them among their owners."""
        skdp.MPCGradientPerturbationClassifier(
            classes=(0, 1), delta=1e-6, epsilon=0.5, alpha=1e-3, max_iter=ROUNDS
        ).fit(self.X, self.y, owners=self.holders)

    def track_round_in_passes(self):
        """A round's time over that of X @ theta, one thread each: both read the rows once."""
        return ratio(self.round, lambda: self.X @ self.theta)

    track_round_in_passes.unit = "times X @ theta"


class OpeningByShares:
    """Three servers and three owners over loopback sockets: 104 values with Gaussian noise."""

    timeout = 120

    def setup(self):
        self.engine = LoopbackEngine(3).__enter__()
        self.integers = [np.arange(VALUES) + i for i in range(3)]
        self.time_noise_and_opening()

    def teardown(self):
        self.engine.close()

    def time_noise_and_opening(self):
        self.engine.prepare(1, VALUES, SIGMA)
        self.engine.open(self.integers, SIGMA)

    def track_seconds(self):
        """Least of a few; the goal is 0.2 s."""
        return best_of(self.time_noise_and_opening, repeats=5)

    track_seconds.unit = "s"
