"""Columns in units of their own: half-widths, means and deviations are released; the model is linear between cuts.

1. Half-width. Each column's records are counted by power-of-two bins of their magnitude. Which power-of-two bin is
   the highest is a posterior: columns share a prior, and the half-width is the upper end of a high quantile. It is
   lowered where nearly all cells lie far below it. A column of which the posterior knows little is left out: its
   coefficients are 0. Public ends take the place of all this. Cells beyond the ends of a window count as the end.
2. Moments of u = x / half_width: the second moments of the rows (u, 1), moved towards their mean over the columns.
3. Columns that look standardized are taken as they are.
4. Shifted histograms, for columns far from 0 whose variance is lost in the noise, such as years: histograms find a
   window around their values.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.log2_bins import highest_log2_bins
from skdp.linear_model.auto.windows import narrowed, released_spread
from skdp.privacy import PrivateRecords, Standardization, accounting
from skdp.privacy.statistics import magnitude_counts

MEAN_SQUARE = 7.0 / 12.0  # mean square of cells that are uniform in a bin, over the bin's squared end


@dataclass
class Columns:
    """The released facts of the columns.

    Attributes
    ----------
    center, half_width : ndarray of shape (n_features,)
        Of the windows; half_width is inf for columns that are not seen.
    mean, deviation : ndarray of shape (n_features,)
        Of u = (x - center) / half_width.
    low, high : ndarray of shape (n_features,)
        Ends to which values are clipped, in the fit and in predictions.
    noise : float
        Standard deviation of the noise of a released mean square of u.
    """

    center: np.ndarray
    half_width: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    noise: float = 0.0

    @property
    def seen(self) -> np.ndarray:
        """The columns that are seen; the first one if none is, with a scale of inf."""
        found = np.flatnonzero(np.isfinite(self.half_width))
        return found if found.size else np.zeros(1, dtype=np.intp)

    def scaled(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre and scale of the columns that are seen."""
        j = self.seen
        shift = self.mean[j] * np.where(np.isfinite(self.half_width[j]), self.half_width[j], 0.0)
        return self.center[j] + shift, self.half_width[j] * self.deviation[j]

    @classmethod
    def none(cls, records: PrivateRecords) -> "Columns":
        """Columns of which nothing is seen."""
        d, inf = records.n_features, np.full(records.n_features, math.inf)
        return cls(np.zeros(d), inf, np.zeros(d), np.ones(d), -inf, inf, False)

    @property
    def n_seen(self) -> int:
        """Number of columns that are seen."""
        return int(np.isfinite(self.half_width).sum())

    def attributes(self) -> dict[str, np.ndarray]:
        """Fitted attributes: values that missing ones count as, and ends at which values are cut.

        A column that is not seen is not cut: its coefficients are 0.
        """
        found = np.zeros(self.center.size)
        found[self.seen] = self.scaled()[0]
        cut = np.isfinite(self.half_width)
        low, high = np.where(cut, self.low, -math.inf), np.where(cut, self.high, math.inf)
        return {"fill_values_": found, "feature_bounds_": np.stack([low, high])}

    def window(self, chosen: np.ndarray) -> Standardization:
        """The map of chosen columns to u."""
        ends = self.low[chosen], self.high[chosen]
        return Standardization.make(self.center[chosen], self.half_width[chosen], *ends)

    def rows(self, records: PrivateRecords) -> PrivateRecords:
        """Standardized records of the columns that are seen; the intercept's feature is 1."""
        seen = self.seen
        few = records if seen.size == records.n_features else records.restricted(seen)
        ends = self.low[seen], self.high[seen]
        return few.standardized(Standardization.make(*self.scaled(), *ends)).with_intercept(1.0)

    def to_user_scale(self, theta: np.ndarray, kept: np.ndarray) -> np.ndarray:
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
        center, scale = (part[kept] for part in self.scaled())
        place, d, more = self.seen[kept], self.center.size, len(theta) - kept.size
        found = np.zeros((d + more, *theta.shape[1:]))
        found[place] = (theta[: kept.size].T / scale).T
        if more:
            found[d] = theta[-1] - center @ found[place]
        return found


