"""Write the catalogue of bounded statistics: ``PYTHONPATH=. python tools/make_statistics_table.py``.

Each statistic is computed under two adjacencies, on 40 made-up records with 3 features, and its sensitivities are
read from the result. ``tests/privacy/exact/test_statistics_table.py`` compares the file with a fresh one.
"""

import csv
import inspect
import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from skdp.kernels import Negatives
from skdp.losses import LogisticLoss
from skdp.privacy import BoundedStatistic, PrivateRecords, Vectors, statistics
from skdp.privacy.adjacency import factor
from skdp.privacy.batches import Partition

PAGE = Path(__file__).parents[1] / "docs" / "researchers" / "statistics_table.csv"
HEAD = ("statistic", "value and bound", "arguments of the example", "replace-one", "add-remove")
N_RECORDS, N_FEATURES = 40, 3  # small enough to compute each statistic in milliseconds
THETA = np.zeros(N_FEATURES + 1)  # the intercept last
LOGISTIC = LogisticLoss()
WINDOW = (0.0, 1.0, 1.0)  # centre, half-width of targets, half-width of residuals


def records(adjacency: str) -> PrivateRecords:
    """Records with two classes as targets; under add-remove their number is private, and ``n_public`` is given."""
    n_public = N_RECORDS if adjacency == "add-remove" else None
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(N_RECORDS, N_FEATURES))
    return PrivateRecords(X, (X[:, 0] > 0).astype(float), fit_intercept=True, n_public=n_public)


def blocks(of: PrivateRecords) -> Partition:
    """Four blocks of records, as a session would draw them."""
    return Partition._make(np.arange(N_RECORDS) % 4, of._rows.family)


