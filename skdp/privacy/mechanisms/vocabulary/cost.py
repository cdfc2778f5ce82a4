"""The threshold of a released vocabulary: how unlikely it makes a word that only one unit has."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdp.kernels.protocols import Integers
from skdp.privacy.accounting.releases import Line, Release, Row
from skdp.privacy.accounting.text import number_text
from skdp.privacy.mechanisms.gaussian.cost import Gaussian


def shares_of_words(grid: int, max_words: int) -> Integers:
    """Return the share of each word of a unit with k words, for k = 1, ..., ``max_words``, in units of the grid.

    The largest integer a with k a^2 <= grid^2: so the unit's vector has l2 norm at most ``grid``.

    Examples
    --------
    >>> from skdp.privacy.mechanisms.vocabulary.cost import shares_of_words
    >>> shares_of_words(100, 4).tolist()
    [100, 70, 57, 50]
    """
    return np.array([math.isqrt(grid * grid // k) for k in range(1, max_words + 1)], dtype=np.int64)


def word_threshold(grid: int, sigma: float, max_words: int, delta: float) -> int:
    """Return the smallest threshold for which a unit's own words stay unseen but with probability ``delta``.

    Parameters
    ----------
    grid : int
        Largest l2 norm of a unit's contribution.
    sigma : float
        Standard deviation of the noise, in units of the grid.
    max_words : int
        Most words of a unit.
    delta : float
        In (0, 1).

    Notes
    -----
    A unit of k words adds a_k to each. If no other unit has them, each is released if a_k + round(N) reaches the
    threshold t. That has probability 1 - Phi((t - a_k - 1/2) / sigma), independently of the others, and any of
    them is released with probability 1 - Phi((t - a_k - 1/2) / sigma)^k, which is largest if all k words are the
    unit's own. The threshold is the largest one that a k needs.
    """
    k = np.arange(1, max_words + 1)
    tail = -np.expm1(math.log1p(-delta) / k)  # probability that one word is released
    least = shares_of_words(grid, max_words) + 0.5 - sigma * ndtri(tail)
    # ndtri is right to 1e-13 or so; the margin is far above it, and far below the noise.
    return math.ceil(float(least.max()) + 1e-8 * sigma)


@dataclass(frozen=True, kw_only=True)
class VocabularyRelease(Gaussian):
    """Words with a noisy count of ``threshold`` or more, at most ``max_words`` of a unit.

    Privacy
    -------
    A Gaussian release, as its row says, but for a word that one unit alone has. That one is released with
    probability ``delta`` at most, which is charged to the numerical error: `vocabulary.release` has the proof.
    """

    last_keys = ("threshold", "max_words", "delta")

    threshold: float
    max_words: int
    delta: float

    @classmethod
    def variant(cls, row: Row) -> type[Release]:
        return cls

    def lines(self, unit: str) -> list[Line]:
        text = (
            f"words with a noisy count of {number_text(self.threshold)} or more, at most {self.max_words} of each "
            f"{unit}; one that one {unit} alone has is released with probability {number_text(self.delta)} at "
            "most, which the numerical error pays"
        )
        return [("words" if self.purpose is None else self.purpose, text)]


RELEASE = VocabularyRelease
