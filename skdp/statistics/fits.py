"""The fits behind the functions: each releases its statistic through a session, as any private estimator."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from skdp.base.column_search import (
    Present,
    Window,
    least_tails,
    noise_of_a_count,
    released_magnitudes,
    released_points,
    released_quantiles,
    released_window,
)
from skdp.base.declare import changed, parameter
from skdp.base.fit import Solution
from skdp.base.kinds import described, flag
from skdp.base.level_search import noise_of_levels, released_levels
from skdp.base.parameters import check_number
from skdp.fitting.columns import ColumnFit, ColumnProblem, check_bounds, column_numbers, per_column
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.statistics.moments import Counted, Moments, released_counts

__all__ = ["Count", "Histogram", "Mean", "Quantile", "Statistic", "Std", "Var", "quantiles_in"]

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
BEND = 5.0  # of a line that is finer in its middle: by 15 there, and as fine as an even one at 1/5 of its length
SPARE = 16  # points of a line for each level that its noise can tell apart
EXTRA_QUESTIONS = 2  # of a search for several levels, beyond a bisection of its line
CAUTION = 2.0  # standard deviations by which a window's search takes fewer values than were counted
COUNT_SHARE = (
    0.05  # of mu^2, for the number of values that are there, with ``skipna`` or under add-remove
)


class Statistic(ColumnFit):
    """What all statistics share: missing values, and the value that is kept."""

    skipna: bool = parameter(flag(), "Whether NaN is a missing value.", default=False)

    @property
    def _record_checks(self) -> str:  # type: ignore[override]
        return "finite or missing, numeric" if self.skipna else "finite, numeric"

    def _noise_parameters(self) -> dict[str, object]:
        """Two statistics may have the same parameters, and must not share the noise of one seed."""
        given = super()._noise_parameters()
        return {
            **{name: value for name, value in given.items() if name != "skipna" or value},
            "statistic": type(self).__name__,
        }

    def _solution(
        self, value: Any, noise: Any, counted: Counted | None = None, **more: Any
    ) -> Solution:
        value = np.asarray(value, dtype=np.float64)
        if counted is not None:
            more.update(count_=counted.value, count_noise_std_=counted.noise_std)
        return Solution(value, 1, {"value_": value, "noise_std_": noise, **more})

    def _counted(
        self, session: PrivacySession, records: PrivateRecords
    ) -> tuple[Counted | None, float]:
        """Release the numbers of values that are there, where they are private; return also what share is left.
        Under add-remove ``n_public`` may be some percent off, and a search for a quantile near the end of a
        column would not find one: it would end at the end of its grid."""
        if not self.skipna and session.adjacency != "add-remove":
            return None, 1.0
        return released_counts(session, records, COUNT_SHARE), 1.0 - COUNT_SHARE

    def _window(
        self,
        session: PrivacySession,
        records: PrivateRecords,
        counted: Counted | None = None,
        left: float = 1.0,
        tail: float = MEAN_TAIL,
    ) -> tuple[Window, float]:
        """Return the given window or a released one, and the share that is left."""
        given = per_column("bounds", self.bounds, records.n_features)
        if given is not None:
            return Window.between(*given), left
        present = Present()
        if counted is not None:
            present = counted.present(records.n_units, missing=self.skipna, less=CAUTION)
        share = WINDOW_SHARE * left
        least = least_tails(session, records, share, tail)
        found = released_window(session, records, share, tail=tail, least=least, present=present)
        return found, (1.0 - WINDOW_SHARE) * left


class Mean(Statistic):
    """The mean of each column, its values clipped to bounds."""

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the sum of the clipped values, divided by the public number of units."""
        records = problem.records
        if self.skipna:
            return self._of_moments(session, records)
        counted, left = self._counted(session, records) if self.bounds is None else (None, 1.0)
        window, left = self._window(session, records, counted, left)
        sums = records.column_sums(window.center, window.reach)
        plan = session.plan_gaussian(1, left, purpose="means")
        mean = np.clip(session.gaussian(sums, plan) / records.n_units, -1.0, 1.0)
        noise = window.reach * session.noise_std(sums, plan) / records.n_units
        value = window.center + window.reach * mean
        return self._solution(value, noise, bounds_=window.bounds)

    def _of_moments(self, session: PrivacySession, records: PrivateRecords) -> Solution:
        """Release sums and numbers of the values that are there, and divide them."""
        searched = self.bounds is None
        counted, left = self._counted(session, records) if searched else (None, 1.0)
        window, left = self._window(session, records, counted, left)
        found = Moments.released(session, records, window, left, counted=counted, squares=False)
        return self._solution(*found.mean(), found.counted, bounds_=window.bounds)


