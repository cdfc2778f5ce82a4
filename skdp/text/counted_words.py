"""DP-AdaFEST for tables of words: which words a step changes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.nn.selection import AdaFEST, kept_rows
from skdp.privacy import Batch, BatchPlan, Bounded, PrivacySession, PrivateRecords, SparseRows

__all__ = ["chosen_words", "words_of"]


def words_of(X: Any, n_words: int) -> list[SparseRows]:
    """Return 1 for each different word of each window: its target and its context.

    Negatives do not count. With a large vocabulary they are other words in each step.
    """
    words = np.sort(X.astype(np.int64), axis=1) - 1  # -1 is no word
    words[:, 1:][words[:, 1:] == words[:, :-1]] = -1
    return [SparseRows(words, np.ones((*words.shape, 1), dtype=np.float32), n_words)]


def chosen_words(
    select: AdaFEST, session: PrivacySession, records: PrivateRecords, plan: BatchPlan, n_words: int
) -> Any:
    """Return a function of a mean and its batch that releases positions and their values.

    Units count with 1 for each different word of each of their windows, clipped to an l2 norm of 1. What a word's
    noisy count decides holds for its rows in all tables. Which words pass is a release, so it is public from then
    on. A step in which none passes changes the first word of the vocabulary.
    """
    counted, added = plan.parts

    def chosen(mean: Bounded, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        counts = records.gradient_sum(
            lambda X, y: words_of(X, n_words), 1.0, size=n_words, batch=batch
        )
        words = kept_rows(select, session, counts, counted)
        if not words.size:  # a release has at least one word: the first, whatever the data
            words = np.zeros(1, dtype=np.int64)
        height, width = mean.shape
        rows = (np.arange(0, height, n_words)[:, None] + words).ravel()
        positions = (rows[:, None] * width + np.arange(width)).ravel()
        return positions, session.gaussian(mean.entries(positions), added)

    return chosen
