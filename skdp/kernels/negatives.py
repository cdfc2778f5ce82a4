"""Negatives: the law of the words that negative sampling draws, as the kernels of CBOW take it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.kernels.protocols import Floats, Integers


@dataclass(frozen=True, eq=False)
class Negatives:
    """The law of the negatives of a window: public, or released.

    Parameters
    ----------
    count : int
        How many negatives a window draws.
    keep : ndarray of uint64 of shape (n_words,)
    alias : ndarray of int64 of shape (n_words,)
        Walker's alias table: of 2**32 equal parts a word keeps so many of its own column, and its alias
        gets the others.

    Examples
    --------
    >>> from skdp.kernels import Negatives
    >>> Negatives.by_weights(8, [1.0, 1.0, 2.0]).shares().tolist()
    [0.25, 0.25, 0.5]
    """

    count: int
    keep: NDArray[np.uint64]
    alias: Integers

    @classmethod
    def by_weights(cls, count: int, weights: ArrayLike) -> "Negatives":
        """Draw each word in proportion to its weight.

        Parameters
        ----------
        count : int
        weights : array-like of float of shape (n_words,)
            Public or released; at least 0, and not all of them 0.

        Raises
        ------
        ValueError
            If they are no such numbers.
        """
        wanted = "weights must be finite numbers >= 0, one for each word, not all 0"
        try:
            given = np.array(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(wanted) from None
        if given.ndim != 1 or not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
            raise ValueError(wanted)
        left = given / given.max()
        left *= left.size / left.sum()
        keep, alias = np.ones(left.size), np.arange(left.size)
        small, large = list(np.flatnonzero(left < 1)), list(np.flatnonzero(left >= 1))
        while small and large:
            low, high = small.pop(), large[-1]
            keep[low], alias[low] = left[low], high
            left[high] -= 1 - left[low]
            if left[high] < 1:
                small.append(large.pop())
        return cls(int(count), np.rint(keep * 2.0**32).astype(np.uint64), alias)

    def shares(self) -> Floats:
        """Return the probability of each word."""
        own = self.keep / 2.0**32
        found = np.bincount(self.alias, weights=1 - own, minlength=own.size) + own
        return np.asarray(found / own.size)

    def table(self) -> tuple[int, NDArray[np.uint64], Integers]:
        """Return the arguments of the kernels."""
        return self.count, self.keep, self.alias
