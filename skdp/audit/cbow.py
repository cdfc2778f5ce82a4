"""Log-perplexity of phrases under word vectors of the CBOW model."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator

_CELLS = 2**22  # largest table of logits that is held at one time
_TINY = 1e-280  # below it a sum of products may have lost its largest terms


def cbow_log_perplexity(
    vectors: np.ndarray, phrases: np.ndarray, *, output_vectors: np.ndarray | None = None
) -> np.ndarray:
    """Compute -log Pr(c1 | c0) - log Pr(c2 | c0, c1) of phrases c0 c1 c2 under CBOW word vectors.

    The probability of a word, given the words before it, is the softmax over the vocabulary of the products of its
    vector with the mean of the vectors of those words.

    Parameters
    ----------
    vectors : ndarray of shape (n_words, n_features)
        The vectors of words as context.
    phrases : ndarray of shape (n_phrases, 3)
        Positions of words, from 0 to n_words - 1.
    output_vectors : ndarray of shape (n_words, n_features), default=None
        The vectors of words that are predicted, for models with two tables. None takes ``vectors``.

    Returns
    -------
    ndarray of shape (n_phrases,)

    Notes
    -----
    The mean of two vectors has the mean of their logits. Therefore the sums of exponentials for all pairs of
    context words are the product of the matrix exp(logits / 2) with its own transpose, and millions of phrases
    take seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import cbow_log_perplexity
    >>> cbow_log_perplexity(np.zeros((5, 2)), np.array([[0, 1, 2]])).round(3)  # 2 log 5: it knows nothing
    array([3.219])
    """
    vectors, targets = _tables(vectors, output_vectors)
    phrases = _positions(phrases, len(vectors))
    n_words = len(vectors)
    first, second, third = phrases.T
    words = np.flatnonzero(np.bincount(first, minlength=n_words))  # the first words that occur
    row = np.cumsum(np.bincount(words, minlength=n_words))[first] - 1
    logits = vectors[words] @ targets.T
    found = logsumexp(logits, axis=1)[row] - logits[row, second] - logits[row, third] / 2.0
    sums, step = _LogSums(logits), max(1, _CELLS // n_words)
    # Second words are taken in blocks, so that the table of all logits need not fit into memory.
    order = np.argsort(second, kind="stable") if step < n_words else np.arange(len(phrases))
    bounds = np.searchsorted(second[order], np.arange(0, n_words, step)) if step < n_words else [0]
    for start, lo, hi in zip(range(0, n_words, step), bounds, [*bounds[1:], len(phrases)]):
        part = order[lo:hi]
        block = vectors[start : start + step] @ targets.T
        positions = second[part] - start
        found[part] += sums(block)[row[part], positions]
        found[part] -= block[positions, third[part]] / 2.0
    return found


class _LogSums:
    """The logarithms of the sums of exp((a + b) / 2), for all rows a of some logits and rows b of others."""

    def __init__(self, logits: np.ndarray) -> None:
        self._logits = logits
        self._highest, self._roots = _roots(logits)

    def __call__(self, others: np.ndarray) -> np.ndarray:
        highest, roots = _roots(others)
        sums = self._roots @ roots.T
        with np.errstate(divide="ignore"):
            found = np.log(sums) + (self._highest[:, None] + highest) / 2.0
        for k in np.flatnonzero((sums < _TINY).any(axis=1)):
            lost = np.flatnonzero(sums[k] < _TINY)
            found[k, lost] = logsumexp((self._logits[k] + others[lost]) / 2.0, axis=1)
        return found


def _roots(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The highest logit of each row, and the square roots of exponentials relative to it."""
    highest = logits.max(axis=1)
    return highest, np.exp((logits - highest[:, None]) / 2.0)


def _tables(vectors: np.ndarray, output_vectors: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Both tables as float64, checked."""
    tables = [
        np.asarray(table, dtype=np.float64)
        for table in (vectors, vectors if output_vectors is None else output_vectors)
    ]
    if tables[0].ndim != 2 or tables[0].shape != tables[1].shape:
        raise ValueError(
            "vectors and output_vectors must be matrices of one shape, got "
            f"{tables[0].shape} and {tables[1].shape}"
        )
    if not all(np.isfinite(table).all() for table in tables):
        raise ValueError("vectors must be finite")
    return tables[0], tables[1]


def _positions(phrases: np.ndarray, n_words: int) -> np.ndarray:
    """Phrases as an array of positions, checked."""
    found = np.asarray(phrases)
    if found.ndim != 2 or found.shape[1] != 3 or found.dtype.kind not in "iu":
        raise ValueError(
            f"phrases must be an array of three integers a row, got {found.dtype} of shape {found.shape}"
        )
    if found.size and (found.min() < 0 or found.max() >= n_words):
        raise ValueError(f"phrases must be positions of words from 0 to {n_words - 1}")
    return found


def cbow_score(model: BaseEstimator, phrases: np.ndarray, vocabulary: Sequence[str]) -> np.ndarray:
    """Score phrases of a vocabulary by a model with ``vectors_`` and ``vocabulary_``.

    A model with two tables has the vectors of predicted words in ``output_vectors_``.
    """
    if not (hasattr(model, "vectors_") and hasattr(model, "vocabulary_")):
        raise TypeError(
            f"fit returned {type(model).__name__}, which has no vectors_ and vocabulary_ of words; give score="
        )
    known = model.vocabulary_
    positions = known if isinstance(known, Mapping) else {word: k for k, word in enumerate(known)}
    missing = [word for word in vocabulary if word not in positions]
    if missing:
        raise ValueError(
            f"the model does not know {len(missing)} of the {len(vocabulary)} words of the canaries' vocabulary, "
            f"such as {missing[0]!r}; give vocabulary= words that the model keeps"
        )
    own = np.array([positions[word] for word in vocabulary], dtype=np.int64)
    # Words that only the model knows count in its probabilities, but are in no phrase.
    targets = getattr(model, "output_vectors_", None)
    return cbow_log_perplexity(model.vectors_, own[phrases], output_vectors=targets)
