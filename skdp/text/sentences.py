"""Sentences of words: read one by one, and cut into windows of a target and its context."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skdp.base.user_tables import encode_groups
from skdp.kernels.protocols import Floats, Integers
from skdp.privacy import PrivateRecords, PrivateWords, PublicShape

__all__ = ["MOST_WORDS", "Sentences", "check_form", "check_vocabulary", "read_sentences", "windows_of"]

MOST_WORDS = 2**24 - 1  # float32 holds all integers up to here
FORM = "sentences must be a list of lists of words, such as [['a', 'short', 'sentence'], ['another']]"


def read_sentences(X: object) -> list[Sequence[str]]:
    """Return the sentences; each is checked by itself, and no message quotes a word.

    Examples
    --------
    >>> from skdp.text.sentences import read_sentences
    >>> read_sentences([["a", "b"], []])
    [['a', 'b'], []]
    """
    # A Series has an attribute for each label of its index.
    if hasattr(X, "columns") and len(getattr(X, "shape", (0, 0))) == 2:
        raise TypeError(f"{FORM}; got a table: give the column that holds the lists, as in X['words']")
    X = X.tolist() if hasattr(X, "tolist") else X
    check_form(X)
    if not isinstance(X, Iterable):
        raise TypeError(f"{FORM}; got {type(X).__name__}")
    found = [_sentence(sentence) for sentence in X]
    if not found:
        raise ValueError(f"{FORM}; got no sentence at all")
    return found


def check_form(X: object) -> None:
    """Refuse iterators, text and collections without an order, by their type alone.

    Examples
    --------
    >>> from skdp.text.sentences import check_form
    >>> check_form([["a", "b"], []])
    """
    if isinstance(X, Iterator):
        raise TypeError(f"{FORM}; got an iterator, which can be read only once: use list(sentences)")
    if isinstance(X, (str, bytes, Mapping, Set)):
        raise TypeError(f"{FORM}; got {type(X).__name__}")


def _sentence(sentence: object) -> Sequence[str]:
    sentence = sentence.tolist() if hasattr(sentence, "tolist") else sentence
    if isinstance(sentence, str):
        raise TypeError(f"{FORM}; a sentence is text: split it into words, as in sentence.split()")
    if not isinstance(sentence, (list, tuple)):
        raise TypeError(f"{FORM}; a sentence is neither a list nor a tuple")
    if not all(isinstance(word, str) for word in sentence):
        raise TypeError(f"{FORM}; a word is not a str: convert numbers, and drop missing values")
    return sentence


def check_vocabulary(vocabulary: object) -> dict[str, int]:
    """Return the number of each word of a public vocabulary, in the order given.

    Examples
    --------
    >>> from skdp.text.sentences import check_vocabulary
    >>> check_vocabulary(["b", "a"])
    {'b': 0, 'a': 1}
    """
    vocabulary = vocabulary.tolist() if hasattr(vocabulary, "tolist") else vocabulary
    if not isinstance(vocabulary, (list, tuple)) or not all(isinstance(w, str) for w in vocabulary):
        raise TypeError("vocabulary must be a list of words, or 'private'; its order gives the order of rows")
    found = {word: row for row, word in enumerate(vocabulary)}
    if len(found) != len(vocabulary):
        raise ValueError("vocabulary has a word twice: each word has one row of vectors_")
    if not 0 < len(found) <= MOST_WORDS:
        raise ValueError(f"vocabulary must have between 1 and {MOST_WORDS} words, got {len(found)}")
    return found


def windows_of(
    sentences: Sequence[Sequence[str]], vocabulary: Mapping[str, int], window: int
) -> tuple[NDArray[np.float32], Integers]:
    """Return the windows of sentences, and the number of the sentence of each.

    Words that are not in the vocabulary are left out first, so windows reach over them. A word without another one
    in its sentence has no window.

    Parameters
    ----------
    sentences : sequence of sequences of str
    vocabulary : dict
    window : int
        Words on either side of the target that are its context.

    Returns
    -------
    windows : ndarray of float32 of shape (n_windows, 2 * window + 1)
        Ids from 1 on: the target, then its context from left to right; 0 is no word.
    owners : ndarray of int64 of shape (n_windows,)

    Examples
    --------
    >>> from skdp.text.sentences import windows_of
    >>> windows_of([["a", "x", "b", "c"], ["a"]], {"a": 0, "b": 1, "c": 2}, 1)[0]
    array([[1., 0., 2.],
           [2., 1., 3.],
           [3., 2., 0.]], dtype=float32)
    """
    known = vocabulary.get
    words = np.fromiter((known(word, -1) for word in chain.from_iterable(sentences)), dtype=np.int64)
    owners = np.repeat(np.arange(len(sentences)), [len(sentence) for sentence in sentences])
    words, owners = words[words >= 0] + 1, owners[words >= 0]
    found = np.zeros((words.size, 2 * window + 1), dtype=np.float32)
    found[:, 0] = words
    for column, shift in enumerate((*range(-window, 0), *range(1, window + 1)), start=1):
        here = slice(max(0, -shift), max(0, words.size - max(0, shift)))
        there = slice(max(0, shift), max(0, words.size + min(0, shift)))
        same = owners[here] == owners[there]
        found[here, column][same] = words[there][same]
    kept = found[:, 1:].any(axis=1)
    return found[kept], owners[kept]


@dataclass(frozen=True, eq=False, repr=False)
class Sentences:
    """The data of a fit, and the public facts of them.

    Attributes
    ----------
    sentences : list of sequences of str
    groups : ndarray of int or None
        Of each sentence. None: the unit is one window.
    window : int
    n_public : int or None
    shape : PublicShape
        With groups their number is public, and neither the number of sentences nor of windows.
    """

    sentences: list[Sequence[str]]
    groups: NDArray[np.intp] | None
    window: int
    n_public: int | None
    shape: PublicShape

    @classmethod
    def read(
        cls, X: object, groups: object, window: int, n_public: int | None, known: Mapping[str, int] | None
    ) -> "Sentences":
        """Check sentences and groups; ``known`` is the public vocabulary, needed where the unit is a window."""
        sentences = read_sentences(X)
        width = 2 * window + 1
        if groups is None:
            assert known is not None  # `WordParameters` refuses a private one
            records = _windows(sentences, known, window, None, n_public)
            return cls(sentences, None, window, n_public, records.shape)
        codes = encode_groups(cast("list[object]", groups), len(sentences))
        n_units = int(codes.max()) + 1 if n_public is None else n_public
        shape = PublicShape("group", n_units, width, n_public=n_public, dtype="float32")
        return cls(sentences, codes, window, n_public, shape)

    def words(self) -> PrivateWords:
        """All words of each group; only where there are groups."""
        codes = np.asarray(self.groups)
        units: list[list[Sequence[str]]] = [[] for _ in range(int(codes.max()) + 1)]
        for code, sentence in zip(codes.tolist(), self.sentences):
            units[code].append(sentence)
        return PrivateWords([chain.from_iterable(unit) for unit in units], n_public=self.n_public)

    def records(self, vocabulary: Mapping[str, int]) -> PrivateRecords:
        """Their windows; a public or released vocabulary."""
        return _windows(self.sentences, vocabulary, self.window, self.groups, self.n_public)


def _windows(
    sentences: Sequence[Sequence[str]],
    vocabulary: Mapping[str, int],
    window: int,
    groups: NDArray[np.intp] | None,
    n_public: int | None,
) -> PrivateRecords:
    """The windows of sentences as records."""
    try:
        windows, owners = windows_of(sentences, vocabulary, window)
        codes = None if groups is None else groups[owners]
        n_groups = None if groups is None else int(groups.max()) + 1
        return _records(windows, codes, n_groups, n_public)
    except MemoryError:  # NumPy's message has the shape, and so the private number of words
        pass
    raise MemoryError("the windows do not fit into memory: use a smaller window")


def _records(
    windows: NDArray[np.float32], codes: Integers | None, n_groups: int | None, n_public: int | None
) -> PrivateRecords:
    if codes is not None and n_groups is not None:
        # A group without a window has a row without words, which adds nothing: the number of groups is public.
        windows = np.vstack([windows, np.zeros((n_groups, windows.shape[1]), dtype=np.float32)])
        codes = np.append(codes, np.arange(n_groups))
    elif not len(windows):
        if n_public is None:
            raise ValueError("there is no window: no sentence has two words of the vocabulary")
        windows = np.zeros((1, windows.shape[1]), dtype=np.float32)
    return PrivateRecords(cast("Floats", windows), groups=codes, n_public=n_public)
