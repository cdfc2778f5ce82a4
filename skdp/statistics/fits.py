"""The fits behind the functions: each releases its statistic through a session, as any private estimator."""

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, cast

import numpy as np

from skdp.base.column_search import (
    QUESTIONS,
    Present,
    Window,
    least_tails,
    noise_of_a_count,
    noise_of_levels,
    quantile_steps,
    released_levels,
    released_magnitudes,
    released_points,
    released_quantiles,
    released_window,
    window_steps,
)
from skdp.base.declare import changed, parameter
from skdp.base.kinds import check_number, described, flag
from skdp.base.plan import Decision, Step, gaussian_steps
from skdp.base.problem import Solution
from skdp.fitting.columns import ColumnFit, ColumnProblem, check_bounds, column_numbers, per_column
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape
from skdp.statistics.calls import as_table, is_column
from skdp.statistics.column_moments import ColumnMoments, Counted, released_counts, released_once

# Choices, not tuned: shares of mu^2 for the searches that come first, where no bounds are given.
WINDOW_SHARE = 0.4  # share for the window of a mean or a histogram
SHARES = (0.25, 0.2, 0.15, 0.4)  # of a quantile's searches: magnitudes, a coarse line, distances, a fine line
MEAN_TAIL = 0.005  # part of the values that a mean's window may clip, if the noise allows to count so few
LINE_POINTS, FINE_POINTS = (8193, 1025)  # most points of the line between given bounds, and of the fine line
LINE_CELLS = 2**20  # most points of all columns
BEND = 5.0  # of a line that is finer in its middle: by 15 there, and as fine as an even one at 1/5 of its length
SPARE = 16  # points of a line for each level that its noise can tell apart
EXTRA_QUESTIONS = 2  # of a search for several levels, beyond a bisection of its line
CAUTION = 2.0  # standard deviations by which a window's search takes fewer values than were counted
COUNT_SHARE = 0.05  # of mu^2, for the number of values that are there, with ``skipna`` or under add-remove


@dataclass(frozen=True)
class Shares:
    """Shares of mu^2 that a statistic gives to its releases; 0 is no such release.

    Attributes
    ----------
    counts : float
        For the number of values that are there.
    window : float
        For the searches of a window.
    value : float
        For the statistic itself.
    """

    counts: float
    window: float
    value: float


class Statistic(ColumnFit):
    """Base of all statistics: missing values, and the value that is kept."""

    _purpose = ""  # of the release of the value
    _key_names_class = True

    skipna: bool = parameter(flag(), "Whether NaN is a missing value.", default=False, releases="unless default")

    @property
    def _record_checks(self) -> str:  # type: ignore[override]
        return "finite or missing, numeric" if self.skipna else "finite, numeric"

    def _read_block(self, X: object, y: object = None, groups: object = None, **more: object) -> ColumnProblem:
        column = is_column(X)
        problem = self.read(as_table(X) if column else X, y, groups, **more)
        return replace(problem, fitted={**problem.fitted, "is_column_": column})

    def _solution(self, value: object, noise: object, counted: Counted | None = None, **more: object) -> Solution:
        value = np.asarray(value, dtype=np.float64)
        if counted is not None:
            more.update(count_=counted.value, count_noise_std_=counted.noise_std)
        return Solution(value, 1, {"value_": value, "noise_std_": noise, **more})

    def _counts_first(self) -> bool:
        """Whether the numbers of values that are there are released first, where they are private."""
        return self._searches()

    def _decide(self, session: PrivacySession, problem: ColumnProblem) -> Decision:
        # Under add-remove ``n_public`` may be some percent off, and a search for a quantile near the end of a
        # column would not find one: it would end at the end of its grid.
        private = self.skipna or self.adjacency == "add-remove"
        counts = COUNT_SHARE if private and self._counts_first() else 0.0
        left = 1.0 - counts
        searches = self._searches_in_window()
        window = WINDOW_SHARE * left if searches else 0.0
        shares = Shares(counts, window, (1.0 - WINDOW_SHARE) * left if searches else left)
        steps = (
            *gaussian_steps(session, ("counts", counts, 1)),
            *window_steps(session, window),
            *self._value_steps(session, problem, shares.value),
        )
        return replace(super()._decide(session, problem), steps=steps, details=shares)

    def _searches_in_window(self) -> bool:
        """Whether a window of all columns is searched for first."""
        return self._searches()

    def _value_steps(self, session: PrivacySession, problem: ColumnProblem, share: float) -> tuple[Step, ...]:
        """The releases of the value."""
        return gaussian_steps(session, (self._purpose, share, 1))

    def _counted(self, session: PrivacySession, problem: ColumnProblem) -> Counted | None:
        share = _shares(problem).counts
        return released_counts(session, problem.records, share) if share else None

    def _window(
        self,
        session: PrivacySession,
        problem: ColumnProblem,
        counted: Counted | None = None,
        tail: float = MEAN_TAIL,
    ) -> Window:
        """Return the given window or a released one."""
        records, share = problem.records, _shares(problem).window
        if not share:
            given = per_column("bounds", self.bounds, records.n_features)
            return Window.between(*cast("tuple[np.ndarray, np.ndarray]", given))
        present = Present()
        if counted is not None:
            present = counted.present(records.n_units, missing=self.skipna, less=CAUTION)
        least = least_tails(session, records, share, tail)
        return released_window(session, records, share, tail=tail, least=least, present=present)


