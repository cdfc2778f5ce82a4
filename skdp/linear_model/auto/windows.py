"""Centre and spread of the values of columns, read from a few released histograms.

A unit lies in one bin, and one histogram costs as much as a single count, times sqrt(2) under replace-one, and
says more than a dozen counts that share the budget. What its noise leaves open is decided by a posterior over a
family of distributions, which errs upward.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.defaults import DEFAULTS, HistogramDefaults
from skdp.privacy import PrivateRecords


@dataclass(frozen=True)
class Spread:
    """The facts of each column that a released histogram shows.

    Attributes
    ----------
    center, deviation : ndarray of shape (n_features,)
        Posterior mean of the mean; an upper quantile of the standard deviation, and the doubt about the mean.
    spread : ndarray of shape (n_features,)
        Logarithm of the likelihood of laws without an atom that fill bins, over the likelihood of all others.
    atom : ndarray of shape (n_features,)
        The same ratio of laws with an atom, over laws without and over laws so narrow that they fill one bin.
    beyond : ndarray of shape (n_features, 2)
        Parts of the values that surely lie below the window, and above it; else 0.
    """

    center: np.ndarray
    deviation: np.ndarray
    spread: np.ndarray
    atom: np.ndarray
    beyond: np.ndarray


def released_spread(
    budget: BudgetSplit,
    records: PrivateRecords,
    share: float,
    center: np.ndarray,
    half_width: np.ndarray,
    purpose: str,
) -> Spread:
    """Release a histogram of each column between ``center - half_width`` and ``center + half_width``, and read it.

    Parameters
    ----------
    share : float
        Of the session's mu^2.
    center, half_width : ndarray of shape (n_features,)
        Public or released.
    purpose : str
        For the ledger.
    """
    defaults = DEFAULTS.histograms
    session, n = budget.session, records.n_units
    middle, half_width = center, np.maximum(half_width, defaults.min_half_width * np.abs(center))
    edges = np.empty((half_width.size, defaults.n_bins + 3))
    edges[:, 1:-1] = center[:, None] + half_width[:, None] * np.linspace(-1.0, 1.0, defaults.n_bins + 1)
    edges[:, 0], edges[:, -1] = -np.inf, np.inf
    counted = records.histogram(edges, adjacency=session.adjacency)
    plan = budget.take(share, purpose)
    parts = session.gaussian(counted, plan) / n
    noise = session.noise_std(counted, plan) / n
    _, means, deviations, smooth = _family(defaults)
    laws, one_bin, atoms = _laws(defaults)
    fit = _fit(parts, laws, noise)
    weight = np.exp(fit - fit.max(axis=1)[:, None])
    weight /= weight.sum(axis=1)[:, None]
    mean = weight @ means
    doubt = np.maximum(weight @ means**2 - mean**2, 0.0)
    place = (np.cumsum(weight, axis=1) < defaults.deviation_quantile).sum(axis=1)
    inside = deviations[np.minimum(place, deviations.size - 1)]
    center, deviation = _at_least_seen(parts, noise, mean, np.sqrt(inside**2 + doubt))
    narrow, heavy = (_log_mean(_fit(parts, some, noise)) for some in (one_bin, atoms))
    wide = _log_mean(fit[:, smooth])
    of_spread = wide - np.logaddexp(narrow, heavy) + math.log(2.0)
    of_atom = heavy - np.logaddexp(narrow, wide) + math.log(2.0)
    beyond = parts[:, [0, -1]]
    beyond = _surely(beyond, noise)
    return Spread(middle + half_width * center, half_width * deviation, of_spread, of_atom, beyond)


def _at_least_seen(
    parts: np.ndarray, noise: float, mean: np.ndarray, deviation: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of the values that are surely in the bins, where they exceed the spread of the laws.

    A column may have two humps, or an atom and a tail. The most likely law then describes the larger part only.
    """
    seen, end = _surely(parts, noise), 1.0 + 1.0 / DEFAULTS.histograms.n_bins
    middles = np.linspace(-end, end, parts.shape[1])
    seen /= np.maximum(seen.sum(axis=1), 1e-300)[:, None]
    found = seen @ middles
    apart = np.sqrt(np.maximum(seen @ middles**2 - found**2, 0.0))
    wider = apart > deviation
    return np.where(wider, found, mean), np.where(wider, apart, deviation)


def _surely(parts: np.ndarray, noise: float) -> np.ndarray:
    """Parts that are surely in their bins; 0 for others."""
    least = DEFAULTS.histograms.seen_evidence * noise + DEFAULTS.histograms.seen_part
    return np.where(parts > least, parts, 0.0)


def _fit(parts: np.ndarray, laws: tuple[np.ndarray, np.ndarray], noise: float) -> np.ndarray:
    """Log likelihood of each law, up to a constant of the column; `_laws` makes the laws."""
    table, half_square = laws
    return (parts @ table.T - half_square) / (noise**2 + DEFAULTS.histograms.misfit**2)


def _log_mean(fit: np.ndarray) -> np.ndarray:
    """Logarithm of the mean likelihood of laws."""
    best = fit.max(axis=1)
    return np.asarray(best + np.log(np.exp(fit - best[:, None]).mean(axis=1)))


@dataclass(frozen=True)
class Windows:
    """Windows that were narrowed.

    Attributes
    ----------
    columns : ndarray of int
        Columns that were not given up; the arrays below belong to them.
    center, half_width : ndarray
        Four standard deviations to each side.
    spent : float
        Share that was taken.
    """

    columns: np.ndarray
    center: np.ndarray
    half_width: np.ndarray
    spent: float


