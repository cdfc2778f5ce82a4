"""Fits of a table so small that a fit is its fixed costs: calibration, releases, checks, report and recheck."""

import itertools
import warnings

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.common import one_thread, ratio
from skdp import DPAdaSSPRegressor, DPIGHTClassifier, DPLinearRegression, DPLogisticRegression
from skdp.privacy.accounting import gaussian_mu, recheck_epsilon

warnings.filterwarnings("ignore")

SHAPE = (500, 5)
CLASSES = (0, 1)
FITS = {
    "DPLogisticRegression": (lambda: DPLogisticRegression(classes=CLASSES), LogisticRegression),
    "DPLinearRegression": (DPLinearRegression, LinearRegression),
    "DPIGHTClassifier": (lambda: DPIGHTClassifier(classes=CLASSES), LogisticRegression),
    "DPAdaSSPRegressor": (DPAdaSSPRegressor, LinearRegression),
}


class TinyFits:
    """One fit, and how many of scikit-learn's fits of the same table it takes. Calibrations are cached."""

    params = (list(FITS),)
    param_names = ("estimator",)

    def setup(self, estimator):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=SHAPE)
        y = self.X @ np.arange(SHAPE[1]) + rng.normal(size=SHAPE[0])
        self.y = (y > 0).astype(int) if "Class" in estimator or "Logistic" in estimator else y
        self.ours, self.reference = FITS[estimator]
        self.time_fit(estimator)

    def time_fit(self, estimator):
        one_thread(lambda: self.ours().fit(self.X, self.y))

    def track_sklearn_ratio(self, estimator):
        """Least processor time of our fit over the time of scikit-learn's fit; less is faster."""
        return ratio(
            lambda: self.ours().fit(self.X, self.y), lambda: self.reference().fit(self.X, self.y), repeats=31
        )


class Calibration:
    """What a fit pays for its first calibration at some epsilon, and for each recheck; neither is cached here."""

    def setup(self):
        self.epsilons = itertools.count(1.0, 1e-9)  # never the same twice
        self.time_calibration()
        self.time_recheck()

    def time_calibration(self):
        gaussian_mu(next(self.epsilons), 1e-5)

    def time_recheck(self):
        recheck_epsilon([{"name": "gaussian", "noise_multiplier": 3.7, "count": 1}], 1e-5)