def _shares(problem: ColumnProblem) -> Shares:
    return cast("Shares", problem.decision.details)


class Mean(Statistic):
    """The mean of each column, its values clipped to bounds."""

    @property
    def _purpose(self) -> str:  # type: ignore[override]
        return "moments" if self.skipna else "means"

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the sum of the clipped values, divided by the public number of units."""
        records = problem.records
        if self.skipna:
            return self._of_moments(session, problem)
        window = self._window(session, problem, self._counted(session, problem))
        sums = records.column_sums(window.center, window.half_width)
        total, noise = released_once(session, sums, "means", _shares(problem).value)
        value = window.center + window.half_width * np.clip(total / records.n_units, -1.0, 1.0)
        return self._solution(value, window.half_width * noise / records.n_units, bounds_=window.bounds)

    def _of_moments(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release sums and numbers of the values that are there, and divide them."""
        counted, share = self._counted(session, problem), _shares(problem).value
        window = self._window(session, problem, counted)
        found = ColumnMoments.released(session, problem.records, window, share, counted=counted, squares=False)
        return self._solution(*found.mean(), found.counted, bounds_=window.bounds)


class Var(Statistic):
    """The variance of each column, its values clipped to bounds."""

    _purpose = "moments"

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the sums of the clipped values and of their squares; with ``skipna`` their numbers, too."""
        records, share = problem.records, _shares(problem).value
        counted = self._counted(session, problem)
        window = self._window(session, problem, counted)
        known = None if self.skipna else Counted.known(records)
        found = ColumnMoments.released(session, records, window, share, counted=counted or known)
        counted = found.counted if self.skipna else None
        return self._solution(*self._of(found), counted, bounds_=window.bounds)

    def _of(self, found: ColumnMoments) -> tuple[object, object]:
        return found.variance()


class Std(Var):
    """The standard deviation of each column, its values clipped to bounds."""

    def _of(self, found: ColumnMoments) -> tuple[object, object]:
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

    q: Any = parameter(described("float in (0, 1), or several", _check_levels), "The levels.", default=0.5)

    def _values_per_column(self) -> int:
        return super()._values_per_column() + 32 * (np.size(self.q) + 1)

    def _counts_first(self) -> bool:
        return True

    def _searches_in_window(self) -> bool:
        return self._searches() and bool(np.ndim(self.q))

    def _points(self, d: int) -> int:
        """Points of the last line of one level."""
        most = FINE_POINTS if self.bounds is None else LINE_POINTS
        return min(most, max(97, LINE_CELLS // d)) | 1

    def _value_steps(self, session: PrivacySession, problem: ColumnProblem, share: float) -> tuple[Step, ...]:
        shape = problem.records.shape
        points = self._points(shape.n_features)
        if np.ndim(self.q):
            levels = np.unique(column_numbers("q", self.q)).size
            points = points_of_levels(session, shape, share, levels)
            return gaussian_steps(session, ("quantiles", share, questions_of_levels(points)))
        if self.bounds is not None:
            return gaussian_steps(session, ("quantiles", share, (points - 1).bit_length() + 3))
        first, *rest = _shares_of_searches(share)
        window = gaussian_steps(session, ("window", first, QUESTIONS[0]))
        return window + quantile_steps(session, (rest[0], rest[1], rest[2]), points)

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release a point of an even grid between the bounds; without bounds, between released magnitudes."""
        counted, left = self._counted(session, problem), _shares(problem).value
        if np.ndim(self.q):
            return self._several(session, problem, counted)
        records, q = problem.records, float(self.q)
        present = Present()
        if counted is not None:
            present = counted.present(records.n_units, missing=self.skipna)
        d = records.n_features
        given, points = per_column("bounds", self.bounds, d), self._points(d)
        if given is None:
            shares = _shares_of_searches(left)
            # The quantile at q is in absolute value at most the quantile of |x| at the larger of q and 1 - q.
            least = min(q, 1.0 - q)
            sizes = released_magnitudes(session, records, shares[0], least=least, present=present)
            window = Window(np.zeros(d), math.sqrt(2) * sizes)
            value, _, plan = released_quantiles(
                session, records, (shares[1], shares[2], shares[3]), q, window, points=points,
                present=present,
            )  # fmt: skip
        else:
            window = Window.between(*given)
            grid = window.center + window.half_width * np.linspace(-1.0, 1.0, points)[:, None]
            questions = (points - 1).bit_length() + 3
            plan = session.plan_gaussian(questions, left, purpose="quantiles")
            value = released_points(session, records, plan, grid, q, present=present)
        noise = noise_of_a_count(session, records, plan)
        return self._solution(value, noise, counted, bounds_=window.bounds)

    def _several(self, session: PrivacySession, problem: ColumnProblem, counted: Counted | None) -> Solution:
        """Search for all levels at once in the bounds, or in a released window that holds the outer ones."""
        levels, of = np.unique(column_numbers("q", self.q), return_inverse=True)
        tail = min(MEAN_TAIL, levels[0] / 2, (1.0 - levels[-1]) / 2)
        window, records = self._window(session, problem, counted, tail), problem.records
        found, noise = quantiles_in(session, records, window, levels, _shares(problem).value, self._searches())
        return self._solution(found[of].T, noise[of], counted, bounds_=window.bounds)


