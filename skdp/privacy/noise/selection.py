"""Private selection: the k largest of integer scores plus Gumbel noise."""

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy.entries import places_between
from skdp.privacy.noise.integers import BLOCK
from skdp.privacy.noise.keystream import KeyStream, Seed, check_integer, check_number, stream_of

__all__ = ["gumbel_top_k", "sparse_top_k"]


def gumbel_top_k(scores: Integers, k: int, scale: float, stream: Seed | KeyStream = None) -> Integers:
    """Select the k largest of score + Gumbel(scale), the first one first.

    With ``scale = 2 Delta / epsilon``, where one record changes no score by more than Delta, each
    of the k choices is epsilon-bounded-range, hence epsilon-DP and (epsilon^2 / 8)-zCDP. A scale
    of Delta / epsilon suffices only if all scores are proven to move in the same direction: a vote
    that moves from one candidate to another moves two scores in opposite directions.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,), dtype int64
        Integer scores; any values, also thousands of scales apart.
    k : int in [1, n_candidates]
        How many to select.
    scale : float > 0
        Scale of the Gumbel noise in units of the scores.
    stream : None, int, RandomState, Generator or KeyStream, default=None
        As ``random_state`` in `rounded_gaussian`.

    Returns
    -------
    indices : ndarray of shape (k,), dtype int64
        Indices of the selected candidates, in the order of selection. The order may be released.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If ``scores`` is not a vector, or ``k`` or ``scale`` is outside its range.

    See Also
    --------
    selection_slack : what the error adds to epsilon and delta.

    Notes
    -----
    Sorting by score + Gumbel(scale) has the law of successive sampling without replacement with
    weights exp(score / scale). This is what is computed, by a tree of weight sums: there is no
    Gumbel number whose rounding or limited range could matter, and there are no ties. Each
    conditional probability has a log-error below 2^-43 (``skdp.privacy.noise.samplers``).

    References
    ----------
    F. McSherry and K. Talwar, "Mechanism design via differential privacy" (FOCS 2007); D. Durfee and R. Rogers,
    "Practical differentially private top-k selection" (NeurIPS 2019), whose scale Delta / epsilon is for counts to
    which records only add; J. I. Yellott, "The relationship between Luce's choice axiom, Thurstone's theory of
    comparative judgment, and the double exponential distribution" (1977).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.noise import gumbel_top_k
    >>> gumbel_top_k(np.array([0, 9000, 5000]), 2, 1.0)
    array([1, 2])
    """
    values = np.asarray(scores)
    if not np.can_cast(values.dtype, np.int64) or values.dtype == bool:
        raise TypeError(f"scores must be integers that fit int64, got dtype {values.dtype}.")
    if values.ndim != 1:
        raise ValueError(f"scores must be a vector, got {values.ndim} dimensions.")
    count = check_integer(k, "k")
    if not 1 <= count <= values.size:
        raise ValueError(f"k must be between 1 and the {values.size} candidates, got {count}.")
    scale = check_number(scale, "scale", (0.0, float("inf")))
    source = stream_of(stream, b"gumbel_top_k " + scale.hex().encode())
    return _select(values.astype(np.int64), count, scale, source)


def _select(scores: Integers, k: int, scale: float, stream: KeyStream) -> Integers:
    from skdp.privacy.noise.samplers import select_top

    out = np.empty(k, dtype=np.int64)
    gone = np.zeros(scores.size, dtype=np.bool_)
    # An empty tree: the first selection builds it.
    tree = np.zeros(2 * scores.size)
    depth = scores.size.bit_length()
    # A choice between subtrees takes one word, on ties at most 18: a float64 has 1074 places.
    reserve = 18 * depth
    done = 0
    while done < k:
        words = stream.words(min(depth * (k - done), BLOCK) + reserve)
        done = select_top(words, reserve, scores, scale, gone, tree, done, out)
    return out


def sparse_top_k(
    positions: Integers, scores: Integers, size: int, k: int, scale: float, stream: Seed | KeyStream = None
) -> Integers:
    """Select k of ``size`` candidates as `gumbel_top_k` does, where most scores are 0.

    Candidates without a score are never visited. Their chances and their places have the exact law, so the time
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
    `selection_slack` holds for it; `skdp.privacy.noise.sparse_selection` has the proof.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.noise import sparse_top_k
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
    from skdp.privacy.noise.sparse_selection import select_sparse

    gone = np.zeros(at.size, dtype=np.bool_)
    tree = np.zeros(2 * (at.size + 1))  # empty: the first selection builds it
    depth = (at.size + 1).bit_length()
    reserve = 18 * depth  # as in `_select`
    done, others, one = 0, size - at.size, 0.0
    while done < count:
        words = source.words(min(depth * (count - done), BLOCK) + reserve)
        done, others, one = select_sparse(words, reserve, values, scale, gone, others, one, tree, done, count)
    ranks = _uniform_subset(size - at.size, size - at.size - others, source)
    unscored = places_between(at, ranks)
    return np.sort(np.concatenate([at[gone], unscored]))


def _uniform_subset(n: int, size: int, stream: KeyStream) -> Integers:
    """A uniformly random subset of 0 .. n-1; of the smaller of it and its complement, numbers are drawn."""
    few = min(size, n - size)
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < few:
        more = np.append(drawn, stream.integers(n, few - drawn.size))
        drawn = more[np.sort(np.unique(more, return_index=True)[1])]
    drawn = np.sort(drawn)
    return drawn if few == size else np.delete(np.arange(n), drawn)
