"""Kernels: hard thresholding and clipped gradient sums, beside the NumPy code they replace."""

import numpy as np
import scipy.sparse as sp

from benchmarks.common import best_of, ratio, text_like
from skdp.kernels import gradient_kernel, hard_threshold
from skdp.losses import LogisticLoss

CLIP, GRID = 1.0, 2.0**-36


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


def logistic_slope(scores, y):
    """Derivative of the logistic loss in the type of its arguments, as NumPy code has it."""
    return 1 / (1 + np.exp(-scores)) - y


class DenseGradient:
    """100,000 x 100, in both orders."""

    params = [["float64", "float32"], ["C", "F"]]
    param_names = ["dtype", "order"]
    n_rows = 100_000

    def setup(self, dtype, order):
        rng = np.random.default_rng(0)
        self.X = np.asarray(rng.normal(size=(self.n_rows, 100)), dtype=dtype, order=order)
        self.y = (self.X[:, 0] > 0).astype(dtype)
        self.theta = rng.normal(size=100) / 10
        self.kernel = gradient_kernel(self.X, self.y, LogisticLoss(), fit_intercept=False)
        self.time_clipped_sum()

    def time_clipped_sum(self, *_):
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def peakmem_clipped_sum(self, *_):
        self.kernel.clipped_sum(self.theta, CLIP, GRID)

    def numpy_pass(self, norms=None):
        slope = logistic_slope(self.X @ self.theta.astype(self.X.dtype), self.y)
        if norms is None:
            norms = np.sqrt(np.einsum("ij,ij->i", self.X, self.X))
        return self.X.T @ (slope * np.minimum(1, CLIP / (np.abs(slope) * norms)))

    def track_numpy_ratio(self, dtype, order):
        """Speed over that of NumPy, which computes the row norms as the kernel does."""
        return 1 / ratio(self.time_clipped_sum, self.numpy_pass)

    def track_two_passes_ratio(self, dtype, order):
        """Speed over that of NumPy's two passes where the row norms are known."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.X, self.X))
        return 1 / ratio(self.time_clipped_sum, lambda: self.numpy_pass(norms))

    track_numpy_ratio.unit = track_two_passes_ratio.unit = "times NumPy"


class LargeDenseGradient(DenseGradient):
    """1e6 x 100, which no cache holds: what README and the documentation speak of."""

    params = [["float64", "float32"]]
    param_names = ["dtype"]
    n_rows = 10**6

    def setup(self, dtype):
        super().setup(dtype, "C")

    def track_numpy_ratio(self, dtype):
        return super().track_numpy_ratio(dtype, "C")

    def track_two_passes_ratio(self, dtype):
        return super().track_two_passes_ratio(dtype, "C")

    track_numpy_ratio.unit = track_two_passes_ratio.unit = "times NumPy"


class GroupedGradient:
    """Groups of three rows, in the order of the rows or anywhere, beside single rows."""

    params = [["C", "F", "CSR"], ["in order", "shuffled"]]
    param_names = ["storage", "order"]

    def setup(self, storage, order):
        rng = np.random.default_rng(0)
        X = text_like()[0] if storage == "CSR" else rng.normal(size=(100_000, 100))
        X = X if sp.issparse(X) else np.asarray(X, order=storage)
        n, d = X.shape
        y = (rng.random(n) < 0.5).astype(np.float64)
        self.theta = rng.normal(size=d + 1) / 10
        groups = np.arange(n) // 3
        if order == "shuffled":
            rng.shuffle(groups)
        self.rows = gradient_kernel(X, y, LogisticLoss())
        self.groups = gradient_kernel(X, y, LogisticLoss(), groups=groups)
        self.time_groups()

    def time_groups(self, *_):
        self.groups.clipped_sum(self.theta, CLIP, GRID)

    def track_rows_ratio(self, storage, order):
        """Time over that of single rows."""
        return ratio(self.time_groups, lambda: self.rows.clipped_sum(self.theta, CLIP, GRID))

    track_rows_ratio.unit = "times rows"


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
            self.X.T @ logistic_slope(self.X @ self.theta, self.y)

        return ratio(lambda: self.kernel.clipped_sum(self.theta, CLIP, GRID), reference)

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
                batch.T @ logistic_slope(batch @ self.theta, self.y[rows])

        return ratio(lambda: self.time_clipped_sums(storage), reference, repeats=3)

    track_numpy_ratio.unit = "times NumPy or scipy"
