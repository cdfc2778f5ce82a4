"""Columns in units of their own: reaches, means and deviations are released; the model stays linear in x.

1. Reach. Each column's records are counted by octaves of their magnitude. Which octave is the highest is a
   posterior: columns share a prior, and the reach is the upper end of a high quantile. Too large a reach costs
   accuracy; one that is too small would make rows of the column enormous. A column of which the posterior knows
   little is left out: its coefficients are 0.
2. Moments of u = x / reach: the second moments of the rows (u, 1), moved towards their mean over the columns.
3. Columns that look standardized are taken as they are.
4. Zoom, for columns far from 0 whose variance is lost in the noise, such as years: histograms find a window
   around their values.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.linear_model.front.octaves import HIGH, LOW, posterior_of_tops
from skdp.linear_model.front.shares import Shares, gaussian_mu
from skdp.linear_model.front.windows import NARROW, narrowed, released_spread
from skdp.privacy import PrivateRecords, Standardization

__all__ = ["Columns", "released_reaches", "standardize"]

ZOOM, PRESENT = 0.06, 0.01  # shares of mu^2
MISSED = 4.0  # standard deviations of a count by which values must be missing
LEAST_PRESENT = 0.05  # of a column
# Standard deviations of the noise that a higher octave needs, more for each octave that it is higher, and at most.
# Codes for missing answers, such as 999, may lie far above.
EVIDENCE_HIGHER, EVIDENCE_MORE, NEXT = 2.5, 0.5, 4
# From `NEXT` octaves on, with HIGH - LOW + 1 looks a column: the normal tail beyond it, times the looks, is below 1e-5.
SURELY = 5.5
# Least mean square of a cut column over its squared window; and standard deviations of its noise that an octave's count
# must show to take part in this mean.
FILLED, SHOWN = 0.1, 1.5
MEAN_SQUARE = 7.0 / 12.0  # of cells that are uniform in an octave, over its squared end
MARGIN = 1.25  # of a reach
UPPER = 0.95  # quantile of the highest octave that becomes the reach
NEAR, SURE = 2, 0.8  # octaves around it; least probability that they hold the highest one
TYPICAL = 0.1  # mean square of a column in its reach
LEAST_WEIGHT = 0.2  # of the records, after rows were scaled down
FLOOR = 0.5  # of a variance whose noise is large, over the typical variance
# Deviations, and means over them, of columns that look standardized; part of the columns that must; and least
# deviation that is then taken for the bulk of a standardized column.
USUAL, CLOSE, PART, BULK = (0.6, 1.6), 0.4, 0.22, 1 / 256
LEAST_VARIANCE = 1e-6  # of a column over its squared reach
# A mean square of u over the largest one that can be released, above which the column is given up: most values lie
# beyond the reach, which then is an error of noise.
OUTSIDE = 0.5
FAR = 0.6  # part of the records in the two highest octaves
UNSEEN = 4.0  # deviations of the variance's noise
ZOOM_PARTS = (0.7, 0.3)  # of the share of a zoom: histograms, moments
LOOK, LEAST_LOOK = (
    14.0,
    1e-4,
)  # units of noise in a histogram that finds a window; its least share of mu^2
CLEAR = 0.2  # part of the units: a histogram whose noise is larger would not find a window
GIVEN_UP, SPREAD = 8.0, 2.0  # evidence for an atom that is too much, and for none that is enough


@dataclass
class Columns:
    """What is released of the columns.

    Attributes
    ----------
    center, reach : ndarray of shape (n_features,)
        Of the windows; reach is inf for columns that are not seen.
    mean, deviation : ndarray of shape (n_features,)
        Of u = (x - center) / reach.
    low, high : ndarray of shape (n_features,)
        Ends to which values are clipped, in the fit and in predictions.
    is_centered : bool
        Whether columns are centred: not without an intercept, and not for CSR rows.
    """

    center: np.ndarray
    reach: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    is_centered: bool

    @property
    def seen(self) -> np.ndarray:
        """The columns that are seen; the first one if none is, with a scale of inf."""
        found = np.flatnonzero(np.isfinite(self.reach))
        return found if found.size else np.zeros(1, dtype=np.intp)

    def _scaled(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and scale of the columns that are seen."""
        j = self.seen
        shift = self.mean[j] * np.where(np.isfinite(self.reach[j]), self.reach[j], 0.0)
        return self.center[j] + shift, self.reach[j] * self.deviation[j]

    def fill(self) -> dict[str, np.ndarray]:
        """The fitted attribute ``fill_values_``: a missing value counts as the centre of its column."""
        found = np.zeros(self.center.size)
        found[self.seen] = self._scaled()[0]
        return {"fill_values_": found, "feature_bounds_": np.stack([self.low, self.high])}

    def window(self, chosen: np.ndarray) -> Standardization:
        """The map of chosen columns to u."""
        ends = self.low[chosen], self.high[chosen]
        return Standardization.make(self.center[chosen], self.reach[chosen], *ends)

    def rows(self, records: PrivateRecords) -> PrivateRecords:
        """Standardized records of the columns that are seen; the intercept's feature is 1."""
        seen = self.seen
        few = records if seen.size == records.n_features else records.restricted(seen)
        ends = self.low[seen], self.high[seen]
        return few.standardized(Standardization.make(*self._scaled(), *ends)).with_intercept(1.0)

    def outward(self, theta: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Turn parameters for the rows above into those for the user's rows.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_outputs)
        kept : ndarray of int
            Which of the rows' features theta holds.

        Returns
        -------
        ndarray
            With a row for every column.
        """
        center, scale = (part[kept] for part in self._scaled())
        place, d, more = self.seen[kept], self.center.size, len(theta) - kept.size
        found = np.zeros((d + more, *theta.shape[1:]))
        found[place] = (theta[: kept.size].T / scale).T
        if more:
            found[d] = theta[-1] - center @ found[place]
        return found


def standardize(
    shares: Shares, records: PrivateRecords, of_reach: float, of_moments: float, *, own: float
) -> Columns:
    """Release reaches, means and deviations of the columns, with two shares of mu^2.

    Without an intercept, and for CSR rows, columns are scaled by their root mean square and not centred.

    Parameters
    ----------
    of_reach, of_moments : float
        Shares of the session's mu^2.
    own : float
        Standard deviations that a column's own counts must show near its highest octave.

    Notes
    -----
    **Privacy.** Of d columns: octave counts (`PrivateRecords.magnitude_counts`), second moments of the rows
    (u, 1), scaled down to a public norm (`second_moment`), for a zoom counts (`column_counts`) and a histogram.
    Which columns are zoomed in to is decided by what was released.
    """
    d = records.n_features
    centered = records.fit_intercept and records.shape.container == "dense"
    counts, reach, evidence = released_reaches(shares, records, of_reach, own)
    columns = Columns(np.zeros(d), reach, np.zeros(d), np.ones(d), -reach, reach.copy(), centered)
    if not np.isfinite(reach).any():
        return columns
    variance, noise, square = _moments(shares, records, columns, columns.seen, of_moments, centered)
    taken = _taken_as_standardized(columns) if centered else np.zeros(d, dtype=bool)
    place = np.log2(reach / MARGIN)
    weak = np.hypot(evidence, np.maximum(square, 0)) < KAPPA
    columns.reach[~taken & weak & ((place < CORE_LOW) | (place > CORE_HIGH))] = np.inf
    if centered:
        top = np.where(np.isfinite(reach), np.log2(reach / MARGIN), LOW).astype(int) - LOW
        two = counts[np.arange(d), top] + counts[np.arange(d), np.maximum(top - 1, 0)]
        unseen = np.isfinite(reach) & (variance < UNSEEN * noise)
        far = np.flatnonzero(unseen & ~taken & (two > FAR * records.n_units))
        if far.size:
            _zoom(shares, records, columns, far)
    return columns


def _taken_as_standardized(columns: Columns) -> np.ndarray:
    """Take columns as they are if many of them have mean 0 and deviation 1; say which.

    Somebody has standardized them. The values of a rare dummy are then about -.1 and 10. Counts and moments see
    the first only, whose window would put the second hundreds of deviations away.
    """
    center, scale = columns._scaled()
    chosen = np.zeros(columns.center.size, dtype=bool)
    usual = (scale > USUAL[0]) & (scale < USUAL[1]) & (np.abs(center) < CLOSE * scale)
    if usual.mean() < PART:
        return chosen
    reach = columns.reach[columns.seen]
    # Windows of 1 and more may be those of dummies that nobody standardized.
    taken = columns.seen[usual | ((scale > BULK) & (reach < 1.0))]
    columns.center[taken], columns.reach[taken] = 0.0, 1.0
    columns.mean[taken], columns.deviation[taken] = 0.0, 1.0
    chosen[taken] = True
    return chosen


def released_reaches(
    shares: Shares, records: PrivateRecords, share: float, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Release octave counts; return them, and the reach of every column, inf where nothing is seen."""
    session = shares.session
    bounded = records.magnitude_counts(LOW, HIGH, adjacency=session.adjacency)
    plan = shares.plan(share, "octaves")
    counts = session.gaussian(bounded, plan)
    noise = max(session.noise_std(bounded, plan), 0.25)  # exact counts are whole numbers
    top, sure, evidence = highest_octaves(counts, noise, records.n_units, least)
    top = _of_the_bulk(counts, noise, records.n_units, top)
    return counts, np.where(sure, MARGIN * 2.0 ** (LOW + top), np.inf), evidence


def highest_octaves(
    counts: np.ndarray, noise: float, n: int, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of each column's highest octave, and whether its own counts show that it is there."""
    known, own = posterior_of_tops(counts, noise, n)
    below, place = np.cumsum(known, axis=-1), np.arange(counts.shape[-1])
    likely = known.argmax(axis=-1)
    # The upper end of a posterior that has two modes would be a range made of noise.
    top = np.minimum((below < UPPER).sum(axis=-1), likely + NEXT - 1)
    top = np.minimum(top, HIGH - LOW)[..., None]
    near = np.abs(place - top) <= NEAR
    sure = (known * near).sum(axis=-1) > SURE
    # Other columns may say where a column probably lies; only its own counts say that it does.
    evidence = np.where(near, own, -np.inf).max(axis=-1)
    sure &= evidence > least
    above = place - top
    needed = np.where(above < NEXT, EVIDENCE_HIGHER + EVIDENCE_MORE * above, SURELY)
    higher = (above > 0) & (counts > needed * noise)
    return np.where(higher, place, top).max(axis=-1), sure, evidence


def _of_the_bulk(counts: np.ndarray, noise: float, n: int, top: np.ndarray) -> np.ndarray:
    """Octaves at which columns are cut, so that their bulk fills the window: the highest one for most columns.

    Of a column with a long tail, or with rare codes, nearly all cells lie far below the highest octave. The mean
    square over the squared window is then tiny, and a slope would follow from few cells.
    """
    place = np.arange(counts.shape[1])
    parts = np.where((counts > SHOWN * noise) & (place <= top[:, None]), counts / n, 0.0)
    above = parts.sum(axis=1)[:, None] - np.cumsum(parts, axis=1)
    # Cells of an octave are taken as uniform in it.
    shrunk = MEAN_SQUARE * parts * 4.0 ** (place - (HIGH - LOW))
    below = np.cumsum(shrunk, axis=1) * 4.0 ** (HIGH - LOW - place)
    fills = (above + below + noise / n >= FILLED) & (place <= top[:, None])
    lowered = np.where(fills, place, -1).max(axis=1)
    return np.where(lowered < 0, top, lowered)


def _moments(
    shares: Shares,
    records: PrivateRecords,
    columns: Columns,
    chosen: np.ndarray,
    share: float,
    centered: bool,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Release means and deviations of the chosen columns; return all variances (else 0), and their noise.

    Both come from the second moments of the rows (u, 1).
    """
    session, n, d = shares.session, records.n_units, chosen.size
    few = records if d == records.n_features else records.restricted(chosen)
    present = _present(shares, few) if centered else np.ones(d)
    few = few.standardized(columns.window(chosen)).with_intercept(1.0)
    p = few.n_parameters
    moment = few.second_moment(
        math.sqrt(TYPICAL * d), 1.0, adjacency=session.adjacency, target_weight=0.0
    )
    plan = shares.plan(share, "column moments")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n
    both = 0.5 * (released + released.T)
    square, mean = np.diag(both)[:d].copy(), np.zeros(d)
    plain = square / noise
    if centered:
        whole = max(both[d, d], LEAST_WEIGHT)
        both[:d, d] /= present  # missing values counted as 0
        square /= present
        mean = np.clip(_james_stein(both[:d, d] / whole, noise / whole / math.sqrt(2)), -1.0, 1.0)
        square, noise = square / whole - mean**2, noise / whole
    typical = max(square.mean(), 2 * noise / math.sqrt(d))
    columns.mean[chosen] = mean
    least = min(noise, FLOOR * typical) + LEAST_VARIANCE
    columns.deviation[chosen] = np.sqrt(np.maximum(_james_stein(square, noise), least))
    variance, ratio = np.zeros((2, columns.center.size))
    variance[chosen] = square
    ratio[chosen] = plain
    return variance, noise, ratio


CORE_LOW, CORE_HIGH = eval(__import__("os").environ.get("CORE", "(-2,3)"))
KAPPA = float(__import__("os").environ.get("KAPPA", "5.5"))


def _present(shares: Shares, records: PrivateRecords) -> np.ndarray:
    """Release which part of each column is not missing; 1 where that cannot be told from all of it."""
    session, n = shares.session, records.n_units
    counts = records.column_counts(np.inf)
    plan = shares.plan(PRESENT, "missing values")
    found = session.gaussian(counts, plan) / n + 0.5
    noise = session.noise_std(counts, plan) / n
    return np.where(found > 1.0 - MISSED * noise, 1.0, np.clip(found, LEAST_PRESENT, 1.0))


def _james_stein(found: np.ndarray, noise: float) -> np.ndarray:
    """Numbers with known noise, moved towards their mean."""
    center = found.mean()
    away = found - center
    return center + away * max(
        0.0, 1.0 - (found.size - 1) * noise**2 / max(float(away @ away), 1e-300)
    )


def _zoom(shares: Shares, records: PrivateRecords, columns: Columns, far: np.ndarray) -> None:
    """Move the windows of columns that are far from 0 to where their records are."""
    session, n = shares.session, records.n_units
    mass, left = n * gaussian_mu(session.epsilon, session.delta), ZOOM_PARTS[0] * ZOOM
    if 2.0 * math.sqrt(far.size / left) > CLEAR * mass:
        return
    few, wide = records.restricted(far), columns.reach[far]
    look = max(LEAST_LOOK, min(0.5 * left, far.size * (LOOK / mass) ** 2))
    found = narrowed(shares, few, wide, look, left - look, "zoom", GIVEN_UP)
    if not found.columns.size:
        return
    far, wide, few = far[found.columns], wide[found.columns], few.restricted(found.columns)
    last = released_spread(shares, few, left - found.spent, found.center, found.reach, "zoom")
    width = 3.0 * last.deviation
    # A column with an atom, such as a dummy that is nearly always 1, stays as it is: its rare values would lie
    # hundreds of deviations away.
    is_good = (
        (width < 0.5 * wide) & (last.deviation > NARROW * found.reach) & (last.spread > SPREAD)
    )
    good = np.flatnonzero(is_good)
    if good.size:
        columns.center[far[good]], columns.reach[far[good]] = last.center[good], width[good]
        columns.low[far[good]] = last.center[good] - width[good]
        columns.high[far[good]] = last.center[good] + width[good]
        _moments(shares, records, columns, far[good], ZOOM_PARTS[1] * ZOOM, True)