# Each entry: the arguments as the table shows them, and the call for an adjacency.
EXAMPLES: dict[str, tuple[str, Callable[[PrivateRecords, str], BoundedStatistic]]] = {
    "PrivateRecords.clipped_sum": (
        "clip_norm=1",
        lambda r, a: r.clipped_sum(lambda X, y: X * 1.0, 1.0, size=N_FEATURES),
    ),
    "PrivateRecords.column_counts": ("thresholds=0", lambda r, a: r.column_counts(np.zeros(N_FEATURES))),
    "PrivateRecords.column_sums": ("center=0, half_width=1", lambda r, a: r.column_sums(0.0, 1.0)),
    "PrivateRecords.gradient_sum": (
        "clip_norm=1",
        lambda r, a: r.gradient_sum(lambda X, y: [Vectors(X * 1.0)], 1.0, size=N_FEATURES),
    ),
    "PrivateRecords.histogram": ("2 bins", lambda r, a: r.histogram([-1.0, 0.0, 1.0], adjacency=a)),
    "PrivateRecords.mean_gradient": ("clip_norm=1", lambda r, a: r.mean_gradient(LOGISTIC, THETA, 1.0)),
    "PrivateRecords.norm_count": ("bound=1", lambda r, a: r.norm_count(1.0)),
    "PrivateRecords.second_moment": (
        "row_norm=1, target_bound=1",
        lambda r, a: r.second_moment(1.0, 1.0, adjacency=a),
    ),
    "statistics.binned_residuals": (
        "2 bins, residual_half_width=1",
        lambda r, a: statistics.binned_residuals(r.restricted([0, 1]), [0.0], 1.0, adjacency=a),
    ),
    "statistics.cbow_gradient": (
        "clip_norm=1",
        lambda r, a: statistics.cbow_gradient(
            PrivateRecords(np.ones((2, 3), dtype=np.float32)),
            np.ones((1, 2)),
            1.0,
            negatives=Negatives.by_weights(1, [1.0]),
            key=0,
        ),
    ),
    "statistics.cell_sums": (
        "identity matrices of 2 cells, grid=1",
        lambda r, a: statistics.cell_sums(r, [np.eye(2, dtype=np.int64)] * N_FEATURES, 1.0, adjacency=a),
    ),
    "statistics.class_counts": ("2 classes", lambda r, a: statistics.class_counts(r, 2, adjacency=a)),
    "statistics.column_moments": (
        "half_width=1, present=1, squares=1",
        lambda r, a: statistics.column_moments(r, 0.0, 1.0, present=1.0, squares=1.0, adjacency=a),
    ),
    "statistics.gradient_scores": (
        "clip_norm=1",
        lambda r, a: statistics.gradient_scores(r, LOGISTIC, THETA, 1.0),
    ),
    "statistics.magnitude_counts": (
        "bins from 2^-2 to 2^2",
        lambda r, a: statistics.magnitude_counts(r, -2, 2, adjacency=a),
    ),
    "statistics.mean_losses": (
        "1 candidate, bound=1",
        lambda r, a: statistics.mean_losses(r, LOGISTIC, THETA[None], 1.0),
    ),
    "statistics.mean_sup_gradient": (
        "clip_norm=1",
        lambda r, a: statistics.mean_sup_gradient(r, LOGISTIC, THETA, 1.0),
    ),
    "statistics.recursive_gradient": (
        "momentum=0.1, clip_norm=1, clip_diff_norm=0.1",
        lambda r, a: statistics.recursive_gradient(
            r, LOGISTIC, THETA, THETA, momentum=0.1, clip_norm=1.0, clip_diff_norm=0.1
        ),
    ),
    "statistics.residual_moments": (
        "half-widths 1, weights 1",
        lambda r, a: statistics.residual_moments(r.restricted([0, 1]), *WINDOW, np.ones(5), adjacency=a),
    ),
    "statistics.residual_squares": (
        "half-widths 1, influence=(1, 1, 0)",
        lambda r, a: statistics.residual_squares(
            r.restricted([0, 1]), *WINDOW, (1.0, 1.0, 0.0), [0, 1], adjacency=a
        ),
    ),
    "statistics.ridge_minimizer": (
        "alpha=0.1, row_norm=1",
        lambda r, a: statistics.ridge_minimizer(r, LOGISTIC, alpha=0.1, row_norm=1.0, adjacency=a),
    ),
    "statistics.step_scores": (
        "clip_norm=1, learning_rate=0.5",
        lambda r, a: statistics.step_scores(r, LOGISTIC, THETA, 1.0, 0.5),
    ),
    "statistics.support_votes": (
        "4 blocks, n_nonzero_coefs=1",
        lambda r, a: statistics.support_votes(r, LOGISTIC, 1, blocks(r), adjacency=a),
    ),
    "statistics.target_count": ("bound=1", lambda r, a: statistics.target_count(r, 1.0)),
}


def function_of(name: str) -> Callable[..., object]:
    """The documented method or function."""
    owner, _, attribute = name.partition(".")
    found: Callable[..., object] = getattr(
        {"PrivateRecords": PrivateRecords, "statistics": statistics}[owner], attribute
    )
    return found


def described(name: str) -> str:
    """The summary of the docstring, and the sentence of its section Returns."""
    doc = inspect.getdoc(function_of(name)) or ""
    summary = doc.partition("\n\n")[0]
    found = re.search(r"Returns\n-+\nBoundedStatistic\n((?: +.*\n?)+)", doc)
    returned = "" if found is None else " ".join(found[1].split())
    return " ".join(f"{summary} {returned}".split())


def sensitivities(statistic: BoundedStatistic, adjacency: str) -> str:
    """The three norms of the largest change between neighbours, with three digits."""
    times = 1.0 if statistic.adjacency else factor(adjacency)
    return "; ".join(f"{times * bound:.3g}" for bound in (statistic.l1, statistic.l2, statistic.linf))


def text() -> str:
    """The table as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEAD)
    for name, (arguments, call) in EXAMPLES.items():
        found = [sensitivities(call(records(a), a), a) for a in ("replace-one", "add-remove")]
        writer.writerow([f":obj:`~skdp.privacy.{name}`", described(name), arguments, *found])
    return out.getvalue()


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
