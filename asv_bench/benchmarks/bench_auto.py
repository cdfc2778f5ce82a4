"""Fits of the automatic estimator on tables of ordinary size, in which the small steps of the method count."""

import warnings

import numpy as np

from skdp import DPLinearRegression, DPLogisticRegression

warnings.filterwarnings("ignore")


class Automatic:
    """One fit; a suite of 32 real tables has 133 to 21,000 rows and 4 to 64 columns."""

    params = ([(4000, 20), (20_000, 60)], ["dense", "groups"])
    param_names = ("shape", "unit")

    def setup(self, shape, unit):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=shape) * 10.0 ** np.linspace(-3, 3, shape[1])
        score = (self.X / 10.0 ** np.linspace(-3, 3, shape[1]))[:, :3].sum(axis=1)
        self.y = score + rng.normal(size=shape[0])
        self.labels = (self.y > 0).astype(int)
        self.more = {"groups": np.arange(shape[0]) // 4} if unit == "groups" else {}
        self.unit = "group" if self.more else "record"
        self.time_classifier(shape, unit)
        self.time_regressor(shape, unit)

    def time_classifier(self, shape, unit):
        DPLogisticRegression(classes=(0, 1), unit=self.unit).fit(self.X, self.labels, **self.more)

    def time_regressor(self, shape, unit):
        DPLinearRegression(unit=self.unit).fit(self.X, self.y, **self.more)
