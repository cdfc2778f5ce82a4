"""Ranks of phrases among random ones, and the distance of a histogram of ranks from uniform."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logit
from scipy.stats import beta, chi2

from skdp.audit.canaries import draw_rivals

# Phrases that are scored in one call: enough for fast arrays, few enough for little memory.
_BLOCK = 2**20


def rank_phrases(
    score: Callable[[np.ndarray], np.ndarray],
    phrases: np.ndarray,
    n_words: int,
    n_references: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Rank each phrase among ``n_references`` random ones with the same first word.

    The rank is the number of random phrases whose log-perplexity is larger: a phrase that the model has memorised
    has a high rank. Of the random phrases with the same log-perplexity a random number counts as well, from none
    to all. A phrase of which the model knows nothing then has a rank that is exactly uniform on 0, ...,
    ``n_references``: the phrase and the random ones could be exchanged.

    Returns
    -------
    ndarray of shape (n_phrases,), int64
    """
    ranks = np.empty(len(phrases), dtype=np.int64)
    step = max(1, _BLOCK // (n_references + 1))
    for start in range(0, len(phrases), step):
        block = slice(start, start + step)
        rivals = draw_rivals(phrases[block], n_words, n_references, rng)
        values = _checked(score(rivals.reshape(-1, 3)), rivals[..., 0].size)
        values = values.reshape(rivals.shape[:2])
        own, others = values[:, :1], values[:, 1:]
        larger = np.count_nonzero(others > own, axis=1)
        equal = np.count_nonzero(others == own, axis=1)
        ranks[block] = larger + rng.randint(equal + 1)
    return ranks


def _checked(values: object, n_phrases: int) -> np.ndarray:
    """Log-perplexities as an array of floats; infinite ones are allowed."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (n_phrases,):
        raise ValueError(
            f"score must return one log-perplexity for each of the {n_phrases} phrases, got an array of shape "
            f"{found.shape}"
        )
    if np.isnan(found).any():
        raise ValueError("score must return numbers, got NaN")
    return found


def exposures(ranks: np.ndarray, n_references: int) -> np.ndarray:
    """Return log2 of the number of phrases minus log2 of the place, where place 1 has the lowest perplexity."""
    return math.log2(n_references + 1) - np.log2(n_references + 1 - ranks)


def chi_squared(ranks: np.ndarray, n_references: int, n_bins: int) -> tuple[float, float]:
    """Return Pearson's chi-squared distance of the ranks from uniform, and the p-value of the test.

    The distance is the test's statistic divided by the number of ranks, the sum of (p - q)^2 / q over the bins
    with the share p of the ranks and the share q of the possible ranks. It is at most 1 / q - 1 with the smallest
    q, which is about the number of bins minus 1.
    """
    bins = np.bincount(ranks * n_bins // (n_references + 1), minlength=n_bins)
    possible = np.bincount(np.arange(n_references + 1) * n_bins // (n_references + 1), minlength=n_bins)
    expected = len(ranks) * possible / (n_references + 1)
    statistic = float(np.sum((bins - expected) ** 2 / expected))
    return statistic / len(ranks), float(chi2.sf(statistic, n_bins - 1))


def lowest_epsilon(ranks: np.ndarray, n_references: int, top: float, confidence: float) -> float:
    """Return the smallest pure epsilon of one exchanged canary that agrees with the ranks.

    Let each canary and its random phrases be R + 1 candidates, of which a uniformly random one was inserted. Let
    the training satisfy epsilon-DP with respect to an exchange of the inserted candidate for another. Given the
    model, all candidates and which ones were inserted for the other canaries, the odds of two candidates differ by
    at most exp(epsilon) (Bayes). Hence a set of k candidates that is chosen by the model, as the k highest ranks
    are, holds the inserted one with a probability of at most p = k e / (k e + R + 1 - k) with e = exp(epsilon).
    This holds whatever the other canaries do, and the number of canaries in the top k is stochastically below a
    binomial number with this p, although all of them went into one training. The lower bound is p's by Clopper and
    Pearson, solved for epsilon.
    """
    k = max(1, round(top * (n_references + 1)))
    hits = int(np.count_nonzero(ranks > n_references - k))
    if hits == 0:
        return 0.0
    lowest = beta.ppf(1.0 - confidence, hits, len(ranks) - hits + 1)
    return max(0.0, float(logit(lowest) - logit(k / (n_references + 1))))
