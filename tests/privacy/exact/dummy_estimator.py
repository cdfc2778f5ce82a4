"""A private classifier as `skdp.base` builds them, small enough to count its charges.

A module of its own, so that worker processes can import it.
"""

import multiprocessing
import os
import signal
import time

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.base import PrivateFit
from skdp.exceptions import (
    PrivacyAccountingError,
    PrivacyBudgetExceeded,
    PrivacyLeakWarning,
    UnprovenPrivacyWarning,
    UnsupportedAccounting,
)
from skdp.privacy.accounting import gaussian_mu
from skdp.privacy.budget import ambient, carried_accountant

EXCEPTIONS = (
    PrivacyAccountingError,
    PrivacyBudgetExceeded,
    PrivacyLeakWarning,
    UnprovenPrivacyWarning,
    UnsupportedAccounting,
)


def current_accountant():
    """The accountant of the innermost block of this context; of a forked process, that of the block around it."""
    with ambient.LOCK:
        block, inside = ambient.innermost()
        if block is None:
            block = ambient.inherited()
            inside = block is not None
        return block.accountant if inside else None


class DummyClassifier(ClassifierMixin, PrivateFit):
    """Charges (epsilon, delta) and then reads the data; delta=0 makes it pure."""

    def __init__(self, *, epsilon=0.1, delta=1e-5, shift=0.0, accountant=None):
        self.epsilon = epsilon
        self.delta = delta
        self.shift = shift
        self.accountant = accountant

    read = solve = None  # `fit` does both

    def fit(self, X, y):
        payer = self.accountant if self.accountant is not None else carried_accountant(self)
        if payer is not None:
            mu = gaussian_mu(self.epsilon, self.delta) if self.delta else None
            payer.reserve(
                estimator=type(self).__name__,
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency="replace-one",
                unit="record",
                mu=mu,
            ).commit()
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        self.coef_ = X[y == self.classes_[-1]].mean(axis=0)
        return self

    def decision_function(self, X):
        check_is_fitted(self)
        return validate_data(self, X, reset=False) @ self.coef_ - self.shift

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def charge(accountant, epsilon=1.0):
    """One committed pure charge; returns the process that made it."""
    accountant.reserve(
        estimator="charge", epsilon=epsilon, delta=0.0, adjacency="replace-one", unit="record"
    ).commit()
    return os.getpid()


def gauss(accountant, epsilon, delta=1e-5, estimator="fit", **more):
    """Reserve a Gaussian fit."""
    cost = {"epsilon": epsilon, "delta": delta, "mu": gaussian_mu(epsilon, delta)}
    kind = {"adjacency": "replace-one", "unit": "record"}
    return accountant.reserve(estimator=estimator, **(cost | kind | more))


def charge_until_refused(accountant, barrier, queue):
    """Count the pure charges that are granted to this process."""
    barrier.wait()
    granted = 0
    try:
        while True:
            charge(accountant)
            granted += 1
            time.sleep(0.005)  # let the other one in
    except PrivacyBudgetExceeded as error:
        queue.put((granted, str(error)))


def reserve_and_die(accountant):
    """Reserve, then be killed as by the system's out-of-memory killer."""
    accountant.reserve(estimator="killed", epsilon=1.0, delta=0.0, adjacency="replace-one", unit="record")
    os.kill(os.getpid(), signal.SIGKILL)


def fit_in_this_process(estimator, X, y):
    """Fit, and return the process; run in a worker."""
    estimator.fit(X, y)
    return multiprocessing.current_process().pid
