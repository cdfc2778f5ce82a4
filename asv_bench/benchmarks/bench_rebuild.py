"""Whole fits beside the arithmetic that they cannot do without, on one thread."""

import warnings

import numpy as np
import scipy.sparse as sp

from benchmarks.common import ratio, text_like
from skdp.linear_model import DPIGHTClassifier, DPSGDClassifier


def quiet_fit(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


class SparseIGHT:
    """50 steps of DP-IGHT on a CSR matrix of RCV1's shape."""

    def setup(self):
        self.X, self.y = text_like()

    def fit(self):
        quiet_fit(
            DPIGHTClassifier(classes=(0, 1), max_iter=50, fit_intercept=False, random_state=0), self.X, self.y
        )

    def track_floor_ratio(self):
        """Time over 50 times (X w, X^T r and d normals); 1.25 is the aim."""
        rng = np.random.default_rng(0)
        d = self.X.shape[1]
        w = rng.normal(size=d)

        def floor():
            for _ in range(50):
                self.X.T @ (self.X @ w)
                rng.normal(size=d)

        return ratio(self.fit, floor, repeats=3)

    track_floor_ratio.unit = "times the floor"


class StochasticEpoch:
    """An epoch of DP-SGD: 1,000,000 x 100, batches of 1,000."""

    timeout = 300

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(1_000_000, 100))
        self.y = (self.X[:, 0] > 0).astype(np.int64)
        self.batches = [np.flatnonzero(rng.random(len(self.X)) < 1e-3) for _ in range(1000)]

    def fit(self):
        quiet_fit(
            DPSGDClassifier(
                classes=(0, 1), max_iter=1000, batch_size=1000, clip_norm=1.0, learning_rate=0.1,
                delta=1e-7, fit_intercept=False, random_state=0,
            ),
            self.X,
            self.y,
        )  # fmt: skip

    def track_numpy_ratio(self):
        """Time over that of NumPy's clipped gradients of as many batches; 0.7 is the aim."""
        w = np.full(100, 0.01)

        def reference():
            for rows in self.batches:
                batch = self.X[rows]
                slope = 1 / (1 + np.exp(-(batch @ w))) - self.y[rows]
                norms = np.sqrt(np.einsum("ij,ij->i", batch, batch))
                batch.T @ (slope * np.minimum(1, 1 / (np.abs(slope) * norms)))

        return ratio(self.fit, reference, repeats=3)

    track_numpy_ratio.unit = "times NumPy"


class ManyClasses:
    """The default fit of 105 classes x 55,197 sparse columns, 7,200 rows; 10 s is the aim."""

    timeout = 600

    def setup(self):
        rng = np.random.default_rng(0)
        n, d, per_row = 7200, 55197, 77
        stride = d // per_row
        columns = np.arange(per_row) * stride + rng.integers(0, stride, size=(n, per_row))
        pointers = np.arange(0, n * per_row + 1, per_row)
        values = np.full(columns.size, 1 / np.sqrt(per_row))
        self.X = sp.csr_matrix((values, columns.ravel(), pointers), shape=(n, d))
        self.y = rng.integers(0, 105, n)

    def time_fit(self):
        quiet_fit(DPIGHTClassifier(classes=tuple(range(105)), random_state=0), self.X, self.y)

    time_fit.number = time_fit.repeat = 1
