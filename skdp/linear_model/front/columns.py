"""Columns in units of their own: reaches, means and deviations are released; the model stays linear in x.

1. Reach. Each column's records are counted by octaves of their magnitude. Which octave is the highest is a
   posterior: columns share a prior, and the reach is the upper end of a high quantile. Too large a reach costs
   accuracy; one that is too small would make rows of the column enormous. A column of which the posterior knows
   little is left out: its coefficients are 0.
2. Moments of u = x / reach: the second moments of the rows (u, 1), moved towards their mean over the columns.
3. Zoom, for columns far from 0 whose variance is lost in the noise, such as years: a median, and a window
   around it.
"""

import math
from dataclasses import dataclass

import numpy as np

from skdp.base.column_search import Beliefs, released_points
from skdp.linear_model.front.shares import Shares
from skdp.privacy import PrivateRecords, Standardization

__all__ = ["Columns", "released_reaches", "standardize"]

ZOOM, PRESENT = 0.06, 0.01  # shares of mu^2
MISSED = 4.0  # standard deviations of a count by which values must be missing
LEAST_PRESENT = 0.05  # of a column
LOW, HIGH = -34, 48  # octaves
# Standard deviations of the noise that a higher octave needs, and more for each octave that it is higher.
EVIDENCE_HIGHER, EVIDENCE_MORE = 2.5, 0.5
ABOVE = 5  # octaves above the fullest one in which the highest is looked for
MARGIN = 1.25  # of a reach
COMMON = 2.0  # octaves: spread of the public prior of a highest octave, around 1
# Octaves that columns often have, and what the prior of lower and of higher ones is multiplied by: among so many
# octaves noise finds some high count, and a reach that is too small does harm.
CORE, RARE_LOW, RARE_HIGH = (-6, 8), 1e-4, 1e-2
PSEUDO = 3.0  # columns that the public prior counts for
ROUNDS = 5  # of the estimate of the shared prior
# How the records of a column lie, from its highest octave downward, and which part of the records is not 0.
SHAPES = ((1.0,), (0.6, 0.4), (0.4, 0.35, 0.25), (0.3, 0.25, 0.2, 0.15, 0.1))
PARTS = (1.0, 0.6, 0.3, 0.12, 0.05, 0.02)
UPPER = 0.95  # quantile of the highest octave that becomes the reach
NEAR, SURE = 2, 0.8  # octaves around it; least probability that they hold the highest one
TYPICAL = 0.1  # mean square of a column in its reach
LEAST_WEIGHT = 0.2  # of the records, after rows were scaled down
FLOOR = 0.5  # of a variance whose noise is large, over the typical variance
VARIANCES = (1 / 4, 16.0)  # least and largest of a column that is standardized again
LEAST_VARIANCE = 1e-6  # of a column over its squared reach
FAR = 0.6  # part of the records in the two highest octaves
UNSEEN = 4.0  # deviations of the variance's noise
SUREST = 6.0  # largest logarithm of the likelihood ratio of one answer of a search
LINE = np.linspace(-1.0, 1.0, 4097)  # centres of a zoom, in reaches
ZOOMS = 2.0 ** np.arange(-12, 1.1, 0.5)  # median deviations of a zoom, in reaches
ZOOM_PARTS = (0.25, 0.2, 0.35, 0.2)  # of its share: median, deviation, atoms, moments
QUESTIONS = (12, 8)
# Least median deviation over the reach, and the smaller one where a count's noise is below this part of the units.
LEAST_ZOOM, FINEST_ZOOM, FINE = 2.0**-8, 2.0**-11.5, 0.02
BINS, ATOM = 24, 0.35  # of the window of a zoom; a part of the records in one bin that is too large


@dataclass
class Columns:
    """What is released of the columns.

    Attributes
    ----------
    center, reach : ndarray of shape (n_features,)
        Of the windows; reach is inf for columns that are not seen.
    mean, deviation : ndarray of shape (n_features,)
        Of u = (x - center) / reach.
    is_centered : bool
        Whether columns are centred: not without an intercept, and not for CSR rows.
    """

    center: np.ndarray
    reach: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
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
        return {"fill_values_": found}

    def rows(self, records: PrivateRecords) -> PrivateRecords:
        """Standardized records of the columns that are seen; the intercept's feature is 1."""
        seen = self.seen
        few = records if seen.size == records.n_features else records.restricted(seen)
        return few.standardized(Standardization.make(*self._scaled())).with_intercept(1.0)

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


