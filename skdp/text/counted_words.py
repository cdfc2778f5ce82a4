"""DP-AdaFEST for tables of words: which words a window touches, and what changes with a word."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.fitting.noisy_mean import TouchedRows
from skdp.privacy import PieceKinds, SparseRows

__all__ = ["touched_words", "words_of"]


def words_of(X: Any, n_words: int) -> list[SparseRows]:
    """Return 1 for each different word of each window: its target and its context.

    Negatives do not count. With a large vocabulary they are other words in each step.
    """
    words = np.sort(X.astype(np.int64), axis=1) - 1  # -1 is no word
    words[:, 1:][words[:, 1:] == words[:, :-1]] = -1
    return [SparseRows(words, np.ones((*words.shape, 1), dtype=np.float32), n_words)]


def touched_words(n_words: int, width: int, tied: bool) -> TouchedRows:
    """The words of windows, for `AdaFEST`; what a word's noisy count decides holds for its rows in all tables.

    A step in which no word passes changes the first word of the vocabulary.
    """
    first_rows = np.arange(0, n_words if tied else 2 * n_words, n_words)

    def entries(words: NDArray[np.int64]) -> NDArray[np.int64]:
        if not words.size:  # a release has at least one word: the first, whatever the data
            words = np.zeros(1, dtype=np.int64)
        rows = (first_rows[:, None] + words).ravel()
        return (rows[:, None] * width + np.arange(width)).ravel()

    touched = PieceKinds().of(lambda X, y: words_of(X, n_words))
    return TouchedRows(n_words, touched, entries)
