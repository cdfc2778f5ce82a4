"""DP-AdaFEST for tables of words: the words that a window touches, and the numbers that change with a word."""

import numpy as np

from skdp.fitting.noisy_mean import TouchedRows, each_once
from skdp.kernels.protocols import Integers, Matrix
from skdp.privacy import PieceKinds, SparseRows


def touched_words(n_words: int, width: int, tied: bool) -> TouchedRows:
    """The words of windows, for `AdaFEST`; what a word's noisy count decides holds for its rows in all tables.

    A step in which no word passes changes the first word of the vocabulary.
    """
    first_rows = np.arange(0, n_words if tied else 2 * n_words, n_words)

    def entries(words: Integers) -> Integers:
        if not words.size:  # a release has at least one word: the first, whatever the data
            words = np.zeros(1, dtype=np.int64)
        rows = (first_rows[:, None] + words).ravel()
        return (rows[:, None] * width + np.arange(width)).ravel()

    def touched(X: Matrix, y: object) -> list[SparseRows]:
        # A target and its context; negatives do not count. With a large vocabulary they differ in each step.
        return each_once(np.asarray(X).astype(np.int64) - 1, n_words)  # -1 is no word

    return TouchedRows(n_words, PieceKinds().of(touched), entries)