def standardize(
    budget: BudgetSplit,
    records: PrivateRecords,
    of_half_width: float,
    of_moments: float,
    *,
    own: float,
    given: np.ndarray | None = None,
) -> Columns:
    """Release half-widths, means and deviations of the columns, with two shares of mu^2.

    Without an intercept, and for CSR rows, columns are scaled by their root mean square and not centred.

    Parameters
    ----------
    of_reach, of_moments : float
        Shares of the session's mu^2.
    own : float
        Standard deviations that a column's own counts must show near its highest power-of-two bin.
    given : ndarray of shape (2, n_features), default=None
        Public ends of the columns, infinite where none are known.

    Notes
    -----
    **Privacy.** Of d columns: power-of-two bin counts (`magnitude_counts`), second moments of the rows (u, 1),
    scaled down to a public norm (`second_moment`), for a shifted window counts (`column_counts`) and a histogram.
    Earlier releases decide which columns get shifted windows. A value is cut at the ends of its column's window
    before anything else: these are public or released, so a row's contribution is a function of the row.
    """
    d = records.n_features
    centered = records.shape.fit_intercept and records.shape.container == "dense"
    found = released_windows(budget, records, of_half_width, own, given)
    columns = found.columns(centered)
    if not np.isfinite(columns.half_width).any():
        return columns
    seen = columns.seen
    variance, noise, square = _moments(budget, records, columns, seen, of_moments, centered)
    columns.noise = noise
    taken = _taken_as_standardized(columns, found) if centered else np.zeros(d, dtype=bool)
    columns.half_width[~taken & found.is_doubtful(square)] = np.inf
    if centered:
        unseen = np.isfinite(columns.half_width) & (variance < DEFAULTS.columns.far_evidence * noise)
        far = np.flatnonzero(unseen & ~taken & (found.in_two > DEFAULTS.columns.far_part * records.n_units))
        if far.size:
            _shift_windows(budget, records, columns, far, found.ends)
    return columns


def _taken_as_standardized(columns: Columns, found: "ColumnWindows") -> np.ndarray:
    """Take columns as they are if many of them have mean 0 and deviation 1; say which.

    Somebody has standardized them. The values of a rare dummy are then about -.1 and 10. Counts and moments see
    the first only, whose window would put the second hundreds of deviations away.
    """
    center, scale = columns.scaled()
    chosen = np.zeros(columns.center.size, dtype=bool)
    low, high = DEFAULTS.columns.standardized_deviations
    usual = (scale > low) & (scale < high) & (np.abs(center) < DEFAULTS.columns.standardized_mean * scale)
    if usual.mean() < DEFAULTS.columns.standardized_part:
        return chosen
    half_width = columns.half_width[columns.seen]
    # A window of 1 and more may belong to a dummy variable that nobody standardized.
    free = ~found.is_given[columns.seen]
    taken = columns.seen[
        free & (usual | ((scale > DEFAULTS.columns.standardized_min_deviation) & (half_width < 1.0)))
    ]
    columns.center[taken], columns.half_width[taken] = 0.0, 1.0
    columns.mean[taken], columns.deviation[taken] = 0.0, 1.0
    chosen[taken] = True
    return chosen


