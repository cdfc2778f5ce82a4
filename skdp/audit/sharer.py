"""The secret sharer: insert random phrases into a text, train on it, and rank them by the model."""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skdp.audit.canaries import MAX_WORDS, draw_phrases, draw_phrases_outside, insert_phrases, phrase_codes
from skdp.audit.cbow import cbow_score
from skdp.audit.display import SecretSharerDisplay
from skdp.audit.ranks import rank_phrases
from skdp.base import check_flag, check_number

Sentences = Sequence[Sequence[str]]


def secret_sharer(
    fit: Callable[[list[Sequence[str]]], Any],
    sentences: Sentences,
    *,
    vocabulary: Sequence[str] | None = None,
    score: Callable[[Any, np.ndarray], np.ndarray] | None = None,
    n_insertions: int | Sequence[int] = (3, 9, 15),
    n_canaries: int = 1000,
    n_references: int = 10_000,
    as_sentences: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> SecretSharerDisplay:
    """Measure what a text model memorises, by phrases that are inserted into its training text.

    Random phrases of three words, the canaries, are inserted into the text, each of them the same number of times.
    A model is trained on it. Then each canary is ranked among random phrases with the same first word: a model
    that has memorised a canary finds it more likely than nearly all of them. The same is done with phrases that
    are not in the text, whose ranks must look uniform.

    The result is a measurement. A low figure is no proof of privacy: another attack may find more.

    Parameters
    ----------
    fit : callable
        ``fit(sentences)`` trains a model on a list of sentences and returns it. It is called once for each number
        of insertions.
    sentences : list of lists of str
        The training text. It is not changed.
    vocabulary : list of str, default=None
        The words of which phrases are made, at least 3. Every model must know them. None takes all words of
        ``sentences``.
    score : callable, default=None
        ``score(model, phrases)`` returns the log-perplexity -log Pr(c1 | c0) - log Pr(c2 | c0, c1) of each phrase
        c0 c1 c2. ``phrases`` is an array of shape (n_phrases, 3) of positions in ``vocabulary``, or in the sorted
        words of ``sentences``. It has a million rows or so. None takes `cbow_log_perplexity` of the model's
        ``vectors_``, whose rows belong to the words ``vocabulary_``, and of ``output_vectors_`` where the model
        has two tables.
    n_insertions : int or tuple of int, default=(3, 9, 15)
        How often each canary is inserted. Each number is a training of its own, with the same canaries.
    n_canaries : int, default=1000
        Number of canaries, and of phrases outside the text.
    n_references : int, default=10000
        Number of random phrases among which each canary is ranked.
    as_sentences : bool, default=False
        Insert canaries as sentences of their own. By default they are inserted into sentences, at any place of the
        text, as the paper does. The sentences then keep their number and their order, so the groups of sentences
        that a fit has stay right.
    random_state : int, RandomState instance or None, default=None
        Seed of the canaries, their positions and the random phrases. It is not a seed of a fit.

    Returns
    -------
    SecretSharerDisplay
        The ranks, with their figures and histograms.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used. Everything but the model and its scores is checked before the first
        training.

    See Also
    --------
    SecretSharerDisplay : The result.

    Notes
    -----
    Ranks have the direction of the paper's second version: the rank of a canary is the number of random phrases
    that are less likely. The formula of the first version is turned round. Ties count at random, so a model that
    knows nothing gives uniform ranks, also where it gives all phrases the same probability. The second and the
    third word of every phrase differ, of canaries too: otherwise a model that likes, or dislikes, repeated words
    would seem to know canaries.

    Train with the settings that you want to judge. The claim of a private model holds for the text with the
    canaries. The result of this function is not private: it is computed from several models.

    References
    ----------
    Carlini, N., Liu, C., Erlingsson, Ú., Kos, J. and Song, D. (2019), "The secret sharer: evaluating and testing
    unintended memorization in neural networks", USENIX Security.

    Zhang, H., Mironov, I. and Hejazinia, M. (2021), "Wide network learning with differential privacy",
    arXiv:2103.01294, section 6.5.

    Examples
    --------
    A model that counts pairs of words remembers every phrase:

    >>> import numpy as np
    >>> from skdp.audit import secret_sharer
    >>> rng = np.random.default_rng(0)
    >>> words = [f"word{k}" for k in range(50)]
    >>> text = [list(rng.choice(words, size=8)) for _ in range(200)]
    >>> def fit(sentences):
    ...     counts = np.full((50, 50), 0.1)
    ...     for sentence in sentences:
    ...         for a, b in zip(sentence, sentence[1:]):
    ...             counts[words.index(a), words.index(b)] += 1
    ...     return np.log(counts / counts.sum(axis=1, keepdims=True))
    >>> def score(model, phrases):
    ...     return -model[phrases[:, 0], phrases[:, 1]] - model[phrases[:, 1], phrases[:, 2]]
    >>> display = secret_sharer(
    ...     fit, text, vocabulary=words, score=score, n_insertions=(3, 15), n_canaries=50,
    ...     n_references=500, random_state=0,
    ... )
    >>> display.chi_squared(15)[0] > 2, display.chi_squared(15, outside=True)[1] > 0.001
    (True, True)
    """
    sentences = _checked_sentences(sentences)
    vocabulary = _checked_vocabulary(vocabulary, sentences)
    insertions = _checked_insertions(n_insertions)
    check_number("n_canaries", n_canaries, Integral, low=1)
    check_number("n_references", n_references, Integral, low=9)
    check_flag("as_sentences", as_sentences)
    if not callable(fit) or not (score is None or callable(score)):
        raise TypeError("fit and score must be callables")
    if score is None:
        score = partial(cbow_score, vocabulary=vocabulary)
    rng = check_random_state(random_state)
    positions = {word: k for k, word in enumerate(vocabulary)}
    n_words = len(vocabulary)
    canaries = draw_phrases(n_words, n_canaries, rng)
    phrases = [[vocabulary[k] for k in canary] for canary in canaries.tolist()]
    ranks, outside_ranks = {}, {}
    for n in insertions:
        text = insert_phrases(sentences, phrases, n, as_sentences, rng)
        outside = draw_phrases_outside(n_words, n_canaries, phrase_codes(text, positions), rng)
        model_score = partial(score, fit(text))
        ranks[n] = rank_phrases(model_score, canaries, n_words, n_references, rng)
        outside_ranks[n] = rank_phrases(model_score, outside, n_words, n_references, rng)
    return SecretSharerDisplay(ranks, outside_ranks, n_references=n_references)


def _checked_sentences(sentences: Sentences) -> list[Sequence[str]]:
    """A list of sentences, each a list or tuple of words."""
    if isinstance(sentences, str):
        raise TypeError("sentences must be a list of lists of words, got str")
    found = list(sentences)
    if not found:
        raise ValueError("sentences must not be empty")
    for sentence in found:
        if isinstance(sentence, str) or not all(isinstance(word, str) for word in sentence):
            raise TypeError("sentences must be a list of lists of words, which are str; split each sentence")
    return found


def _checked_vocabulary(vocabulary: Sequence[str] | None, sentences: Sentences) -> list[str]:
    """Different words, at least three."""
    if vocabulary is None:
        found = sorted({word for sentence in sentences for word in sentence})
    elif isinstance(vocabulary, str) or not all(isinstance(word, str) for word in vocabulary):
        raise TypeError("vocabulary must be a list of words, which are str")
    else:
        found = [str(word) for word in vocabulary]
    if len(set(found)) != len(found):
        raise ValueError("vocabulary must not have a word twice")
    if not 3 <= len(found) <= MAX_WORDS:
        raise ValueError(f"vocabulary must have 3 to {MAX_WORDS} words, got {len(found)}")
    return found


def _checked_insertions(n_insertions: int | Sequence[int]) -> list[int]:
    """Different positive integers."""
    found = list(n_insertions) if isinstance(n_insertions, Sequence) else [n_insertions]
    for n in found:
        check_number("n_insertions", n, Integral, low=1)
    if not found or len(set(found)) != len(found):
        raise ValueError(f"n_insertions must be different numbers, got {n_insertions!r}")
    return [int(n) for n in found]
