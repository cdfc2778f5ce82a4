"""Minibatches: an epoch of private SGD beside NumPy's, drawing, calibration, and fits of the stochastic solvers.

The acceptance figure speaks of 1,000,000 rows. The default here is a tenth, which fits in less memory;
``SKDP_ASV_ROWS=1000000`` takes all.
"""

import os
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

import skdp
from benchmarks.common import best_of
from skdp.losses import LogisticLoss
from skdp.privacy import BatchGroup, PrivacySession, PrivateRecords
from skdp.privacy.accounting import calibrate_batches

ROWS, FEATURES, BATCH = int(os.environ.get("SKDP_ASV_ROWS", 100_000)), 100, 1000
RATE, CLIP = 0.1, 1.0


def plan_of(releases, n_units):
    """A session with one plan of Poisson batches."""
    session = PrivacySession(epsilon=1.0, delta=1e-7, minibatches=True)
    (plan,) = session.plan_batches([BatchGroup(releases, BATCH)], n_units=n_units)
    return session, plan


class DenseEpoch:
    """Dense float64 rows, expected batch 1,000."""

    timeout = 300

    def setup(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(ROWS, FEATURES))
        self.y = (self.X[:, 0] > 0).astype(np.float64)
        self.records = PrivateRecords(self.X, self.y)
        self.steps = ROWS // BATCH
        rates = (rng.random(ROWS) < BATCH / ROWS for _ in range(self.steps))
        self.batches = [np.flatnonzero(chosen) for chosen in rates]
        self.private()

    def private(self):
        """One epoch: batches drawn, gradients clipped and rounded, noise added; calibration is cached."""
        session, plan = plan_of(self.steps, ROWS)
        theta, loss = np.zeros(FEATURES), LogisticLoss()
        for _ in range(self.steps):
            batch = session.draw(plan, self.records)
            mean = self.records.mean_gradient(loss, theta, CLIP, batch=batch)
            theta -= RATE * session.gaussian(mean, plan)
        return theta

    def plain(self):
        """One pass by NumPy and BLAS over batches of that size: no clipping, no noise, no drawing."""
        theta = np.zeros(FEATURES)
        for batch in self.batches:
            rows = self.X[batch]
            theta -= RATE / BATCH * (rows.T @ (expit(rows @ theta) - self.y[batch]))
        return theta

    def time_private_epoch(self):
        self.private()

    def time_numpy_pass(self):
        self.plain()

    def track_numpy_ratio(self):
        """Seconds over those of NumPy's pass: less than 1 is faster."""
        return best_of(self.private) / best_of(self.plain)

    track_numpy_ratio.unit = "times NumPy"


class Drawing:
    """A Poisson batch; it is never used, so the plan holds any number of them."""

    params = [10**5, 10**6, 10**7]
    param_names = ["n"]

    def setup(self, n):
        self.records = PrivateRecords(np.zeros((n, 1)), np.zeros(n))
        self.session, self.plan = plan_of(1, n)
        self.session.draw(self.plan, self.records)

    def time_draw(self, n):
        self.session.draw(self.plan, self.records)


class Calibration:
    """100,000 steps, to within 1 % of epsilon; never the same plan twice, as results are cached."""

    params = [["replace-one", "zero-out"], [1.0]]
    param_names = ["adjacency", "epsilon"]
    epsilon_step = 1e-6
    calls = 0

    def setup(self, adjacency, epsilon):
        self.time_calibrate(adjacency, epsilon)

    def time_calibrate(self, adjacency, epsilon):
        Calibration.calls += 1
        epsilon *= 1 + self.epsilon_step * Calibration.calls
        calibrate_batches(epsilon, 1e-6, [(1.0, 1e-3, 100_000)], adjacency=adjacency)


def survey_like(n=32_561, d=123, ones=14):
    """CSR of a9a's shape: as many ones in every row, in distinct columns, and labels."""
    rng = np.random.default_rng(0)
    width = d // ones
    columns = np.arange(ones) * width + rng.integers(0, width, size=(n, ones))
    pointers = np.arange(0, n * ones + 1, ones, dtype=np.int32)
    X = sp.csr_matrix((np.ones(n * ones), columns.ravel().astype(np.int32), pointers), (n, d))
    chance = expit(X @ rng.normal(size=d) - 1.0)
    return X, (rng.random(n) < chance).astype(np.int64)


class Fits:
    """Warm fits with defaults on data of a9a's shape, epsilon 0.5; of plain SGD with batches as well."""

    models = {
        "DP-SRM": ("DPSRMClassifier", {}),
        "STORM": ("STORMClassifier", {}),
        "DP-GD": ("DPGDClassifier", {}),
        "DP-AGD": ("DPAGDClassifier", {}),
        "RRPSGD": ("DPRRPSGDClassifier", {}),
        "DP-SGD": ("DPSGDClassifier", {}),
        "DP-SGD, batches": ("DPSGDClassifier", {"batch_size": 500, "max_iter": 300}),
        "DP-LSSGD": ("DPLSSGDClassifier", {}),
    }
    params = list(models)
    param_names = ["method"]
    timeout = 120

    def setup(self, method):
        self.X, self.y = survey_like()
        name, settings = self.models[method]
        self.model = getattr(skdp, name)(classes=[0, 1], **settings)
        if "epsilon" in self.model.get_params():
            self.model.set_params(epsilon=0.5)
        self.time_fit(method)

    def time_fit(self, method):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(self.X, self.y)

    def track_objective(self, method):
        """Mean log-loss of the last fit."""
        z = self.model.decision_function(self.X)
        return float(np.mean(np.logaddexp(0.0, z) - self.y * z))
