"""Token ids made of tables of numbers, for tests that go over all estimators."""

import inspect

import numpy as np
import scipy.sparse as sp

from skdp import DPLSTMClassifier

SIZES = {"vocabulary_size": 50, "max_length": 40, "n_features": 4, "n_units": 3}


def ids(X):
    """An id for each number, from its mantissa; 0 stays 0, which is padding."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    mantissa = np.abs(np.frexp(X)[0])
    return np.where(mantissa == 0, 0, 1 + np.floor(1e4 * mantissa) % SIZES["vocabulary_size"])


def as_classifier(cls):
    """The class for texts that takes any table; other classes stay."""
    return OnTables if cls is DPLSTMClassifier else cls


def required(cls):
    """Parameters that an estimator cannot do without."""
    return SIZES if issubclass(cls, DPLSTMClassifier) else {}


class OnTables(DPLSTMClassifier):
    """A text classifier that makes ids of what it is given."""

    learns_from_data = False  # of each document alone

    # Python before 3.11.3 takes the signature of an inherited __new__ for that of the class.
    __signature__ = inspect.signature(DPLSTMClassifier)

    def fit(self, X, y, *, groups=None):
        return super().fit(ids(X), y, groups=groups)