def narrowed(
    budget: BudgetSplit,
    records: PrivateRecords,
    half_width: np.ndarray,
    look: float,
    most: float,
    purpose: str,
    given_up: float = math.inf,
    patient: bool = False,
    start: float | np.ndarray = 0.0,
) -> Windows:
    """Narrow the windows of ``half_width`` about ``start`` until the columns fill them.

    Values that are far from 0 and close to each other lie in one bin. Then a histogram around it is released.

    Parameters
    ----------
    half_width : ndarray of shape (n_features,)
    look, most : float
        Shares of mu^2: of each histogram, and of all of them.
    given_up : float, default=inf
        Evidence for an atom, of all looks together, above which a column is given up.
    patient : bool, default=False
        Look once more where a window seems to be narrow enough.
    """
    defaults = DEFAULTS.histograms
    columns, center, widest = np.arange(half_width.size), np.zeros(half_width.size) + start, half_width
    spent, atom, settled = 0.0, np.zeros(half_width.size), not patient
    for _ in range(defaults.max_windows):
        found = released_spread(budget, records, look, center, half_width, purpose)
        spent, atom = spent + look, atom + found.atom
        kept = np.flatnonzero(atom < given_up)
        narrow = found.deviation < defaults.min_deviation * half_width
        lost = found.deviation > half_width
        center, last = found.center, np.where(lost, 1.0, defaults.last_window) * found.deviation
        half_width = np.where(
            lost, found.deviation, np.minimum(defaults.next_window * found.deviation, half_width)
        )
        going_on = bool((narrow | lost)[kept].any())
        if kept.size < columns.size:
            records = records.restricted(kept) if kept.size else records
            columns, atom = columns[kept], atom[kept]
            center, last, half_width = center[kept], last[kept], half_width[kept]
        # Noise may widen one look by chance; two in a row hardly ever.
        if not kept.size or (settled and not going_on) or spent + look > most:
            break
        settled = not (patient and going_on)
    return Windows(columns, center, np.minimum(last, widest[columns]), spent)


@lru_cache(maxsize=1)
def _family(defaults: HistogramDefaults) -> tuple[np.ndarray, ...]:
    """Bins' probabilities of each law, its mean, its deviation, whether it has no atom; by rising deviation."""
    edges = np.concatenate([[-np.inf], np.linspace(-1.0, 1.0, defaults.n_bins + 1), [np.inf]])
    scales = 2.0 ** np.arange(defaults.smallest_scale, 0.1, defaults.scale_step)
    centers = np.linspace(-1.0, 1.0, defaults.n_centers)
    a, s = (part.ravel()[:, None] for part in np.meshgrid(centers, scales))
    few = scales[:, None]
    laws = [
        (ndtr((edges - a) / s), a, s),
        (np.clip((edges - a) / (math.sqrt(12.0) * s) + 0.5, 0.0, 1.0), a, s),
        (_exponential((edges - a) / s), a + s, s),
        (1.0 - _exponential((a - edges) / s), a - s, s),
    ]
    n_smooth = 4 * a.size
    at_zero = (edges > 0.0).astype(np.float64)
    for q in defaults.atoms:
        deviation = few * math.sqrt(1.0 - q**2)
        above, below = _exponential(edges / few), 1.0 - _exponential(-edges / few)
        laws.append((q * at_zero + (1.0 - q) * above, (1.0 - q) * few, deviation))
        laws.append((q * at_zero + (1.0 - q) * below, (q - 1.0) * few, deviation))
    table, means, deviations = (np.concatenate(part) for part in zip(*laws))
    # All values beyond an end, where a wrong histogram has lost them.
    beyond = np.zeros((2, edges.size - 1))
    beyond[0, 0] = beyond[1, -1] = 1.0
    table = np.vstack([np.diff(table, axis=1), beyond])
    means = np.append(means, [-defaults.beyond, defaults.beyond])[:, None]
    deviations = np.append(deviations, [defaults.beyond, defaults.beyond])[:, None]
    order = np.argsort(deviations[:, 0], kind="stable")
    return table[order], means[order, 0], deviations[order, 0], order < n_smooth


def _one_bin(n_bins: int) -> np.ndarray:
    """Laws so narrow that one bin holds all values: a look at them tells nothing for or against an atom."""
    return np.eye(n_bins + 2)[1:-1]


def _atoms(n_bins: int, parts: tuple[float, ...]) -> np.ndarray:
    """Return the bins' probabilities for each law with an atom in the unit window."""
    others = np.zeros((4, n_bins + 2))
    others[0, 0] = others[1, -1] = 1.0
    others[2, [0, -1]] = 0.5
    others[3, 1:-1] = 1.0 / n_bins
    laws = [q * _one_bin(n_bins)[:, None] + (1.0 - q) * others for q in parts]
    return np.concatenate(laws).reshape(-1, n_bins + 2)


@lru_cache(maxsize=1)
def _laws(defaults: HistogramDefaults) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bins' probabilities and half of their squared norm: of the family, of one bin, and of laws with an atom."""
    n_bins = defaults.n_bins
    tables = (_family(defaults)[0], _one_bin(n_bins), _atoms(n_bins, defaults.heavy_atoms))
    return [(table, 0.5 * (table**2).sum(axis=1)) for table in tables]


def _exponential(x: np.ndarray) -> np.ndarray:
    """Distribution function of the exponential law."""
    return 1.0 - np.exp(-np.maximum(x, 0.0))
