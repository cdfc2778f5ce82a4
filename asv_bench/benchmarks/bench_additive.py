"""Additive fits beside linear ones of the same table: ordinary tables, a million rows, memory."""

import os
import subprocess
import sys
import warnings

import numpy as np

from benchmarks.bench_large_fits import PEAK
from benchmarks.common import ratio
from skdp import DPAdditiveClassifier, DPAdditiveRegressor, DPLinearRegression, DPLogisticRegression

warnings.filterwarnings("ignore")

EPSILON = 4.0  # enough that curves are found where there are some
# The additive estimator, its parameters, and what it is compared with: as in `bench_large_fits`.
MODELS = {
    "classifier": (DPAdditiveClassifier, {"classes": (0, 1)}, DPLogisticRegression),
    "regressor": (DPAdditiveRegressor, {}, DPLinearRegression),
}


def table(n, kind, dtype=np.float64, d=20, truth="curves"):
    """Normal rows; the target follows lines of 6 columns, and for curves those of 3 columns beside."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    score = X[:, :6].sum(axis=1) / 2
    if truth == "curves":
        score += np.cos(2 * X[:, 0]) + np.abs(X[:, 1]) + (X[:, 2] > 0.5)
    score += rng.logistic(size=n) - np.median(score)
    return X, (score > 0).astype(int) if kind == "classifier" else score, np.arange(n) // 4


class BesideLines:
    """Time of an additive fit over the time of the linear one; on a table of lines no curve is fitted."""

    params = (
        ["classifier", "regressor"],
        [(1000, 5), (4000, 20), (20_000, 60), (1_000_000, 20)],
        ["lines", "curves"],
    )
    param_names = ("kind", "shape", "truth")
    timeout = 600

    def setup(self, kind, shape, truth):
        self.X, self.y, _ = table(shape[0], kind, d=shape[1], truth=truth)
        self.additive, self.options, self.linear = MODELS[kind]
        self.additive(epsilon=EPSILON, **self.options).fit(self.X[:20_000], self.y[:20_000])  # compiled

    def time_fit(self, kind, shape, truth):
        self.additive(epsilon=EPSILON, **self.options).fit(self.X, self.y)

    def track_ratio(self, kind, shape, truth):
        return ratio(
            lambda: self.additive(epsilon=EPSILON, **self.options).fit(self.X, self.y),
            lambda: self.linear(epsilon=EPSILON, **self.options).fit(self.X, self.y),
            repeats=9 if shape[0] < 1_000_000 else 3,
        )

    track_ratio.unit = "ratio"


class Memory:
    """Megabytes above the data at the peak of an additive fit of 2,000,000 x 20 float32 (160 MB)."""

    params = (["classifier", "regressor"], ["record", "group"])
    param_names = ("kind", "unit")
    timeout = 600

    def track_peak(self, kind, unit):
        environment = {**os.environ, "SKDP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        script = PEAK.format(kind=kind, unit=unit).replace("bench_large_fits", "bench_additive")
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    track_peak.unit = "MB"
