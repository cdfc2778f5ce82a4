"""PrivateWords: the words of each unit, of which only a noisy vocabulary comes out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NoReturn

from skdp.privacy.shape import PublicShape


class PrivateWords:
    """The words of the groups of a fit, for `PrivacySession.release_vocabulary`.

    Parameters
    ----------
    units : sequence of iterables of str
        All words of each group, in their order, with repetitions.
    n_public : int, default=None
        The public number of groups under add-remove. None takes their number.

    Examples
    --------
    >>> from skdp.privacy import PrivateWords
    >>> PrivateWords([["a", "b", "a"], ["b"]])
    PrivateWords(n_groups=2)
    """

    __slots__ = ("_units", "shape")

    _units: Sequence[Iterable[str]]
    shape: PublicShape

    def __init__(self, units: Sequence[Iterable[str]], n_public: int | None = None) -> None:
        self._units = units
        counted = len(units) if n_public is None else n_public
        self.shape = PublicShape("group", int(counted), 1, n_public=n_public)

    def _counts(self, shares: Sequence[int]) -> dict[str, int]:
        """Sum over the units of their shares of their words, as exact integers.

        A unit with more words than there are shares keeps its most frequent ones; of equally frequent ones the
        first ones in it. The kept words follow from this unit alone.

        A word is plain text here. A subclass of str may hold more than text (such as the document that the word
        is from), or be equal to other words: the released object would come from the first unit that has it.
        """
        found: dict[str, int] = {}
        for words in self._units:
            kept = Counter(map(str.__str__, words)).most_common(len(shares))
            for word, _ in kept:
                found[word] = found.get(word, 0) + shares[len(kept) - 1]
        return found

    def __repr__(self) -> str:
        shape = self.shape
        name, count = ("n_groups", shape.n_groups) if shape.n_public is None else ("n_public", shape.n_public)
        return f"PrivateWords({name}={count})"

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("PrivateWords hold private values; they cannot be copied, indexed or read")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse  # type: ignore[assignment]
    __array__ = __iter__ = __len__ = __getitem__ = __contains__ = _refuse
