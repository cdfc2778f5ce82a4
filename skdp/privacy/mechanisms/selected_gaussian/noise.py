"""The k largest of integer scores plus Gumbel noise, where most scores are 0."""

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy.batches import uniform_subset
from skdp.privacy.entries import positions_between
from skdp.privacy.noise.integers import BLOCK
from skdp.privacy.noise.keystream import KeyStream, Seed, check_integer, check_number, stream_of


def sparse_top_k(
    positions: Integers, scores: Integers, size: int, k: int, scale: float, stream: Seed | KeyStream = None
) -> Integers:
    """Select k of ``size`` candidates as `gumbel_top_k` does, where most scores are 0.

    Candidates without a score are never visited. Their chances and their positions have the exact law, so the time
    grows with the number of scores and with k alone.

    Parameters
    ----------
    positions : ndarray of shape (n_scores,), dtype int64
        Ascending candidates in [0, size) that have a score. All others have score 0.
    scores : ndarray of shape (n_scores,), dtype int64
    size : int
        Number of candidates.
    k : int in [1, size]
    scale : float > 0
        As in `gumbel_top_k`.
    stream : None, int, RandomState, Generator or KeyStream, default=None

    Returns
    -------
    indices : ndarray of shape (k,), dtype int64
        The selected candidates, ascending: a set.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    `selection_numerical_error` holds for it; `skdp.privacy.mechanisms.selected_gaussian.compiled` has the proof.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.mechanisms.selected_gaussian.noise import sparse_top_k
    >>> chosen = sparse_top_k(np.array([7, 90]), np.array([9000, 5000]), 10**7, 3, 1.0)
    >>> chosen.size, 7 in chosen, 90 in chosen
    (3, True, True)
    """
    size, count = check_integer(size, "size"), check_integer(k, "k")
    at, values = np.asarray(positions, dtype=np.int64), np.asarray(scores, dtype=np.int64)
    if at.shape != values.shape or at.ndim != 1:
        raise ValueError("positions and scores must be vectors of one length")
    if at.size and (at[0] < 0 or at[-1] >= size or (np.diff(at) <= 0).any()):
        raise ValueError("positions must ascend and lie in [0, size)")
    if not 1 <= count <= size:
        raise ValueError(f"k must be between 1 and the {size} candidates, got {count}.")
    scale = check_number(scale, "scale", (0.0, float("inf")))
    source = stream_of(stream, b"sparse_top_k " + scale.hex().encode())
    from skdp.privacy.mechanisms.selected_gaussian.compiled import select_sparse

    gone = np.zeros(at.size, dtype=np.bool_)
    tree = np.zeros(2 * (at.size + 1))  # empty: the first selection builds it
    depth = (at.size + 1).bit_length()
    reserve = 18 * depth  # as in `gumbel_top_k`
    done, others, one = 0, size - at.size, 0.0
    while done < count:
        words = source.words(min(depth * (count - done), BLOCK) + reserve)
        done, others, one = select_sparse(words, reserve, values, scale, gone, others, one, tree, done, count)
    ranks = uniform_subset(size - at.size, size - at.size - others, source)
    unscored = positions_between(at, ranks)
    return np.sort(np.concatenate([at[gone], unscored]))
