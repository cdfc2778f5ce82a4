"""Counting statistics beside NumPy's sum of the same cells, in one process and on one thread.

Each ``track`` is the processor time of one statistic over the time of ``X.sum()``, or of ``X.data.sum()`` for
CSR: how many passes over the cells it costs.
"""

from functools import cache

import numpy as np
import scipy.sparse as sp

from benchmarks.common import ratio
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import magnitude_counts

N, D = 1_000_000, 20
SCALES = 10.0 ** np.linspace(-3, 3, D)
EDGES = SCALES[:, None] * np.r_[-np.inf, np.linspace(-3.0, 3.0, 17), np.inf]  # 18 bins
STATISTICS = {
    "magnitude_counts": lambda r, d: magnitude_counts(r, -34, 48, adjacency="zero-out"),
    "histogram": lambda r, d: r.histogram(EDGES[-d:], adjacency="zero-out"),
    "column_counts": lambda r, d: r.column_counts(0.0),
    "column_sums": lambda r, d: r.column_sums(0.0, SCALES[-d:]),
    "column_sums of squares": lambda r, d: r.column_sums(0.0, SCALES[-d:], around=0.1),
}


@cache
def table(kind):
    """A table of one million rows, and the groups of its rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * SCALES
    groups = rng.permutation(np.arange(N) // 4) if "groups" in kind else None
    if kind == "one column":
        return np.ascontiguousarray(X[:, -1:]), groups
    if kind == "float32":
        return X.astype(np.float32), groups
    if kind == "Fortran order":
        return np.asfortranarray(X), groups
    if "CSR" in kind:  # one cell of five is stored
        X[rng.random(X.shape) < 0.8] = 0.0
        return sp.csr_matrix(X), groups
    return X, groups


class CountingStatistics:
    params = (
        sorted(STATISTICS),
        [
            "float64", "float32", "Fortran order", "one column", "CSR", "groups of 4", "CSR, groups of 4",
        ],
    )  # fmt: skip
    param_names = ("statistic", "table")
    timeout = 600

    def setup(self, statistic, kind):
        self.X, groups = table(kind)
        records = PrivateRecords(self.X, groups=groups)
        records._rows.members()  # sorted once a fit, see `Rows.members`
        self.made = STATISTICS[statistic](records, self.X.shape[1])._value

    def track_ratio_to_a_sum(self, statistic, kind):
        cells = self.X.data if sp.issparse(self.X) else self.X
        return ratio(lambda: self.made.on_grid(2.0**-30), cells.sum, repeats=5)

    track_ratio_to_a_sum.unit = "ratio"


class ColumnsSmall:
    """A table of few rows, where a call costs more than its loop."""

    params = sorted(STATISTICS)
    param_names = ("statistic",)

    def setup(self, statistic):
        X = np.random.default_rng(0).normal(size=(500, D))
        self.made = STATISTICS[statistic](PrivateRecords(X), D)._value
        self.made.on_grid(2.0**-30)  # compiled

    def time_on_grid(self, statistic):
        self.made.on_grid(2.0**-30)
