"""Sparse-gradient ERM: seconds of a step under each schedule, and error and accuracy at a fixed epsilon.

Fits are warm: the first one compiles kernels and does not count.
"""

import warnings

import numpy as np

from benchmarks.common import text_like
from skdp import DPSparseERMClassifier, DPSparseERMRegressor
from skdp.datasets import make_sparse_regression

STEPS = 10


class SparseText:
    """Ten steps on a matrix of RCV1's shape."""

    params = (["all rows", "batch groups", "fresh samples"],)
    param_names = ("batches",)

    def setup(self, batches):
        warnings.filterwarnings("ignore", message="delta=")
        self.X, self.y = text_like()
        n = self.X.shape[0]
        size = n // 10 if batches == "fresh samples" else None
        self.extra = {"batch_groups": np.arange(n) % 10} if batches == "batch groups" else {}
        self.model = DPSparseERMClassifier(
            classes=[0, 1], max_iter=STEPS, batch_size=size, refit=0, random_state=0
        )
        self.fit()

    def fit(self):
        self.model.fit(self.X, self.y, **self.extra)

    def time_fit(self, batches):
        self.fit()

    def peakmem_fit(self, batches):
        self.fit()


class Synthetic:
    """The published regression, 1000 x 1000 with 10 features, delta = 0.01."""

    params = ([2.0, 4.0, 10.0], ["auto", 0])
    param_names = ("epsilon", "refit")

    def setup(self, epsilon, refit):
        warnings.filterwarnings("ignore", message="delta=")

    def track_relative_error(self, epsilon, refit):
        """Mean over five seeds of |theta - theta*| / |theta*|."""
        errors = []
        for seed in range(5):
            X, y, theta = make_sparse_regression(1000, 1000, coef=True, random_state=seed)
            model = DPSparseERMRegressor(
                epsilon=epsilon, delta=0.01, refit=refit, fit_intercept=False, random_state=seed
            ).fit(X, y)
            errors.append(np.linalg.norm(model.coef_ - theta) / np.linalg.norm(theta))
        return float(np.mean(errors))

    def time_fit(self, epsilon, refit):
        X, y = make_sparse_regression(1000, 1000, random_state=0)
        DPSparseERMRegressor(epsilon=epsilon, delta=0.01, refit=refit).fit(X, y)
