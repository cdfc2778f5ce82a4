"""Private Frank-Wolfe on sparse data: the lazy path, and everything computed anew in every step.

20,242 rows with 77 non-zeros over 47,236 features, as in RCV1: columns uniform, or popular as in Zipf's law.
"""

import numpy as np
import scipy.sparse as sp

from benchmarks.common import best_of
from skdp.base.plan import BudgetSplit
from skdp.fitting.task import Task
from skdp.linear_model.frank_wolfe import frank_wolfe
from skdp.losses import LogisticLoss
from skdp.privacy import PrivacySession, PrivateRecords

ROWS, FEATURES, NONZEROS = 20_242, 47_236, 77


def sparse_rows(popular, n=ROWS, d=FEATURES, nonzeros=NONZEROS):
    """Unit rows; labels follow the sign of a sparse linear function."""
    rng = np.random.default_rng(0)
    weight = 1 / (np.arange(d) + 100.0) if popular else np.ones(d)
    positions = np.searchsorted(np.cumsum(weight) / weight.sum(), rng.random((n, nonzeros)))
    data = rng.random((n, nonzeros)) + 0.1
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    starts = np.arange(0, n * nonzeros + 1, nonzeros)
    X = sp.csr_matrix((data.ravel(), np.minimum(positions, d - 1).ravel(), starts), shape=(n, d))
    X.sum_duplicates()
    truth = np.zeros(d)
    truth[rng.choice(d, 200, replace=False)] = 5 * rng.normal(size=200)
    return X, (X @ truth > 0).astype(float)


def run(X, y, steps, **options):
    records = PrivateRecords(X, y)
    with PrivacySession(records, epsilon=1.0, delta=1e-6, random_state=0) as session:
        settings = dict(radius=20.0, max_iter=steps, clip_norm=0.1)
        return frank_wolfe(Task(BudgetSplit(session), records, LogisticLoss()), **settings, **options)


class SparsePath:
    """A thousand steps."""

    params = (["uniform", "popular"],)
    param_names = ("columns",)
    timeout = 300

    def setup(self, columns):
        self.X, self.y = sparse_rows(columns == "popular")
        for lazy in (True, False):
            run(self.X, self.y, 12, lazy=lazy)

    def time_thousand_steps(self, columns):
        run(self.X, self.y, 1000)

    def track_times_faster_than_anew(self, columns):
        lazy = best_of(lambda: run(self.X, self.y, 1000), 3)
        return best_of(lambda: run(self.X, self.y, 1000, lazy=False), 1) / lazy


class Width:
    """The same rows and non-zeros a column; only the number of empty features grows."""

    params = ([10_000, 100_000, 1_000_000],)
    param_names = ("features",)

    def setup(self, features):
        X, self.y = sparse_rows(popular=False, n=5000, d=10_000, nonzeros=20)
        self.X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], features))
        run(self.X, self.y, 12)

    def time_five_hundred_steps(self, features):
        run(self.X, self.y, 500)