@dataclass(frozen=True)
class ColumnWindows:
    """Windows of the columns before their moments are known.

    Attributes
    ----------
    center, half_width : ndarray of shape (n_features,)
        half_width is inf where nothing is seen.
    ends : ndarray of shape (2, n_features)
        Public ends; infinite where none are known.
    in_two : ndarray of shape (n_features,)
        Released number of records in the two highest power-of-two bins of the window; inf for a given one.
    evidence : ndarray of shape (n_features,)
        Of the power-of-two bin counts for the window, in standard deviations; inf for a given one.
    """

    center: np.ndarray
    half_width: np.ndarray
    ends: np.ndarray
    in_two: np.ndarray
    evidence: np.ndarray

    @property
    def is_given(self) -> np.ndarray:
        """The columns whose window is public."""
        return np.isfinite(self.ends).all(axis=0)

    def columns(self, centered: bool) -> Columns:
        """Columns with these windows, with mean 0 and deviation 1."""
        d = self.half_width.size
        # Half-open public ends cut a released window, and never to nothing.
        low, high = self.center - self.half_width, self.center + self.half_width
        low = np.where(self.ends[0] < high, np.maximum(low, self.ends[0]), low)
        high = np.where(self.ends[1] > low, np.minimum(high, self.ends[1]), high)
        if not centered:  # zeros of a CSR matrix stay zeros
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        return Columns(self.center, self.half_width.copy(), np.zeros(d), np.ones(d), low, high)

    def is_doubtful(self, square: np.ndarray) -> np.ndarray:
        """Whether noise alone may have made the window of a column.

        Parameters
        ----------
        square : ndarray of shape (n_features,)
            Released mean square of the column in its window, in standard deviations of its noise.

        Notes
        -----
        Both pieces of evidence are normal and independent where the column is empty. Their norm is larger than
        `sure_evidence` with a rate below 1e-5, with all power-of-two bins and shapes that were looked at. Of a
        column with few cells that are not 0, the mean square in a window that is too low shows these cells at its
        ends, wherever the window is: below the usual power-of-two bins it counts for `max_low_evidence` at most,
        and power-of-two bin counts must show 5.2 standard deviations themselves.
        """
        defaults = DEFAULTS.columns
        log2_bin = np.log2(np.where(np.isfinite(self.half_width), self.half_width, 1.0) / defaults.margin)
        usual = (log2_bin >= defaults.usual_bins[0]) & (log2_bin <= defaults.usual_bins[1])
        most = np.where(log2_bin < defaults.usual_bins[0], defaults.max_low_evidence, math.inf)
        square = np.minimum(square, most)
        return ~usual & (np.hypot(self.evidence, np.maximum(square, 0.0)) < DEFAULTS.bins.sure_evidence)


def released_windows(
    budget: BudgetSplit, records: PrivateRecords, share: float, least: float, given: np.ndarray | None
) -> ColumnWindows:
    """Release power-of-two bin counts of the columns without public ends, and find windows."""
    d = records.n_features
    ends = np.outer([-math.inf, math.inf], np.ones(d)) if given is None else given
    unknown = ~np.isfinite(ends).all(axis=0)
    low, high = np.where(unknown, 0.0, ends)
    centered = records.shape.fit_intercept and records.shape.container == "dense"
    center = 0.5 * low + 0.5 * high if centered else np.zeros(d)
    half_width = 0.5 * high - 0.5 * low if centered else np.maximum(np.abs(low), np.abs(high))
    in_two, evidence = np.full((2, d), math.inf)
    if unknown.any():
        few = records if unknown.all() else records.restricted(np.flatnonzero(unknown))
        found = _released_half_widths(budget, few, share, least)
        half_width[unknown], in_two[unknown], evidence[unknown] = found
    return ColumnWindows(center, half_width, ends, in_two, evidence)


