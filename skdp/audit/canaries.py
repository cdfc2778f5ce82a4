"""Canaries: random phrases of three words, and a text into which they are inserted."""

from collections.abc import Sequence

import numpy as np

MAX_WORDS = 2**21 - 1  # so that three positions of words fit into one integer of 64 bits
_ROUNDS = 100


def draw_phrases(n_words: int, n_phrases: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw phrases of three words, of which the second and the third differ.

    The phrases are independent of each other, so two may be equal. This makes the rank of each one uniform where a
    model knows nothing of it.

    Returns
    -------
    ndarray of shape (n_phrases, 3), int64
        Positions of words in the vocabulary.
    """
    first = rng.randint(n_words, size=(n_phrases, 1), dtype=np.int64)
    return np.hstack([first, _different_pairs(n_words, (n_phrases,), rng)])


def draw_rivals(phrases: np.ndarray, n_words: int, n_references: int, rng: np.random.RandomState) -> np.ndarray:
    """Return each phrase followed by ``n_references`` random ones with the same first word.

    Returns
    -------
    ndarray of shape (n_phrases, n_references + 1, 3), int64
    """
    rivals = np.empty((len(phrases), n_references + 1, 3), dtype=np.int64)
    rivals[:, :, 0] = phrases[:, :1]
    rivals[:, 0, 1:] = phrases[:, 1:]
    rivals[:, 1:, 1:] = _different_pairs(n_words, (len(phrases), n_references), rng)
    return rivals


def _different_pairs(n_words: int, shape: tuple[int, ...], rng: np.random.RandomState) -> np.ndarray:
    """Uniform pairs of two different words."""
    pairs = np.empty((*shape, 2), dtype=np.int64)
    pairs[..., 0] = rng.randint(n_words, size=shape, dtype=np.int64)
    pairs[..., 1] = rng.randint(n_words - 1, size=shape, dtype=np.int64)
    pairs[..., 1] += pairs[..., 1] >= pairs[..., 0]
    return pairs


def insert_phrases(
    sentences: Sequence[Sequence[str]],
    phrases: Sequence[Sequence[str]],
    n_times: int,
    as_sentences: bool,
    rng: np.random.RandomState,
) -> list[Sequence[str]]:
    """Insert each phrase exactly ``n_times`` at random positions; the given sentences stay as they are.

    Inside sentences, each place between two words, before the first and after the last is equally likely.
    Positions are positions of the original text, so no phrase breaks another. As sentences of their own, phrases
    stand at random positions between sentences.
    """
    inserted = [phrase for phrase in phrases for _ in range(n_times)]
    # Phrases that get the same place stand in random order there.
    inserted = [inserted[k] for k in rng.permutation(len(inserted))]
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    ends = np.cumsum(lengths + 1)
    n_positions = len(sentences) + 1 if as_sentences else int(ends[-1])
    positions = np.sort(rng.randint(n_positions, size=len(inserted)))
    found: list[Sequence[str]] = list(sentences)
    if as_sentences:
        for place, phrase in zip(positions[::-1].tolist(), reversed(inserted)):
            found.insert(place, phrase)
        return found
    owners = np.searchsorted(ends, positions, side="right")
    inner = positions - (ends - lengths - 1)[owners]
    # From the last place to the first: an insertion moves no place that is still to come.
    changed: dict[int, list[str]] = {}
    for owner, place, phrase in zip(owners[::-1].tolist(), inner[::-1].tolist(), inserted):
        changed.setdefault(owner, list(sentences[owner]))[place:place] = phrase
    for owner, sentence in changed.items():
        found[owner] = sentence
    return found


def phrase_codes(sentences: Sequence[Sequence[str]], positions: dict[str, int]) -> np.ndarray:
    """Return the sorted codes of all phrases of three words that stand in a sentence.

    A phrase with a word that is not in the vocabulary has no code.
    """
    gap = [-1]  # no phrase reaches from one sentence into the next
    text = np.fromiter(
        (
            place
            for sentence in sentences
            for part in ((positions.get(word, -1) for word in sentence), gap)
            for place in part
        ),
        dtype=np.int64,
    )
    if text.size < 3:
        return np.empty(0, dtype=np.int64)
    phrases = np.lib.stride_tricks.sliding_window_view(text, 3)
    return np.unique(_codes(phrases[(phrases >= 0).all(axis=1)], len(positions)))


def draw_phrases_outside(
    n_words: int, n_phrases: int, known: np.ndarray, rng: np.random.RandomState
) -> np.ndarray:
    """Draw phrases as `draw_phrases` does, but none of those whose codes are ``known``.

    Raises
    ------
    ValueError
        Nearly all phrases are known.
    """
    kept = np.empty((0, 3), dtype=np.int64)
    for _ in range(_ROUNDS):
        drawn = draw_phrases(n_words, n_phrases, rng)
        fresh = drawn[~np.isin(_codes(drawn, n_words), known)]
        kept = np.vstack([kept, fresh])
        if len(kept) >= n_phrases:
            return kept[:n_phrases]
    raise ValueError(
        f"nearly all phrases of three of the {n_words} words are in the text, so {n_phrases} phrases outside of "
        "it cannot be drawn; take a larger vocabulary"
    )


def _codes(phrases: np.ndarray, n_words: int) -> np.ndarray:
    """One integer for each phrase."""
    return (phrases[:, 0] * n_words + phrases[:, 1]) * n_words + phrases[:, 2]