@dataclass(frozen=True)
class Restandardized:
    """Standardized rows, standardized once more by their released Gram matrix: a function of what was released.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_features,)
    """

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(
        cls, gram: np.ndarray, noise: float, n_features: int, *, centered: bool
    ) -> "Restandardized":
        """Take means and deviations out of a Gram matrix with known noise, shrunk to 0 and 1 by it.

        Parameters
        ----------
        gram : ndarray of shape (n_parameters, n_parameters)
            Of rows z, and a last feature 1 with an intercept.
        noise : float
            Its standard deviation on the diagonal.
        n_features : int
            Of z.
        centered : bool
            Whether rows have an intercept's feature and may be centred.
        """
        d = n_features
        mean, square = np.zeros(d), np.diag(gram)[:d]
        if centered:
            whole = max(float(gram[d, d]), LEAST_WEIGHT)
            mean = shrunk(gram[:d, d] / whole, noise / whole / math.sqrt(2.0))
            square, noise = square / whole - mean**2, noise / whole
        variance = 1.0 + shrunk(square - 1.0, noise)
        return cls(mean, np.sqrt(np.clip(variance, *VARIANCES)))

    def rows(self, records: PrivateRecords) -> PrivateRecords:
        """The rows in their new units."""
        return records.standardized(Standardization.make(self.mean, self.deviation))

    def _map(self, p: int) -> np.ndarray:
        """The matrix that turns a row (z, 1) into the new one."""
        d = self.mean.size
        turn = np.diag(np.append(1.0 / self.deviation, np.ones(p - d)))
        if p > d:
            turn[:d, d] = -self.mean / self.deviation
        return turn

    def moved(self, gram: np.ndarray) -> np.ndarray:
        """A Gram matrix in the new units."""
        turn = self._map(len(gram))
        return turn @ gram @ turn.T

    def inward(self, theta: np.ndarray) -> np.ndarray:
        """Parameters for the new rows."""
        return np.linalg.solve(self._map(len(theta)).T, theta)

    def outward(self, theta: np.ndarray) -> np.ndarray:
        """Parameters for the rows as they were."""
        return self._map(len(theta)).T @ theta


def shrunk(found: np.ndarray, noise: float) -> np.ndarray:
    """Numbers with known noise, moved towards 0 (James and Stein)."""
    size = float(found @ found)
    return found * max(0.0, 1.0 - max(found.size - 2, 1) * noise**2 / size) if size else found


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
    counts, reach = released_reaches(shares, records, of_reach, own)
    columns = Columns(np.zeros(d), reach, np.zeros(d), np.ones(d), centered)
    if not np.isfinite(reach).any():
        return columns
    variance, noise = _moments(shares, records, columns, columns.seen, of_moments, centered)
    if centered:
        top = np.where(np.isfinite(reach), np.log2(reach / MARGIN), LOW).astype(int) - LOW
        two = counts[np.arange(d), top] + counts[np.arange(d), np.maximum(top - 1, 0)]
        unseen = np.isfinite(reach) & (variance < UNSEEN * noise)
        far = np.flatnonzero(unseen & (two > FAR * records.n_units))
        if far.size:
            _zoom(shares, records, columns, far)
    return columns


