"""Accounting, sessions, reports and the ledger file."""

import numpy as np

from skdp.privacy import BoundedStatistic, BudgetAccountant, PrivacyReport, PrivacySession
from skdp.privacy.accounting import noise_multiplier, recheck_epsilon


class Accounting:
    def setup(self):
        z = noise_multiplier(1.0, 1e-5, releases=100)
        self.rows = [{"name": "gaussian", "noise_multiplier": z, "count": 100, "sampling": "full batch"}]
        self.report = PrivacyReport(epsilon=1.0, delta=1e-5, adjacency="replace-one", mechanisms=self.rows)

    def time_calibrate(self):
        noise_multiplier(1.0, 1e-5, releases=100)

    def time_recheck(self):
        recheck_epsilon(self.rows, 1e-5)

    def time_epsilon_at(self):
        self.report.epsilon_at(1e-6)

    def time_repr(self):
        repr(self.report)


class Session:
    params = [1000, 100_000]
    param_names = ["d"]

    def setup(self, d):
        self.value = np.zeros(d)
        self.time_release(d)

    def time_release(self, d):
        """One session with one Gaussian release and its report."""
        session = PrivacySession(epsilon=1.0, delta=1e-6)
        session.gaussian(BoundedStatistic(self.value, l2=1.0), session.plan_gaussian(1))
        session.report()


class Ledger:
    def setup(self):
        self.accountant = BudgetAccountant(100.0, 1e-3)

    def time_reserve_and_commit(self):
        self.accountant.reserve(
            estimator="benchmark", epsilon=0.01, delta=0.0, adjacency="replace-one", unit="record"
        ).commit()
