"""Fits of rows in blocks beside fits in memory, on one thread: time, passes, memory of Parquet files."""

import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.bench_large_fits import table
from benchmarks.common import best_of, one_thread, ratio
from skdp import DPAdaSSPRegressor, DPIGHTClassifier, DPLinearRegression, DPLogisticRegression, DPStandardScaler
from skdp.datasets import Blocks, array_blocks, parquet_blocks

warnings.filterwarnings("ignore")

ROWS, BLOCK_ROWS = 200_000, 20_000
MODELS = {
    "logistic": (DPLogisticRegression, {"classes": (0, 1)}),
    "linear": (DPLinearRegression, {}),
    "IGHT": (DPIGHTClassifier, {"classes": (0, 1)}),
    "AdaSSP": (DPAdaSSPRegressor, {}),
    "scaler": (DPStandardScaler, {}),
}


def data(name, n=ROWS):
    """Model and its table."""
    kind, options = MODELS[name]
    X, y, _ = table(n, "classifier" if "classes" in options else "regressor", np.float32)
    return kind(**options), X, None if name == "scaler" else y


def passes(model, X, y):
    """Passes over the data in a fit."""
    read, blocks = [], array_blocks(X, y, block_rows=BLOCK_ROWS)

    def counted():
        yield from blocks
        read.append(1)  # to the end: a look at the first block is no pass

    model.fit(Blocks(counted))
    return len(read)


class Arrays:
    """Time of a fit of blocks of an array over the fit in memory, and passes over the data."""

    params = (list(MODELS),)
    param_names = ("model",)
    timeout = 600

    def setup(self, model):
        self.model, self.X, self.y = data(model)

    def track_ratio(self, model):
        blocks = array_blocks(self.X, self.y, block_rows=BLOCK_ROWS)
        return ratio(lambda: self.model.fit(blocks), lambda: self.model.fit(self.X, self.y), repeats=3)

    def track_passes(self, model):
        return passes(self.model, self.X, self.y)


class Parquet:
    """A fit of a Parquet file over one reading of its columns for each pass and the fit in memory."""

    timeout = 600

    def setup(self):
        self.model, self.X, self.y = data("logistic")
        self.folder = tempfile.TemporaryDirectory()
        frame = pd.DataFrame(self.X, columns=[f"x{i}" for i in range(self.X.shape[1])])
        self.path = Path(self.folder.name) / "rows.parquet"
        frame.assign(label=self.y).to_parquet(self.path)

    def teardown(self):
        self.folder.cleanup()

    def track_ratio(self):
        blocks = parquet_blocks(self.path, target="label", block_rows=BLOCK_ROWS)
        n_passes = passes(self.model, self.X, self.y)

        def read():
            for _ in range(n_passes):
                for _ in blocks:
                    pass
            self.model.fit(self.X, self.y)

        return ratio(lambda: self.model.fit(blocks), read, repeats=3)


PEAK = """
import re, threading, warnings
warnings.filterwarnings("ignore")
from pathlib import Path
from benchmarks.bench_blocks import BLOCK_ROWS, MODELS
from skdp.datasets import parquet_blocks

def anonymous():
    return int(re.search(r"Anonymous: +(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1]) / 1024

kind, options = MODELS["logistic"]
fit = lambda path: kind(**options).fit(parquet_blocks(path, target="label", block_rows=BLOCK_ROWS))
fit({small!r})  # libraries and compiled code count for no table
before, done = anonymous(), threading.Event()
most = [before]

def watch():
    while not done.wait(0.005):
        most[0] = max(most[0], anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
fit({large!r})
done.set()
watcher.join()
print(most[0] - before)
"""


class Memory:
    """Megabytes of anonymous memory that a fit of 1,000,000 x 20 float32 (80 MB) in a Parquet file takes."""

    timeout = 600

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        for name, n in (("small", BLOCK_ROWS), ("large", 1_000_000)):
            _, X, y = data("logistic", n)
            frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
            frame.assign(label=y).to_parquet(Path(self.folder.name) / f"{name}.parquet")

    def teardown(self):
        self.folder.cleanup()

    def track_peak(self):
        environment = {**os.environ, "SKDP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        files = {name: str(Path(self.folder.name) / f"{name}.parquet") for name in ("small", "large")}
        done = subprocess.run(
            [sys.executable, "-c", PEAK.format(**files)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)

    track_peak.unit = "MB"


class Cluster:
    """Milliseconds of a release on a Dask cluster of two processes beside the release in memory, on few rows."""

    params = ([2, 16, 64],)
    param_names = ("partitions",)
    timeout = 600

    def setup(self, partitions):
        import dask.array as da
        from distributed import Client, LocalCluster

        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        self.client = Client(self.cluster)
        self.X = da.random.default_rng(0).normal(size=(6400, 5), chunks=(6400 // partitions, 5)).persist()
        self.y = (self.X[:, 0] > 0).astype(int).persist()

    def teardown(self, partitions):
        self.client.close()
        self.cluster.close()

    def track_release(self, partitions):
        model, X, y = DPIGHTClassifier(classes=(0, 1)), self.X.compute(), self.y.compute()
        on_cluster = best_of(lambda: model.fit(self.X, self.y))
        releases = sum(row["count"] for row in model.privacy_.mechanisms)
        return 1000 * (on_cluster - one_thread(lambda: best_of(lambda: model.fit(X, y)))) / releases

    track_release.unit = "ms"
