"""Evidence of released numbers for a signal: which columns get smooth functions, and how many.

All of it is post-processing of released gradients whose noise is known.
"""

import numpy as np

__all__ = ["evidence", "of_functions"]

# Squared signal over noise of a block's first entry, that are tried.
RATIOS = 4.0 ** np.arange(-3.0, 9.0)


def evidence(z: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Logarithm of the evidence for a signal in blocks of released numbers, against none.

    Parameters
    ----------
    z : ndarray of shape (n_blocks, k, q)
        In standard deviations of its noise.
    share : ndarray of shape (k,)
        Variance of the signal in each of the k entries over the one in the first.

    Returns
    -------
    ndarray of shape (n_blocks,)
        In nats: the largest log ratio of the normal densities with and without a signal, over `RATIOS`.
    """
    ratio = 1.0 + RATIOS[:, None] * share
    parts = 0.5 * (z[:, None] ** 2 * (1.0 - 1.0 / ratio[..., None]) - np.log(ratio)[..., None])
    return np.asarray(parts.sum(axis=(2, 3)).max(axis=1))


def of_functions(
    z: np.ndarray, share: np.ndarray, counts: tuple[int, ...], least: float, each: float
) -> np.ndarray:
    """How many of its first functions each block needs: 0, or one of ``counts``.

    Parameters
    ----------
    z, share
        As for `evidence`.
    counts : tuple of int
    least : float
        Nats of evidence that a block must have.
    each : float
        Nats that a function after the first one costs.
    """
    best, found = np.full(len(z), least), np.zeros(len(z), dtype=np.int64)
    for k in counts:
        if k <= z.shape[1]:
            now = evidence(z[:, :k], share[:k]) - each * (k - 1)
            best, found = np.maximum(best, now), np.where(now > best, k, found)
    return found