def _shares_of_searches(share: float) -> list[float]:
    """Shares of the searches for one level, if no bounds are given."""
    return [part * share for part in SHARES]


def questions_of_levels(points: int) -> int:
    """Noisy counts of one search for several levels on a line of so many points."""
    return (points - 1).bit_length() + EXTRA_QUESTIONS


def points_of_levels(session: PrivacySession, shape: PublicShape, share: float, n_levels: int) -> int:
    """Points of the line of a search for several levels."""
    d = shape.n_features
    # More points than the noise can tell apart in an even column, since values may stand close together.
    told = SPARE * shape.n_units * session.mu * math.sqrt(share / d)
    most = min(LINE_POINTS, max(FINE_POINTS, 2 ** math.ceil(math.log2(max(1.0, min(told, 1e6)))) + 1))
    return max(min(most, max(97, LINE_CELLS // (d * n_levels))), 2 * n_levels) | 1


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
    points = points_of_levels(session, records.shape, share, levels.size)
    line = np.linspace(-1.0, 1.0, points)[:, None]
    bent = np.sinh(BEND * line) / math.sinh(BEND)
    grid = window.center + window.half_width * np.where(searched, bent, line)
    plan = session.plan_gaussian(questions_of_levels(points), share, purpose="quantiles")
    found = released_levels(session, records, plan, grid, levels)
    return found, noise_of_levels(session, records, plan, levels)


class Count(Statistic):
    """The number of units whose value lies between the bounds, both included."""

    bounds = changed(
        kind=described("tuple of (low, high)", lambda name, given: check_bounds(given, finite=False, name=name))
    )
    _finite_bounds = False
    _purpose = "counts"

    def _searches(self) -> bool:
        return False

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release a histogram of one bin."""
        records = problem.records
        given = per_column("bounds", self.bounds, records.n_features, finite=False)
        everything = np.full(records.n_features, math.inf)
        edges = np.stack((-everything, everything) if given is None else given, axis=1)
        counts = records.histogram(edges, adjacency=session.adjacency)
        value, noise = released_once(session, counts, "counts")
        return self._solution(value[:, 0], noise, bounds_=given)


def _check_bins(name: str, given: object) -> None:
    if isinstance(given, Integral):
        check_number(name, given, Integral, low=1, high=10**6)
        return
    edges = column_numbers(name, given)
    if edges.ndim != 1 or edges.size < 2 or not (edges[1:] > edges[:-1]).all():
        raise ValueError(f"{name} must be a number of bins, or at least two edges that increase")


class Histogram(Statistic):
    """The number of units in public bins, or in even bins between bounds."""

    bins: Any = parameter(
        described("int or array-like of float", _check_bins), "Number of even bins, or public edges.", default=10
    )

    _purpose = "histogram"

    def _counts_first(self) -> bool:
        return self.skipna or self._searches()

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
        records, counted = problem.records, self._counted(session, problem)
        if isinstance(self.bins, Integral):
            window = self._window(session, problem, counted)
            low, high = window.bounds
            edges = np.linspace(low, high, int(self.bins) + 1, axis=1)
        else:
            given = column_numbers("bins", self.bins)
            edges = np.array(np.broadcast_to(given, (records.n_features, given.size)))
        counts = records.histogram(edges, adjacency=session.adjacency)
        value, noise = released_once(session, counts, "histogram", _shares(problem).value)
        return self._solution(value, noise, counted, bounds_=None, bin_edges_=edges)
