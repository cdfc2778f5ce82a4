"""The highest octave of columns, from released counts of their magnitudes."""

import math
from functools import lru_cache

import numpy as np

__all__ = ["HIGH", "LOW", "NEAR", "NEXT", "SURELY", "highest_octaves", "posterior_of_tops"]

LOW, HIGH = -34, 48  # octaves
COMMON = 2.0  # octaves: spread of the public prior of a highest octave, around 1
# Octaves that columns often have, and what the prior of lower and of higher ones is multiplied by. Among so many
# octaves noise finds some high count, and a reach that is too small does the more harm the smaller it is.
CORE, RARE_LOW, RARE_HIGH, LOWER = (-6, 8), 1e-4, 1e-2, 1.0
PSEUDO = 3.0  # columns that the public prior counts for
ROUNDS = 5  # of the estimate of the shared prior
# How the records of a column lie, from its highest octave downward, and which part of the records is not 0.
SHAPES = ((1.0,), (0.6, 0.4), (0.4, 0.35, 0.25), (0.3, 0.25, 0.2, 0.15, 0.1))
PARTS = (1.0, 0.6, 0.3, 0.12, 0.05, 0.02)
UPPER = 0.95  # quantile of the highest octave that is taken
NEAR, SURE = 2, 0.8  # octaves around it; least probability that they hold the highest one
# Standard deviations of its noise that the count of a higher octave must show, and more for each octave that it is
# higher. Codes for missing answers, such as 999, may lie far above. From `NEXT` octaves on it is `SURELY`: the
# normal tail beyond it, times the 83 octaves and 4 shapes that are looked at, is 4e-6.
HIGHER, MORE, NEXT, SURELY = 2.5, 0.5, 4, 5.6


def posterior_of_tops(counts: np.ndarray, noise: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of each column's highest octave, given counts with noise; the columns share a prior.

    Also the evidence of a column's own counts for each octave, in standard deviations.

    A column is one of `SHAPES`, counted from its highest octave downward, of a part of the records.
    """
    base = _base()
    terms, own = [], np.full(counts.shape, -np.inf)
    # Octaves below the lowest hold nothing.
    lead = max(map(len, SHAPES)) - 1
    padded = np.zeros((*counts.shape[:-1], lead + counts.shape[-1]))
    padded[..., lead:] = counts
    for shape in SHAPES:
        fit = sum(weight * padded[..., lead - k : padded.shape[-1] - k] for k, weight in enumerate(shape))
        square = sum(weight**2 for weight in shape)
        own = np.maximum(own, fit / (noise * math.sqrt(square)))
        for part in PARTS:
            terms.append((n * part * fit - 0.5 * (n * part) ** 2 * square) / noise**2)
    every = np.stack(terms)
    largest = every.max(axis=0)
    total = largest + np.log(np.mean(np.exp(every - largest), axis=0))
    likelihood = np.exp(total - total.max(axis=-1)[..., None])
    prior = base
    for _ in range(ROUNDS):
        known = likelihood * prior
        known /= known.sum(axis=-1)[..., None]
        # Of the other columns only: a column's own noise would confirm itself.
        prior = PSEUDO * base + np.maximum(known.sum(axis=-2, keepdims=True) - known, 0.0)
    return known, own


@lru_cache(maxsize=1)
def _base() -> np.ndarray:
    """The public prior of a highest octave."""
    octave = np.arange(LOW, HIGH + 1)
    base = 1.0 / (1.0 + (octave / COMMON) ** 2)
    low = octave < CORE[0]
    base[low] *= RARE_LOW * np.exp(LOWER * (octave[low] - CORE[0]))
    base[octave > CORE[1]] *= RARE_HIGH
    base /= base.sum()
    base.setflags(write=False)
    return base


def highest_octaves(
    counts: np.ndarray, noise: float, n: int, least: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number of each column's highest octave, whether it is found, and the evidence of its own counts for it.

    Parameters
    ----------
    counts : ndarray of shape (..., n_columns, n_octaves)
        Released.
    noise : float
        Its standard deviation.
    n : int
        Number of records.
    least : float
        Standard deviations of the noise that a column's own counts must show.

    Notes
    -----
    An octave that lies `NEXT` or more above the likely one is taken where its count alone is larger than
    `SURELY` standard deviations of noise. The normal tail, times the looks, is then the rate of a range that noise
    made 16 times too large.
    """
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
    needed = np.where(above < NEXT, HIGHER + MORE * above, SURELY)
    higher = (above > 0) & (counts > needed * noise)
    return np.where(higher, place, top).max(axis=-1), sure, evidence
