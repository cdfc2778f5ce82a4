"""The highest power-of-two bin of columns, from released counts of their magnitudes."""

import math
from functools import lru_cache

import numpy as np

from skdp.linear_model.auto.defaults import DEFAULTS, BinDefaults


def posterior_of_tops(counts: np.ndarray, noise: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of each column's highest power-of-two bin, given counts with noise; the columns share a prior.

    Also the evidence of a column's own counts for each power-of-two bin, in standard deviations.

    A column is one of the `shapes`, counted from its highest power-of-two bin downward, of a part of the records.
    """
    bins = DEFAULTS.bins
    base = _base(bins)
    terms, own = [], np.full(counts.shape, -np.inf)
    # Bins below the lowest hold nothing.
    lead = max(map(len, bins.shapes)) - 1
    padded = np.zeros((*counts.shape[:-1], lead + counts.shape[-1]))
    padded[..., lead:] = counts
    for shape in bins.shapes:
        fit = sum(weight * padded[..., lead - k : padded.shape[-1] - k] for k, weight in enumerate(shape))
        square = sum(weight**2 for weight in shape)
        own = np.maximum(own, fit / (noise * math.sqrt(square)))
        for part in bins.parts:
            terms.append((n * part * fit - 0.5 * (n * part) ** 2 * square) / noise**2)
    every = np.stack(terms)
    largest = every.max(axis=0)
    total = largest + np.log(np.mean(np.exp(every - largest), axis=0))
    likelihood = np.exp(total - total.max(axis=-1)[..., None])
    prior = base
    for _ in range(bins.prior_rounds):
        known = likelihood * prior
        known /= known.sum(axis=-1)[..., None]
        # Of the other columns only: a column's own noise would confirm itself.
        prior = bins.prior_columns * base + np.maximum(known.sum(axis=-2, keepdims=True) - known, 0.0)
    return known, own


@lru_cache(maxsize=1)
def _base(bins: BinDefaults) -> np.ndarray:
    """The public prior of a highest power-of-two bin."""
    log2_bin = np.arange(bins.lowest, bins.highest + 1)
    base = 1.0 / (1.0 + (log2_bin / bins.prior_scale) ** 2)
    low = log2_bin < bins.usual[0]
    base[low] *= bins.below_usual_factor * np.exp(bins.below_usual_decay * (log2_bin[low] - bins.usual[0]))
    base[log2_bin > bins.usual[1]] *= bins.above_usual_factor
    base /= base.sum()
    base.setflags(write=False)
    return base


def highest_log2_bins(
    counts: np.ndarray, noise: float, n: int, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of each column's highest power-of-two bin, whether it is found, and the evidence of its counts.

    Parameters
    ----------
    counts : ndarray of shape (..., n_columns, n_bins)
        Released.
    noise : float
        Its standard deviation.
    n : int
        Number of records.
    least : float
        Standard deviations of the noise that a column's own counts must show.

    Notes
    -----
    A power-of-two bin that lies `distant` or more above the likely one is taken where its count alone is larger
    than `sure_evidence` standard deviations of noise. The normal tail, times the looks, is then the rate of a
    range that noise made 16 times too large.
    """
    bins = DEFAULTS.bins
    known, own = posterior_of_tops(counts, noise, n)
    below, place = np.cumsum(known, axis=-1), np.arange(counts.shape[-1])
    likely = known.argmax(axis=-1)
    # The upper end of a posterior that has two modes would be a range made of noise.
    top = np.minimum((below < bins.upper_quantile).sum(axis=-1), likely + bins.distant - 1)
    top = np.minimum(top, bins.highest - bins.lowest)[..., None]
    near = np.abs(place - top) <= bins.neighbours
    sure = (known * near).sum(axis=-1) > bins.min_probability
    # Other columns may say where a column probably lies; only its own counts say that it does.
    evidence = np.where(near, own, -np.inf).max(axis=-1)
    sure &= evidence > least
    above = place - top
    needed = bins.higher_evidence + bins.evidence_per_bin * above
    needed = np.where(above < bins.distant, needed, bins.sure_evidence)
    higher = (above > 0) & (counts > needed * noise)
    return np.where(higher, place, top).max(axis=-1), sure, evidence
