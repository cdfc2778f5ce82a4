"""Minima perturbation: one solve to a certified gradient norm, on dense and sparse rows."""

import numpy as np

from benchmarks.common import text_like
from skdp import DPAMPClassifier, DPAMPRegressor


class Dense:
    """20,000 rows of 100 features."""

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(20_000, 100))
        signal = self.X @ rng.normal(size=100) / 10
        self.labels, self.targets = (signal > 0).astype(np.int64), signal + rng.normal(size=20_000)
        self.time_classifier()

    def time_classifier(self):
        DPAMPClassifier(classes=[0, 1], row_norm=10.0).fit(self.X, self.labels)

    def time_regressor(self):
        DPAMPRegressor(row_norm=10.0, huber_threshold=1.0).fit(self.X, self.targets)

    def track_score(self):
        """Accuracy on the training rows at epsilon 1, three seeds."""
        fits = [
            DPAMPClassifier(classes=[0, 1], row_norm=10.0, random_state=seed).fit(self.X, self.labels)
            for seed in (0, 1, 2)
        ]
        return float(np.mean([model.score(self.X, self.labels) for model in fits]))


class TextLike:
    """CSR of RCV1's shape."""

    timeout = 300

    def setup(self):
        self.X, self.y = text_like()
        self.time_fit()

    def time_fit(self):
        DPAMPClassifier(classes=[0, 1], row_norm=1.0).fit(self.X, self.y)
