"""Two stages and regression from moments: seconds, and errors at a fixed epsilon."""

import numpy as np

from benchmarks.common import text_like
from skdp import DPAdaSSPRegressor, DPTwoStageClassifier, DPTwoStageRegressor
from skdp.datasets import make_sparse_regression


class Moments:
    """One pass of exact integer products over dense rows."""

    params = [10, 100]
    param_names = ["n_features"]

    def setup(self, d):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(100_000, d))
        self.y = self.X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=100_000)
        self.fit()

    def fit(self):
        return DPAdaSSPRegressor(row_norm=10.0, y_bounds=(-5, 5), n_rounds=1).fit(self.X, self.y)

    def time_fit(self, d):
        self.fit()

    def peakmem_fit(self, d):
        self.fit()


class TwoStage:
    """The published setting (1000, 1000, 10), and text."""

    params = ["gumbel", "votes"]
    param_names = ["selection"]

    def setup(self, selection):
        self.X, self.y, self.theta = make_sparse_regression(
            1000, 1000, n_informative=10, coef=True, random_state=0
        )
        self.text = text_like()
        self.fit(selection, 0)
        self.fit_text(selection)

    def fit(self, selection, seed):
        model = DPTwoStageRegressor(
            epsilon=4.0, delta=0.01, n_nonzero_coefs=10, selection=selection, random_state=seed
        )
        return model.fit(self.X, self.y)

    def fit_text(self, selection):
        model = DPTwoStageClassifier(n_nonzero_coefs=100, selection=selection, classes=[0, 1])
        return model.fit(*self.text)

    def time_fit(self, selection):
        self.fit(selection, 0)

    def time_fit_text(self, selection):
        self.fit_text(selection)

    def track_relative_error(self, selection):
        errors = [np.linalg.norm(self.fit(selection, seed).coef_ - self.theta) for seed in range(3)]
        return float(np.mean(errors) / np.linalg.norm(self.theta))
