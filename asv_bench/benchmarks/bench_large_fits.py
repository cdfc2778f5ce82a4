"""Automatic fits of large tables: beside scikit-learn, by group, their memory, and beside a busy neighbour."""

import os
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import one_thread, ratio
from skdp import DPLinearRegression, DPLogisticRegression

warnings.filterwarnings("ignore")

MODELS = {
    "classifier": (DPLogisticRegression, {"classes": (0, 1)}, LogisticRegression),
    "regressor": (DPLinearRegression, {}, LinearRegression),
}


def table(n, kind, dtype=np.float64):
    """Normal rows of 20 features and a target that follows them; every fourth row begins a group."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20)).astype(dtype)
    score = X @ (rng.normal(size=20) / 4) + 0.5 * rng.normal(size=n)
    y = (score > 0).astype(int) if kind == "classifier" else score
    return X, y, np.arange(n) // 4


class BesideScikitLearn:
    """Time of scikit-learn's scaler and model over ours: above 1 the private fit is faster."""

    params = (["classifier", "regressor"], [10_000, 100_000, 1_000_000])
    param_names = ("kind", "rows")
    timeout = 600

    def setup(self, kind, rows):
        self.X, self.y, _ = table(rows, kind)
        self.ours, self.options, self.theirs = MODELS[kind]

    def track_speed(self, kind, rows):
        return 1 / ratio(
            lambda: self.ours(**self.options).fit(self.X, self.y),
            lambda: make_pipeline(StandardScaler(), self.theirs()).fit(self.X, self.y),
            repeats=9 if rows < 1_000_000 else 5,
        )


class Groups:
    """Time of a fit of a million rows of 250,000 persons over the fit by record."""

    params = (["classifier", "regressor"], ["in order", "shuffled"])
    param_names = ("kind", "order")
    timeout = 600

    def setup(self, kind, order):
        self.X, self.y, self.groups = table(1_000_000, kind)
        if order == "shuffled":
            self.groups = np.random.default_rng(1).permutation(self.groups)
        self.model, self.options, _ = MODELS[kind]

    def track_ratio(self, kind, order):
        by_group = self.model(unit="group", **self.options)
        return ratio(
            lambda: by_group.fit(self.X, self.y, groups=self.groups),
            lambda: self.model(**self.options).fit(self.X, self.y),
            repeats=3,
        )


PEAK = """
import warnings
warnings.filterwarnings("ignore")
import numpy as np
from pathlib import Path
from benchmarks.bench_large_fits import MODELS, table

def megabytes(name):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) / 1024

kind, unit = {kind!r}, {unit!r}
X, y, groups = table(2_000_000, kind, np.float32)
model, options, _ = MODELS[kind]

def fit(n):
    more = {{"groups": groups[:n]}} if unit == "group" else {{}}
    model(unit=unit, **options).fit(X[:n], y[:n], **more)

fit(20_000)  # compiled code counts for no table
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = megabytes("VmRSS")
fit(len(y))
print(megabytes("VmHWM") - before)
"""


class Memory:
    """Megabytes above the data at the peak of a fit of 2,000,000 x 20 float32 (160 MB)."""

    params = (["classifier", "regressor"], ["record", "group"])
    param_names = ("kind", "unit")
    timeout = 600

    def track_peak(self, kind, unit):
        environment = {**os.environ, "SKDP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", PEAK.format(kind=kind, unit=unit)],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    track_peak.unit = "MB"


class BusyNeighbour:
    """Median time of a fit beside a busy process on each processor over the idle one; a fair share alone is 2."""

    params = (["classifier", "regressor"],)
    param_names = ("kind",)
    timeout = 600

    def setup(self, kind):
        self.X, self.y, _ = table(100_000, kind)
        self.model, self.options, _ = MODELS[kind]

    def _median(self, repeats=15):
        found = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            self.model(**self.options).fit(self.X, self.y)
            found.append(time.perf_counter() - start)
        return float(np.median(found[1:]))

    def track_slowdown(self, kind):
        idle = self._median()
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
        try:
            time.sleep(0.5)
            return self._median() / idle
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()

    def track_slowdown_of_one_thread(self, kind):
        return one_thread(lambda: self.track_slowdown(kind))
