"""Evidence of released numbers for a signal: which columns get smooth functions, and how many.

All of it is post-processing of released gradients whose noise is known.
"""

import numpy as np
from scipy.special import logsumexp

# Where there is a signal, each of these is as likely as the others: squared signal over noise of the first entry.
RATIOS = 4.0 ** np.arange(-3.0, 9.0)
# Fractions of blocks that have a signal, which are tried, and the exponent of Jeffreys' prior of a fraction: most
# tables have few curves or hardly a line, and in either case the blocks in doubt become clear.
FRACTIONS = (np.arange(200.0) + 0.5) / 200
JEFFREYS = -0.5


def log_bayes_factors(z: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Logarithms of the Bayes factors for a signal in blocks of released numbers, against none.

    Parameters
    ----------
    z : ndarray of shape (n_blocks, k, q)
        In standard deviations of its noise.
    share : ndarray of shape (k,)
        Variance of the signal in each of the k entries over the one in the first.

    Returns
    -------
    ndarray of shape (n_blocks,)
        In nats: of the mean over `RATIOS` of the normal density with a signal over the one without.
    """
    ratio = 1.0 + RATIOS[:, None] * share
    parts = 0.5 * (z[:, None] ** 2 * (1.0 - 1.0 / ratio[..., None]) - np.log(ratio)[..., None])
    return np.asarray(logsumexp(parts.sum(axis=(2, 3)), axis=1) - np.log(RATIOS.size))


def of_functions(z: np.ndarray, share: np.ndarray, prior: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the Bayes factors for some of the first functions of each block, and the likeliest number.

    Parameters
    ----------
    z, share
        As for `log_bayes_factors`.
    prior : dict of float by int
        How likely a number of functions is, where there are some. Larger numbers than k are left out.
    """
    counts = np.array([k for k in prior if k <= z.shape[1]])
    weights = np.array([prior[k] for k in counts])
    each = np.stack([log_bayes_factors(z[:, :k], share[:k]) for k in counts], axis=1)
    each += np.log(weights / weights.sum())
    return np.asarray(logsumexp(each, axis=1)), counts[each.argmax(axis=1)]


def probabilities(log_factors: np.ndarray) -> np.ndarray:
    """Probability that a block has a signal, where the fraction of such blocks is not known.

    The more blocks show a signal, the likelier the blocks in doubt have one.

    Parameters
    ----------
    log_factors : ndarray of shape (n_blocks,)
        Logarithms of Bayes factors.
    """
    some = np.log(FRACTIONS)[:, None] + log_factors
    both = np.logaddexp(some, np.log1p(-FRACTIONS)[:, None])
    weight = both.sum(axis=1) + JEFFREYS * np.log(FRACTIONS * (1.0 - FRACTIONS))
    weight = np.exp(weight - logsumexp(weight))
    return np.asarray(weight @ np.exp(some - both))
