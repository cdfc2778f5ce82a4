"""Kernels: hard thresholding and clipped gradient sums, beside the NumPy code they replace."""

import os

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import best_of, text_like
from skdp.kernels import gradient_kernel, hard_threshold
from skdp.losses import LogisticLoss

CLIP, GRID = 1.0, 2.0**-36


def one_thread(function):
    """Seconds of a call on one thread of ours and of BLAS."""
    before = os.environ.get("SKDP_NUM_THREADS")
    os.environ["SKDP_NUM_THREADS"] = "1"  # read at every call
    try:
        with threadpool_limits(1):
            return best_of(function)
    finally:
        if before is None:
            del os.environ["SKDP_NUM_THREADS"]
        else:
            os.environ["SKDP_NUM_THREADS"] = before


class HardThreshold:
    params = [10**5, 10**6]
    param_names = ["d"]

    def setup(self, d):
        self.x = np.random.default_rng(0).normal(size=d)
        self.s = d // 100
        hard_threshold(self.x, self.s)

    def time_hard_threshold(self, d):
        hard_threshold(self.x, self.s)

    def track_argpartition_ratio(self, d):
        """Speed over that of np.argpartition: more than 1 is faster."""

        def reference():
            kept = np.zeros_like(self.x)
            largest = np.argpartition(np.abs(self.x), d - self.s)[d - self.s :]
            kept[largest] = self.x[largest]

        return best_of(reference) / best_of(lambda: hard_threshold(self.x, self.s))

    track_argpartition_ratio.unit = "times NumPy"


class DenseGradient:
    """100,000 x 100 float64: a tenth of the size that the acceptance figure speaks of."""

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(100_000, 100))
        self.y = (self.X[:, 0] > 0).astype(np.float64)
        self.theta = rng.normal(size=100) / 10
        self.kernel = gradient_kernel(self.X, self.y, LogisticLoss(), fit_intercept=False)
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def time_clipped_sum(self):
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def peakmem_clipped_sum(self):
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def track_two_passes_ratio(self):
        """Speed over that of NumPy's two passes, one thread each: more than 1 is faster."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.X, self.X))

        def reference():
            slope = LogisticLoss().derivative(self.X @ self.theta, self.y)
            self.X.T @ (slope * np.minimum(1, CLIP / (np.abs(slope) * norms)))

        ours = one_thread(lambda: self.kernel.clipped_sum(self.theta, CLIP, GRID))
        return one_thread(reference) / ours

    track_two_passes_ratio.unit = "times NumPy"


class SparseGradient:
    def setup(self):
        self.X, y = text_like()
        self.y = y.astype(np.float64)
        self.theta = np.random.default_rng(0).normal(size=self.X.shape[1]) / 100
        self.kernel = gradient_kernel(self.X, self.y, LogisticLoss(), fit_intercept=False)
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def time_clipped_sum(self):
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def track_scipy_ratio(self):
        """Seconds over those of X w and X^T r by scipy: less than 1 is faster."""

        def reference():
            self.X.T @ LogisticLoss().derivative(self.X @ self.theta, self.y)

        return best_of(lambda: self.kernel.clipped_sum(self.theta, CLIP, GRID)) / best_of(reference)

    track_scipy_ratio.unit = "times scipy"


class MinibatchGradient:
    """Random batches of 1,000 rows: of 400,000 x 100 float64, and of a text-like CSR matrix."""

    params = ["C", "F", "CSR"]
    param_names = ["storage"]

    def setup(self, storage):
        rng = np.random.default_rng(0)
        if storage == "CSR":
            self.X, y = text_like()
        else:
            self.X = rng.normal(size=(400_000, 100))
            y = self.X[:, 0] > 0
            self.X = np.asarray(self.X, order=storage)
        self.y = y.astype(np.float64)
        n, d = self.X.shape
        # Together larger than the last cache, so that rows come from memory as during an epoch.
        n_batches = 100 if storage == "C" else 20
        self.batches = [np.sort(rng.choice(n, 1000, replace=False)) for _ in range(n_batches)]
        self.theta = rng.normal(size=d) / 10
        self.before = self.theta + rng.normal(size=d) / 100
        self.kernel = gradient_kernel(self.X, self.y, LogisticLoss(), fit_intercept=False)
        self.time_recursive_sums(storage)

    def time_clipped_sums(self, storage):
        for rows in self.batches:
            self.kernel.clipped_sum(self.theta, CLIP, GRID, rows=rows)

    def time_recursive_sums(self, storage):
        for rows in self.batches:
            self.kernel.recursive_sum(self.theta, self.before, 0.3, CLIP, 0.1, GRID, rows=rows)

    def time_loss_sums(self, storage):
        for rows in self.batches:
            self.kernel.loss_sums([self.theta, self.before], 1.0, GRID, rows=rows)

    def track_numpy_ratio(self, storage):
        """Seconds over those of the steps of plain SGD, one thread each: less than 1 is faster."""

        def reference():
            for rows in self.batches:
                batch = self.X[rows]
                slope = LogisticLoss().derivative(batch @ self.theta, self.y[rows])
                batch.T @ slope

        ours = one_thread(lambda: self.time_clipped_sums(storage))
        return ours / one_thread(reference)

    track_numpy_ratio.unit = "times NumPy or scipy"