def _released_half_widths(
    budget: BudgetSplit, records: PrivateRecords, share: float, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Release counts by power of two; return half-widths (inf: nothing is seen), ``in_two`` and ``evidence``."""
    session = budget.session
    bounded = magnitude_counts(records, DEFAULTS.bins.lowest, DEFAULTS.bins.highest, adjacency=session.adjacency)
    plan = budget.take(share, "column ranges")
    counts = session.gaussian(bounded, plan)
    noise = max(session.noise_std(bounded, plan), DEFAULTS.bins.exact_noise)
    top, sure, evidence = highest_log2_bins(counts, noise, records.n_units, least)
    top, evidence = _of_the_bulk(counts, noise, records.n_units, top, evidence)
    place = np.arange(len(counts))
    in_two = counts[place, top] + counts[place, np.maximum(top - 1, 0)]
    return np.where(sure, DEFAULTS.columns.margin * 2.0 ** (DEFAULTS.bins.lowest + top), np.inf), in_two, evidence


def _of_the_bulk(
    counts: np.ndarray, noise: float, n: int, top: np.ndarray, evidence: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bins at which columns are cut, so that their bulk fills the window: the highest one for most columns.

    Also the evidence for them: at least `sure_evidence` for the lower ones.

    Of a column with a long tail, or with rare codes, nearly all cells lie far below the highest power-of-two bin.
    The mean square over the squared window is then tiny, and a slope would follow from few cells.

    A window is lowered no farther than to the lowest power-of-two bin that surely holds cells, by its own count or
    with the two below it. Where few cells differ from 0, the sum over dozens of power-of-two bins of noise would
    fill any window.
    """
    defaults, bins = DEFAULTS.columns, DEFAULTS.bins
    place = np.arange(counts.shape[1])
    padded = np.pad(counts, [(0, 0), (2, 0)])
    in_three = padded[:, 2:] + padded[:, 1:-1] + padded[:, :-2]
    sure = (counts > bins.sure_evidence * noise) | (in_three > bins.sure_evidence * math.sqrt(3.0) * noise)
    lowest = np.where(sure.any(axis=1), sure.argmax(axis=1), counts.shape[1])
    parts = np.where((counts > defaults.filled_evidence * noise) & (place <= top[:, None]), counts / n, 0.0)
    above = parts.sum(axis=1)[:, None] - np.cumsum(parts, axis=1)
    # Cells of a power-of-two bin are taken as uniform in it.
    shrunk = MEAN_SQUARE * parts * 4.0 ** (place - (bins.highest - bins.lowest))
    below = np.cumsum(shrunk, axis=1) * 4.0 ** (bins.highest - bins.lowest - place)
    filled = above + below + noise / n
    # Between the bulk and a rare code lie power-of-two bins without cells: a window ends at the bulk, and not
    # among them.
    fills = (filled >= defaults.min_filled) & (counts > defaults.bulk_evidence * noise)
    fills &= (place <= top[:, None]) & (place >= lowest[:, None])
    lowered = np.where(fills, place, -1).max(axis=1)
    is_low = (filled[np.arange(top.size), top] < defaults.min_filled) & (lowered >= 0) & (lowered < top)
    lowered = np.where(is_low, lowered, top)
    return lowered, np.where(is_low, np.maximum(evidence, bins.sure_evidence), evidence)


def _moments(
    budget: BudgetSplit,
    records: PrivateRecords,
    columns: Columns,
    chosen: np.ndarray,
    share: float,
    centered: bool,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Release means and deviations of the chosen columns, from the second moments of the rows (u, 1).

    Returns
    -------
    variance : ndarray of shape (n_features,)
        0 for other columns.
    noise : float
        Of a variance.
    square : ndarray of shape (n_features,)
        Released mean squares, in standard deviations of their noise; 0 for other columns.
    """
    session, n, d = budget.session, records.n_units, chosen.size
    few = records if d == records.n_features else records.restricted(chosen)
    present = _present(budget, few) if centered else np.ones(d)
    few = few.standardized(columns.window(chosen)).with_intercept(1.0)
    p = few.n_parameters
    norm = math.sqrt(DEFAULTS.columns.typical_mean_square * d)
    moment = few.second_moment(norm, 1.0, adjacency=session.adjacency, target_weight=0.0)
    plan = budget.take(share, "column moments")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n
    both = 0.5 * (released + released.T)
    square, mean = np.diag(both)[:d].copy(), np.zeros(d)
    plain = square / max(noise, 1e-300)
    if centered:
        whole = max(both[d, d], DEFAULTS.columns.min_weight)
        both[:d, d] /= present  # missing values counted as 0
        square /= present
        mean = np.clip(_james_stein(both[:d, d] / whole, noise / whole / math.sqrt(2)), -1.0, 1.0)
        square, noise = square / whole - mean**2, noise / whole
    typical = max(square.mean(), 2 * noise / math.sqrt(d))
    columns.mean[chosen] = mean
    least = min(noise, DEFAULTS.columns.variance_floor * typical) + DEFAULTS.columns.min_variance
    columns.deviation[chosen] = np.sqrt(np.maximum(_james_stein(square, noise), least))
    variance, in_noise = np.zeros((2, columns.center.size))
    variance[chosen], in_noise[chosen] = square, plain
    return variance, noise, in_noise


def _present(budget: BudgetSplit, records: PrivateRecords) -> np.ndarray:
    """Release which part of each column is not missing; 1 where that cannot be told from all of it."""
    session, n = budget.session, records.n_units
    counts = records.column_counts(np.inf)
    plan = budget.take(DEFAULTS.columns.presence_share, "missing values")
    found = session.gaussian(counts, plan) / n + 0.5
    noise = session.noise_std(counts, plan) / n
    is_all = found > 1.0 - DEFAULTS.columns.missing_evidence * noise
    return np.where(is_all, 1.0, np.clip(found, DEFAULTS.columns.min_present, 1.0))


def _james_stein(found: np.ndarray, noise: float) -> np.ndarray:
    """Numbers with known noise, moved towards their mean."""
    center = found.mean()
    away = found - center
    return center + away * max(0.0, 1.0 - (found.size - 1) * noise**2 / max(float(away @ away), 1e-300))


def _shift_windows(
    budget: BudgetSplit, records: PrivateRecords, columns: Columns, far: np.ndarray, ends: np.ndarray
) -> None:
    """Move the windows of columns that are far from 0 to where their records are, within public ends."""
    defaults = DEFAULTS.columns
    session, n = budget.session, records.n_units
    effective_n, left = (
        n * accounting.gaussian_mu(session.epsilon, session.delta),
        defaults.far_parts[0] * defaults.far_share,
    )
    if 2.0 * math.sqrt(far.size / left) > defaults.max_histogram_noise * effective_n:
        return
    few, wide = records.restricted(far), columns.half_width[far]
    look = min(defaults.max_histogram_part * left, far.size * (defaults.histogram_noise / effective_n) ** 2)
    look = max(defaults.min_histogram_share, look)
    most, start = defaults.max_atom_evidence, columns.center[far]
    found = narrowed(budget, few, wide, look, left - look, "shifted histograms", most, start=start)
    if not found.columns.size:
        return
    far, wide, few = far[found.columns], wide[found.columns], few.restricted(found.columns)
    last = released_spread(budget, few, left - found.spent, found.center, found.half_width, "shifted histograms")
    width = defaults.window_deviations * last.deviation
    # A column with an atom, such as a dummy that is nearly always 1, stays as it is: its rare values would lie
    # hundreds of deviations away.
    is_good = (width < defaults.max_window * wide) & (last.spread > defaults.min_spread_evidence)
    is_good &= last.deviation > DEFAULTS.histograms.min_deviation * found.half_width
    low = np.maximum(last.center - width, ends[0, far])
    high = np.minimum(last.center + width, ends[1, far])
    good = np.flatnonzero(is_good & (low < high))
    if good.size:
        place = far[good]
        columns.center[place], columns.half_width[place] = last.center[good], width[good]
        columns.low[place], columns.high[place] = low[good], high[good]
        _moments(budget, records, columns, place, defaults.far_parts[1] * defaults.far_share, True)
