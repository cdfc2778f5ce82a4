"""Knowledge transfer: seconds of a fit and of its parts, and errors at a fixed epsilon."""

import numpy as np

from benchmarks.common import text_like
from skdp import DPSLKTClassifier, DPSLKTRegressor
from skdp.datasets import make_sparse_regression
from skdp.losses import LogisticLoss
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import ridge_minimizer
from skdp.privacy.statistics.linear_map import spectral_norm_bound


class Fit:
    """The published synthetic setting, both teachers."""

    params = ("private-support", "ridge")
    param_names = ("teacher",)

    def setup(self, teacher):
        self.X, self.y, self.coef = make_sparse_regression(coef=True, random_state=0)
        self.fit(teacher)

    def fit(self, teacher, seed=0):
        model = DPSLKTRegressor(epsilon=4.0, delta=5e-4, n_nonzero_coefs=10, teacher=teacher, random_state=seed)
        return model.fit(self.X, self.y)

    def time_fit(self, teacher):
        self.fit(teacher)

    def track_relative_error(self, teacher):
        found = [self.fit(teacher, seed).coef_ - self.coef for seed in range(5)]
        return float(np.mean(np.linalg.norm(found, axis=1)) / np.linalg.norm(self.coef))


class Text:
    """CSR rows as of RCV1; the minimiser is most of the ridge teacher's time."""

    def setup(self):
        self.X, self.y = text_like()
        self.fit("ridge")

    def fit(self, teacher):
        model = DPSLKTClassifier(classes=(0, 1), n_nonzero_coefs=2000, teacher=teacher)
        return model.fit(self.X, self.y)

    def time_ridge(self):
        self.fit("ridge")

    def time_private_support(self):
        self.fit("private-support")

    def time_minimizer(self):
        records = PrivateRecords(self.X, self.y, fit_intercept=True)
        teacher = ridge_minimizer(records, LogisticLoss(), alpha=1e-3, row_norm=1.0, adjacency="replace-one")
        session = PrivacySession(records, epsilon=1.0, delta=1e-5)
        session.gaussian(teacher, session.plan_gaussian(1))

    def time_spectral_norm(self):
        spectral_norm_bound(self.X)

    def peakmem_ridge(self):
        self.fit("ridge")