def released_reaches(
    shares: Shares, records: PrivateRecords, share: float, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """Release octave counts; return them, and the reach of every column, inf where nothing is seen."""
    session = shares.session
    bounded = records.magnitude_counts(LOW, HIGH, adjacency=session.adjacency)
    plan = shares.plan(share, "octaves")
    counts = session.gaussian(bounded, plan)
    noise = max(session.noise_std(bounded, plan), 0.25)  # exact counts are whole numbers
    known, own = _posterior_of_tops(counts, noise, records.n_units)
    below = np.cumsum(known, axis=1)
    top = np.minimum((below < UPPER).sum(axis=1), HIGH - LOW)
    place = np.arange(counts.shape[1])
    near = np.abs(place - top[:, None]) <= NEAR
    sure = (known * near).sum(axis=1) > SURE
    # Other columns may say where a column probably lies; only its own counts say that it does.
    sure &= np.where(near, own, -np.inf).max(axis=1) > least
    above = place - top[:, None]
    higher = (above > 0) & (above <= ABOVE)
    higher &= counts > (EVIDENCE_HIGHER + EVIDENCE_MORE * above) * noise
    top = np.where(higher, place, top[:, None]).max(axis=1)
    return counts, np.where(sure, MARGIN * 2.0 ** (LOW + top), np.inf)


def _posterior_of_tops(counts: np.ndarray, noise: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of each column's highest octave, given counts with noise; the columns share a prior.

    Also the evidence of a column's own counts for each octave, in standard deviations.

    A column is one of `SHAPES`, counted from its highest octave downward, of a part of the records.
    """
    octave = np.arange(LOW, HIGH + 1)
    base = 1.0 / (1.0 + (octave / COMMON) ** 2)
    base[octave < CORE[0]] *= RARE_LOW
    base[octave > CORE[1]] *= RARE_HIGH
    base /= base.sum()
    terms, own = [], np.full(counts.shape, -np.inf)
    for shape in SHAPES:
        length = len(shape)
        padded = np.pad(counts, ((0, 0), (length - 1, 0)))
        fit = sum(
            weight * padded[:, length - 1 - k : padded.shape[1] - k]
            for k, weight in enumerate(shape)
        )
        square = sum(weight**2 for weight in shape)
        own = np.maximum(own, fit / (noise * math.sqrt(square)))
        for part in PARTS:
            terms.append((n * part * fit - 0.5 * (n * part) ** 2 * square) / noise**2)
    largest = np.stack(terms).max(axis=0)
    total = largest + np.log(np.mean(np.exp(np.stack(terms) - largest), axis=0))
    likelihood = np.exp(total - total.max(axis=1)[:, None])
    prior = base
    for _ in range(ROUNDS):
        known = likelihood * prior
        known /= known.sum(axis=1)[:, None]
        # Of the other columns only: a column's own noise would confirm itself.
        prior = PSEUDO * base + known.sum(axis=0) - known
    return known, own


def _moments(
    shares: Shares,
    records: PrivateRecords,
    columns: Columns,
    chosen: np.ndarray,
    share: float,
    centered: bool,
) -> tuple[np.ndarray, float]:
    """Release means and deviations of the chosen columns; return all variances (else 0), and their noise.

    Both come from the second moments of the rows (u, 1).
    """
    session, n, d = shares.session, records.n_units, chosen.size
    few = records if d == records.n_features else records.restricted(chosen)
    present = _present(shares, few) if centered else np.ones(d)
    window = Standardization.make(columns.center[chosen], columns.reach[chosen])
    few = few.standardized(window).with_intercept(1.0)
    p = few.n_parameters
    moment = few.second_moment(
        math.sqrt(TYPICAL * d), 1.0, adjacency=session.adjacency, target_weight=0.0
    )
    plan = shares.plan(share, "column moments")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n
    both = 0.5 * (released + released.T)
    square, mean = np.diag(both)[:d].copy(), np.zeros(d)
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
    variance = np.zeros(columns.center.size)
    variance[chosen] = square
    return variance, noise


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
    few, reach = records.restricted(far), columns.reach[far]
    plans = [
        shares.plan(ZOOM * part, "zoom", questions)
        for part, questions in zip(ZOOM_PARTS[:2], QUESTIONS)
    ]
    center = released_points(session, few, plans[0], LINE[:, None] * reach, beliefs=Beliefs(SUREST))
    deviation = released_points(
        session, few, plans[1], ZOOMS[:, None] * reach, centers=center, absolute=True,
        beliefs=Beliefs(SUREST, upper=0.7),
    )  # fmt: skip
    width = deviation / 0.6745 * 3.0  # three standard deviations of a normal column
    noise = session.noise_std(few.column_counts(0.0), plans[1]) / n
    least = FINEST_ZOOM if noise < FINE else LEAST_ZOOM
    good = np.flatnonzero((deviation > least * reach) & (width < 0.5 * reach))
    if good.size:
        # A column with an atom, such as a dummy that is nearly always 1, stays as it is: its rare values would lie
        # hundreds of deviations away.
        steps = np.linspace(-1.0, 1.0, BINS + 1)
        edges = center[good, None] + width[good, None] * steps
        bins = few.restricted(good).histogram(edges, adjacency=session.adjacency)
        counts = session.gaussian(bins, shares.plan(ZOOM * ZOOM_PARTS[2], "atoms"))
        good = good[counts.max(axis=1) < ATOM * n]
    if good.size:
        columns.center[far[good]], columns.reach[far[good]] = center[good], width[good]
        _moments(shares, records, columns, far[good], ZOOM * ZOOM_PARTS[3], True)