class Var(Statistic):
    """The variance of each column, its values clipped to bounds."""

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the sums of the clipped values and of their squares; with ``skipna`` their numbers, too."""
        records = problem.records
        counted, left = self._counted(session, records) if self._searches() else (None, 1.0)
        window, left = self._window(session, records, counted, left)
        known = None if self.skipna else Counted.known(records)
        found = Moments.released(session, records, window, left, counted=counted or known)
        counted = found.counted if self.skipna else None
        return self._solution(*self._of(found), counted, bounds_=window.bounds)

    def _of(self, found: Moments) -> tuple[Any, Any]:
        return found.variance()


class Std(Var):
    """The standard deviation of each column, its values clipped to bounds."""

    def _of(self, found: Moments) -> tuple[Any, Any]:
        return found.std()


def _check_levels(name: str, given: Any) -> None:
    if np.ndim(given) == 1 and not isinstance(given, str | bytes):
        levels = column_numbers(name, given)
        if not (levels.size and ((levels > 0) & (levels < 1)).all()):
            raise ValueError(f"{name} must be a number between 0 and 1, both excluded, or several")
        return
    check_number(name, given, Real, low=0, strict=True)
    if not given < 1:
        raise ValueError(f"{name} must be between 0 and 1, both excluded, got {given!r}")


class Quantile(Statistic):
    """A quantile of each column, or several of them."""

    q: Any = parameter(
        described("float in (0, 1), or several", _check_levels), "The levels.", default=0.5
    )

    def _values_per_column(self) -> int:
        return super()._values_per_column() + 32 * (np.size(self.q) + 1)

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release a point of an even grid between the bounds; without bounds, between released magnitudes."""
        counted, left = self._counted(session, problem.records)
        if np.ndim(self.q):
            return self._several(session, problem.records, counted, left)
        records, q = problem.records, float(self.q)
        present = Present()
        if counted is not None:
            present = counted.present(records.n_units, missing=self.skipna)
        d = records.n_features
        given = per_column("bounds", self.bounds, d)
        if given is None:
            shares = [part * left for part in SHARES]
            # The quantile at q lies within that of |x| at the larger of q and 1 - q.
            least = min(q, 1.0 - q)
            sizes = released_magnitudes(session, records, shares[0], least=least, present=present)
            window = Window(np.zeros(d), math.sqrt(2) * sizes)
            points = min(FINE_POINTS, max(97, LINE_CELLS // d)) | 1
            value, _, plan = released_quantiles(
                session, records, (shares[1], shares[2], shares[3]), q, window, points=points,
                present=present,
            )  # fmt: skip
        else:
            window = Window.between(*given)
            points = min(LINE_POINTS, max(97, LINE_CELLS // d)) | 1
            grid = window.center + window.reach * np.linspace(-1.0, 1.0, points)[:, None]
            questions = (points - 1).bit_length() + 3
            plan = session.plan_gaussian(questions, left, purpose="quantiles")
            value = released_points(session, records, plan, grid, q, present=present)
        noise = noise_of_a_count(session, records, plan)
        return self._solution(value, noise, counted, bounds_=window.bounds)

    def _several(
        self, session: PrivacySession, records: PrivateRecords, counted: Counted | None, left: float
    ) -> Solution:
        """Search for all levels at once in the bounds, or in a released window that holds the outer ones."""
        levels, of = np.unique(column_numbers("q", self.q), return_inverse=True)
        tail = min(MEAN_TAIL, levels[0] / 2, (1.0 - levels[-1]) / 2)
        window, left = self._window(session, records, counted, left, tail)
        searched = self.bounds is None
        found, noise = quantiles_in(session, records, window, levels, left, searched)
        return self._solution(found[of].T, noise[of], counted, bounds_=window.bounds)


def quantiles_in(
    session: PrivacySession,
    records: PrivateRecords,
    window: Window,
    levels: np.ndarray,
    share: float,
    searched: np.ndarray | bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Release quantiles of several ascending levels in a window; return also the noise of each level.

    Parameters
    ----------
    searched : ndarray of bool of shape (n_features,), or bool
        Where the window was searched for: its centre then is a median, and the grid is finer near it, for columns
        with long tails.

    Returns
    -------
    quantiles : ndarray of shape (n_levels, n_features)
    noise_std : ndarray of shape (n_levels,)
        Of a level, as a share of the units.
    """
    d = records.n_features
    # More points than the noise can tell apart in an even column, since values may stand close together.
    told = SPARE * records.n_units * session.mu * math.sqrt(share / d)
    most = min(
        LINE_POINTS, max(FINE_POINTS, 2 ** math.ceil(math.log2(max(1.0, min(told, 1e6)))) + 1)
    )
    points = max(min(most, max(97, LINE_CELLS // (d * levels.size))), 2 * levels.size) | 1
    line = np.linspace(-1.0, 1.0, points)[:, None]
    bent = np.sinh(BEND * line) / math.sinh(BEND)
    grid = window.center + window.reach * np.where(searched, bent, line)
    questions = (points - 1).bit_length() + EXTRA_QUESTIONS
    plan = session.plan_gaussian(questions, share, purpose="quantiles")
    found = released_levels(session, records, plan, grid, levels)
    return found, noise_of_levels(session, records, plan, levels)


class Count(Statistic):
    """The number of units whose value lies between the bounds, both included."""

    bounds = changed(
        kind=described(
            "tuple of (low, high)",
            lambda name, given: check_bounds(given, finite=False, name=name),
        )
    )
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


def _check_bins(name: str, given: Any) -> None:
    if isinstance(given, Integral):
        check_number(name, given, Integral, low=1, high=10**6)
        return
    edges = column_numbers(name, given)
    if edges.ndim != 1 or edges.size < 2 or not (edges[1:] > edges[:-1]).all():
        raise ValueError(f"{name} must be a number of bins, or at least two edges that increase")


class Histogram(Statistic):
    """The number of units in public bins, or in even bins between bounds."""

    bins: Any = parameter(
        described("int or array-like of float", _check_bins),
        "Number of even bins, or public edges.",
        default=10,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.bounds is not None and not isinstance(self.bins, Integral):
            raise ValueError("bounds are not used where bins are edges: leave one of them out")

    def _searches(self) -> bool:
        return self.bounds is None and isinstance(self.bins, Integral)

    def _values_per_column(self) -> int:
        bins = int(self.bins) if isinstance(self.bins, Integral) else len(self.bins)
        return super()._values_per_column() + bins

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the counts of all bins of all columns together."""
        records = problem.records
        counted, left = None, 1.0
        if self.skipna or self._searches():
            counted, left = self._counted(session, records)
        if isinstance(self.bins, Integral):
            window, left = self._window(session, records, counted, left)
            low, high = window.bounds
            edges = np.linspace(low, high, int(self.bins) + 1, axis=1)
        else:
            given = column_numbers("bins", self.bins)
            edges = np.array(np.broadcast_to(given, (records.n_features, given.size)))
        counts = records.histogram(edges, adjacency=session.adjacency)
        plan = session.plan_gaussian(1, left, purpose="histogram")
        value = session.gaussian(counts, plan)
        noise = session.noise_std(counts, plan)
        return self._solution(value, noise, counted, bounds_=None, bin_edges_=edges)
