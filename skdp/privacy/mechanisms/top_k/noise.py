"""Private selection: the k largest of integer scores plus Gumbel noise."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy.bounded import SourceExtra
from skdp.privacy.noise.integers import BLOCK
from skdp.privacy.noise.keystream import KeyStream, Seed, check_integer, check_number, stream_of


@dataclass(frozen=True)
class KeptScores(SourceExtra):
    """Scores that are cheaper to keep than to list, as `Source.extra`.

    Attributes
    ----------
    draw : callable (unit, scale, stream) -> int
        Draws one index with the weights exp(score / scale) of the scores on that grid.
    """

    draw: Callable[[float, float, KeyStream], int]


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
    skdp.privacy.noise.selection_numerical_error : the error's part of epsilon and delta.

    Notes
    -----
    Sorting by score + Gumbel(scale) has the law of successive sampling without replacement with
    weights exp(score / scale). The code samples so, by a tree of weight sums: there is no Gumbel number whose
    rounding or limited range could matter, and there are no ties. Each conditional probability has a log-error
    below 2^-43 (``skdp.privacy.noise.samplers``).

    References
    ----------
    F. McSherry and K. Talwar, "Mechanism design via differential privacy" (FOCS 2007); D. Durfee and R. Rogers,
    "Practical differentially private top-k selection" (NeurIPS 2019), whose scale Delta / epsilon is for counts to
    which records only add; J. I. Yellott, "The relationship between Luce's choice axiom, Thurstone's theory of
    comparative judgment, and the double exponential distribution" (1977).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy.mechanisms.top_k.noise import gumbel_top_k
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
