"""The fits behind the functions: each releases its statistic through a session, as any private estimator."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdp.base.column_search import (
    Window,
    noise_of_a_count,
    released_magnitudes,
    released_points,
    released_quantiles,
    released_window,
)
from skdp.base.columns import ColumnFit, ColumnProblem, column_numbers, per_column
from skdp.base.fit import Solution
from skdp.base.parameters import check_number
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["Count", "Histogram", "Mean", "Quantile"]

# Choices, not tuned: shares of mu^2 for what is searched first, where no bounds are given.
WINDOW_SHARE = 0.4  # of a mean and a histogram
SHARES = (0.25, 0.2, 0.15, 0.4)  # of a quantile: magnitudes, a coarse line, distances, a fine line
MEAN_TAIL = (
    0.005  # part of the values that a mean's window may clip, if the noise allows to count so few
)
LINE_POINTS, FINE_POINTS = (
    8193,
    1025,
)  # most points of the line between given bounds, and of the fine line
LINE_CELLS = 2**20  # most points of all columns


@dataclass(kw_only=True, eq=False, repr=False)
class _Statistic(ColumnFit):
    """What the four share: the parameters of privacy, and the value that is kept."""

    bounds: Any = None
    epsilon: float = 1.0
    delta: float = 1e-5
    adjacency: str = "replace-one"
    unit: str = "record"
    n_public: int | None = None
    accountant: Any = None
    random_state: Any = None

    def _noise_parameters(self) -> dict[str, object]:
        """Two statistics may have the same parameters, and must not share the noise of one seed."""
        return {**super()._noise_parameters(), "statistic": type(self).__name__}

    def _solution(self, value: Any, noise: Any, **more: Any) -> Solution:
        value = np.asarray(value, dtype=np.float64)
        return Solution(value, 1, {"value_": value, "noise_std_": noise, **more})

    def _window(
        self, session: PrivacySession, records: PrivateRecords, tail: float
    ) -> tuple[Window, float]:
        """Return the given window or a released one, and the share that is left."""
        given = per_column("bounds", self.bounds, records.n_features)
        if given is not None:
            return Window.between(*given), 1.0
        found = released_window(session, records, WINDOW_SHARE, tail=tail, least=(tail, tail))
        return found, 1.0 - WINDOW_SHARE


class Mean(_Statistic):
    """The mean of each column, its values clipped to bounds."""

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the sum of the clipped values, divided by the public number of units."""
        records = problem.records
        window, left = self._window(session, records, MEAN_TAIL)
        sums = records.column_sums(window.center, window.reach)
        plan = session.plan_gaussian(1, left, purpose="means")
        mean = np.clip(session.gaussian(sums, plan) / records.n_units, -1.0, 1.0)
        noise = window.reach * session.noise_std(sums, plan) / records.n_units
        value = window.center + window.reach * mean
        return self._solution(value, noise, bounds_=window.bounds)


@dataclass(kw_only=True, eq=False, repr=False)
class Quantile(_Statistic):
    """A quantile of each column."""

    q: Any = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("q", self.q, Real, low=0, strict=True)
        if not self.q < 1:
            raise ValueError(f"q must be between 0 and 1, both excluded, got {self.q!r}")

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release a point of an even grid between the bounds; without bounds, between released magnitudes."""
        records, q = problem.records, float(self.q)
        d = records.n_features
        given = per_column("bounds", self.bounds, d)
        if given is None:
            # The quantile at q lies within that of |x| at the larger of q and 1 - q.
            sizes = released_magnitudes(session, records, SHARES[0], least=min(q, 1.0 - q))
            window = Window(np.zeros(d), math.sqrt(2) * sizes)
            points = min(FINE_POINTS, max(97, LINE_CELLS // d)) | 1
            value, _, plan = released_quantiles(
                session, records, SHARES[1:], q, window, points=points
            )
        else:
            window = Window.between(*given)
            points = min(LINE_POINTS, max(97, LINE_CELLS // d)) | 1
            grid = window.center + window.reach * np.linspace(-1.0, 1.0, points)[:, None]
            plan = session.plan_gaussian((points - 1).bit_length() + 3, purpose="quantiles")
            value = released_points(session, records, plan, grid, q)
        noise = noise_of_a_count(session, records, plan)
        return self._solution(value, noise, bounds_=window.bounds)


class Count(_Statistic):
    """The number of units whose value lies between the bounds, both included."""

    _finite_bounds = False

    def _searches(self) -> bool:
        return False

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release a histogram of one bin."""
        records = problem.records
        given = per_column("bounds", self.bounds, records.n_features, finite=False)
        everything = np.full(records.n_features, math.inf)
        edges = np.stack((-everything, everything) if given is None else given, axis=1)
        counts = records.histogram(edges, adjacency=session.adjacency)
        plan = session.plan_gaussian(1, purpose="counts")
        value = session.gaussian(counts, plan)[:, 0]
        return self._solution(value, session.noise_std(counts, plan), bounds_=given)


@dataclass(kw_only=True, eq=False, repr=False)
class Histogram(_Statistic):
    """The number of units in public bins, or in even bins between bounds."""

    bins: Any = 10

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.bins, Integral):
            check_number("bins", self.bins, Integral, low=1, high=10**6)
            return
        edges = column_numbers("bins", self.bins)
        if edges.ndim != 1 or edges.size < 2 or not (edges[1:] > edges[:-1]).all():
            raise ValueError("bins must be a number of bins, or at least two edges that increase")
        if self.bounds is not None:
            raise ValueError("bounds are not used where bins are edges: leave one of them out")

    def _searches(self) -> bool:
        return self.bounds is None and isinstance(self.bins, Integral)

    def _values_per_column(self) -> int:
        bins = int(self.bins) if isinstance(self.bins, Integral) else len(self.bins)
        return super()._values_per_column() + bins

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the counts of all bins of all columns together."""
        records, left = problem.records, 1.0
        if isinstance(self.bins, Integral):
            window, left = self._window(session, records, MEAN_TAIL)
            low, high = window.bounds
            edges = np.linspace(low, high, int(self.bins) + 1, axis=1)
        else:
            given = column_numbers("bins", self.bins)
            edges = np.array(np.broadcast_to(given, (records.n_features, given.size)))
        counts = records.histogram(edges, adjacency=session.adjacency)
        plan = session.plan_gaussian(1, left, purpose="histogram")
        value = session.gaussian(counts, plan)
        noise = session.noise_std(counts, plan)
        return self._solution(value, noise, bounds_=None, bin_edges_=edges)
