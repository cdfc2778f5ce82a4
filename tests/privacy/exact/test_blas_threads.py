"""Statistics leave the threads of BLAS asleep: a thread that waits for others spins where other processes run.

Each statistic runs in a child process in which BLAS has two threads. What such a thread has run
so far is a number of the kernel, in nanoseconds. It grows by a product that uses several threads, and by nothing
else. So the test depends neither on the number of cores nor on the load.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import contextlib, threading, time
from unittest import mock
import numpy as np
import scipy.linalg, scipy.optimize  # a BLAS of its own, whose threads start with it
import scipy.sparse as sp
from pathlib import Path
from threadpoolctl import threadpool_limits
from skdp.losses import LogisticLoss
from skdp.privacy import PrivateRecords, Standardization, Vectors
from skdp.privacy.statistics import (
    class_counts, gradient_scores, magnitude_counts, mean_losses, mean_sup_gradient, recursive_gradient,
    ridge_minimizer, target_count,
)
from skdp.linear_model import DPLinearRegression, DPLogisticRegression
from skdp.fitting.recalibrate import Statistic, _State

n, d = 8200, 100
rng = np.random.default_rng(0)
X, theta = rng.normal(size=(n, d)), np.linspace(-1.0, 1.0, d + 1)
y, codes = (X[:, 0] > 0).astype(float), np.arange(n) // 4
made = Statistic(3, True, _State.start(np.zeros(3), 0.7, 2.0))


def other_threads():
    own = {threading.get_native_id()}
    times = {}
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) not in own:
            times[task.name] = int((task / "schedstat").read_text().split()[0])
    return times


def woken(work):
    before = other_threads()
    work()
    time.sleep(0.02)  # the kernel adds what a running thread has run at its next tick
    if other_threads() == before:
        return False
    for _ in range(5):  # until they have slept for half a second
        while other_threads() != before:
            before = other_threads()
            time.sleep(0.1)
    return True


def statistics(records):
    adjacency = {"adjacency": "replace-one"}
    theta_ = theta[: records.n_parameters]
    yield "second_moment", records.second_moment(1.0, 1.0, **adjacency)
    yield "mean_gradient", records.mean_gradient(LogisticLoss(), theta_, 1.0)
    yield "mean_losses", mean_losses(records, LogisticLoss(), theta_[None], 1.0)
    yield "mean_sup_gradient", mean_sup_gradient(records, LogisticLoss(), theta_, 1.0)
    yield "gradient_scores", gradient_scores(records, LogisticLoss(), theta_, 1.0)
    yield "gradient_norm_count", records.norm_count(1.0, loss=LogisticLoss(), theta=theta_)
    yield "gradient_sup_norm_count", records.norm_count(1.0, loss=LogisticLoss(), theta=theta_, norm="max")
    yield "row_norm_count", records.norm_count(1.0)
    yield "row_sup_norm_count", records.norm_count(1.0, norm="max")
    yield "recursive_gradient", recursive_gradient(
        records, LogisticLoss(), theta_, theta_, momentum=0.1, clip_norm=1.0, clip_diff_norm=0.1)
    yield "clipped_sum", records.scored(np.stack([theta_, theta_, -theta_], axis=1)).clipped_sum(
        made, made.bound, size=made.size, rowwise=True)
    yield "class_counts", class_counts(records, 2, **adjacency)
    yield "target_count", target_count(records, 1.0)
    yield "column_counts", records.column_counts(0.0)
    yield "column_sums", records.column_sums(0.0, 1.0)
    yield "histogram", records.residual(theta_).select_targets().histogram([-1.0, 0.0, 1.0], **adjacency)
    yield "magnitude_counts", magnitude_counts(records, -2, 2, **adjacency)
    if records.shape.unit == "record" and isinstance(records._rows.X, np.ndarray):
        yield "gradient_sum", records.gradient_sum(lambda X, y: [Vectors(X[:, :9] * 1.0)], 1.0, size=9)
        yield "ridge_minimizer", ridge_minimizer(
            records, LogisticLoss(), alpha=0.1, row_norm=1.0, **adjacency)


found = {}
with threadpool_limits(2):
    woken(lambda: np.ones((999, 999)) @ np.ones((999, 999)))  # it may start the threads
    found["a product"] = woken(lambda: X.T @ X)
    records = PrivateRecords(X, y)
    with mock.patch("skdp.kernels.one_blas_thread", contextlib.nullcontext):
        moment = records.second_moment(1.0, 1.0, adjacency="replace-one")._value
        found["a mutant"] = woken(lambda: moment.on_grid(2.0**-20))
    whole = PrivateRecords(X, y, fit_intercept=True, n_classes=2)
    grouped = PrivateRecords(X, y, groups=codes, fit_intercept=True, n_classes=2)
    sparse = PrivateRecords(sp.csr_matrix(X), y, fit_intercept=True, n_classes=2)
    columns = Standardization.make(np.ones(d), 2.0)
    for records in (whole, grouped, sparse, whole.standardized(columns), grouped.standardized(columns)):
        for name, bounded in statistics(records):
            value = bounded._value
            found[name] = woken(lambda: (value.on_grid(2.0**-20), value.plain())) or found.get(name, False)
    for model in (DPLogisticRegression, DPLinearRegression):
        fit = model(epsilon=1.0, delta=1e-6, accountant=False, random_state=0).fit
        found[model.__name__] = woken(lambda: fit(X, y))
print(repr(found))
"""


@pytest.fixture(scope="module")
def found():
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("the kernel of this system does not say what a thread has run")
    environment = {**os.environ, "SKDP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD], env=environment, capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    told = eval(child.stdout)
    if not told.pop("a product"):
        pytest.skip("this BLAS uses one thread for a plain product")
    return told


@pytest.mark.thorough
def test_a_mutant_that_limits_no_thread_is_caught(found):
    assert found["a mutant"]


@pytest.mark.thorough
def test_no_statistic_and_no_automatic_fit_wakes_a_thread_of_blas(found):
    assert not [name for name, woken in found.items() if woken and name != "a mutant"]
