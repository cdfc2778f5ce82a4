"""Private vectors of words."""

import math
from collections.abc import Mapping
from numbers import Integral
from os import PathLike
from typing import ClassVar, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._compat import warn_user
from skdp._docs import document
from skdp.base import check_number
from skdp.base.declare import fitted
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.plan import NoRecords
from skdp.base.problem import Solution
from skdp.fitting.loop import descend
from skdp.fitting.minibatches import of_width
from skdp.fitting.noisy_mean import estimator_of
from skdp.fitting.optimizers import FewEntries, SinglePrecision
from skdp.fitting.task import Progress
from skdp.kernels import Negatives
from skdp.kernels.protocols import Floats
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape
from skdp.privacy.statistics import cbow_gradient
from skdp.text.counted_words import touched_words
from skdp.text.decision import WordDetails, advice, advice_on_words, decide, first_rate
from skdp.text.parameters import SentenceProblem, WordParameters
from skdp.text.sentences import Sentences, check_form, read_sentences, windows_of
from skdp.text.vector_files import save_word2vec

POWER = 0.75  # of counts, by which negatives are drawn (Mikolov et al. 2013)
KEYS = 0x9E3779B97F4A7C15  # between the keys of two steps


@document()
class DPWord2Vec(WordParameters):
    """Vectors of words from their contexts, by differentially private SGD.

    The model is CBOW with negative sampling ([Mikolov2013]_): the model learns to tell a window's target from
    negative samples, given the mean of the vectors of the context. Training takes steps along noisy clipped
    gradients of minibatches of windows, as in [Abadi2016]_. The noise is added to all numbers of the table, also
    for words that no window of the batch has.

    {guarantee}

    See Also
    --------
    DPLSTMClassifier : A classifier of sequences, which learns vectors of tokens too.
    skdp.datasets.fetch_brown : Documents of words.

    Notes
    -----
    {privacy.net}

    A window's negatives follow from a key, the step and the window's own words, and depend on nobody else's words.
    Nothing else of a step is random but the batch and the noise.

    **Private vocabulary.** A group of k words counts 1 / sqrt(k) for each of them, which is a vector of norm 1.
    Each word gets Gaussian noise, and is released if its count reaches a threshold. The threshold is so high that
    a word which one group alone has is released with a probability far below ``delta``. That probability is part
    of the claim.

    {privacy.unprotected}

    References
    ----------
    .. [Abadi2016]
    .. [Mikolov2013]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPWord2Vec
    >>> rng = np.random.default_rng(0)
    >>> topics = [["sun", "moon", "star"], ["oak", "elm", "ash"]]
    >>> sentences = [rng.choice(topics[i % 2], 8).tolist() for i in range(6000)]
    >>> model = DPWord2Vec(
    ...     epsilon=4.0, vocabulary=sum(topics, []), vector_size=4, unit="group", max_iter=100
    ... )
    >>> model = model.fit(sentences, groups=range(6000))
    >>> model.most_similar("oak", topn=2)[0][0] in ("elm", "ash")
    True
    """

    vectors_: NDArray[np.float32] = fitted(
        "ndarray of float32 of shape (n_words, vector_size)", "Released vectors of the words."
    )
    output_vectors_: NDArray[np.float32] = fitted(
        "ndarray of float32 of shape (n_words, vector_size)",
        "Released vectors of targets and negatives: the same array where the tables are tied.",
    )
    vocabulary_: Mapping[str, int] = fitted("dict", "The row of each word.")
    word_counts_: Floats | None = fitted(
        "ndarray of shape (n_words,), or None",
        """Of a private vocabulary: released sums over the groups, each of which counts 1 / sqrt(k) for each of
        its k words. Few of them are below the threshold of the release, and all carry noise.""",
    )
    _record_checks = "sentences of words"
    _counts: ClassVar[Mapping[str, str]] = {
        "n_windows": "n_records",
        "n_groups": "n_groups",
        "n_public": "n_public",
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        # Windows are counted in `read`.
        options["record_is"] = "window"
        options["minibatches"] = True
        return super()._open_session(self.n_public, **options)

    # ---------------------------------------------------------------- the fit

    @document(PrivateFit.fit)
    def fit(  # type: ignore[override]
        self, sentences: object, y: object = None, *, groups: object = None, **more: object
    ) -> Self:
        """Learn the vectors privately.

        Parameters
        ----------
        sentences : list of lists of str
            The words of each sentence. A window does not reach over the end of a sentence.
        y : None
            Ignored.
        groups : array-like of shape (n_sentences,), default=None
            The document or person that each sentence belongs to; needed by, and allowed with,
            ``unit="group"`` only.
        **more : dict
            ``sample_weight=None`` or nothing: windows have no weighted form.
        """
        if groups is None and self.unit == "group":
            raise ValueError(
                "unit='group' needs groups= in fit: the document or person of each sentence. "
                "groups=range(len(sentences)) makes each sentence a document of its own"
            )
        check_form(sentences)
        return super().fit(sentences, None, groups=groups, **more)

    def read(self, X: object, y: object = None, groups: object = None) -> SentenceProblem:
        """Check the sentences and whom they belong to."""
        known = self._known()
        read = Sentences.read(X, groups, int(self.window), self.n_public, known)
        return SentenceProblem(read, {}, ())

    _knows_width = True

    def _imagined(self, shape: PublicShape) -> SentenceProblem:
        records = NoRecords(of_width(shape, 2 * int(self.window) + 1, "window"))
        return SentenceProblem(cast("Sentences", records), {}, ())

    # ---------------------------------------------------------------- plan and solver

    _decide, _advice = decide, advice

    def solve(self, session: PrivacySession, problem: SentenceProblem) -> Solution:
        """Release the vocabulary if it is private; then train."""
        data, details, counts = problem.records, problem.details, None
        known = details.known
        if known is None:
            assert details.words is not None  # planned for a private vocabulary
            known, counts = self._kept(*session.release_vocabulary(data.words(), details.words))
            if not advice_on_words(self, data.shape, None, details):  # which `fit` has given before
                for text, category in advice_on_words(self, data.shape, len(known), details):
                    warn_user(text, category)
        return self._trained(session, data.records(known), details, known, counts)

    def _kept(self, words: tuple[str, ...], counts: tuple[float, ...]) -> tuple[dict[str, int], Floats]:
        """The released words with the largest noisy counts, in alphabetical order."""
        if not words:
            raise ValueError(
                "no word is in enough groups to be released, so there is nothing to learn. The words were asked "
                "for, so this fit stays charged in full. Give a public vocabulary, a larger epsilon or "
                "vocabulary_share, or more groups"
            )
        found = np.array(counts)
        kept = np.sort(np.argsort(-found, kind="stable")[: int(self.max_vocabulary_size)])
        return {words[k]: row for row, k in enumerate(kept)}, found[kept]

    def _trained(
        self, session: PrivacySession, records: PrivateRecords, details: WordDetails, known: dict[str, int],
        counts: Floats | None,
    ) -> Solution:  # fmt: skip
        n_words, dim = len(known), int(self.vector_size)
        seeds = session.integers(2**62, 5).tolist()
        start = _start(np.random.default_rng(seeds[:4]), n_words, dim, bool(self.tied))
        negatives, clip, batches = self._negatives(n_words, counts), details.clip_norm, details.batches
        rate = first_rate(self, details, n_words)
        counts_words = estimator_of(self.gradient_estimator).needs_table
        touched = touched_words(n_words, dim, bool(self.tied)) if counts_words else None
        release = details.method.release(session, records, batches, touched)

        def gradient(theta: NDArray[np.float32], t: int) -> tuple[Floats | FewEntries, float]:
            batch = session.draw(batches, records, positions=counts_words)
            total = cbow_gradient(records,
                theta.reshape(-1, dim), clip, negatives=negatives,
                key=(seeds[4] + t * KEYS) % 2**64, batch=batch,
            )  # fmt: skip
            found = release(total * (1.0 / batches.batch_size), batch)
            return found if isinstance(found, FewEntries) else found.ravel(), 0.0

        n_iter, name = batches.releases, type(self).__name__
        steps = SinglePrecision(start.ravel(), details.rule, rate, n_iter)
        with Progress(name, n_iter, session, self.verbose, self.callback) as monitor:
            theta = descend(gradient, steps, steps.here, n_iter, monitor).theta
        table = theta.reshape(-1, dim).astype(np.float32)
        vectors, outputs = table[:n_words], table[-n_words:]
        attributes = {
            "vectors_": vectors, "output_vectors_": vectors if self.tied else outputs,
            "vocabulary_": known, "word_counts_": counts, "clip_norm_": clip, "learning_rate_": rate,
            "batch_size_": batches.batch_size,
        }  # fmt: skip
        return Solution(theta, n_iter, attributes)

    def _negatives(self, n_words: int, counts: Floats | None) -> Negatives:
        weights = np.ones(n_words) if self.negative_weights is None else self.negative_weights
        if isinstance(weights, str):
            weights = np.maximum(np.asarray(counts), 0.0) ** POWER
        return Negatives.by_weights(int(self.negative), weights)

    # ---------------------------------------------------------------- the report

    def _public_facts(self, problem: SentenceProblem) -> dict[str, object]:
        known, width = problem.details.known, 2 * int(self.window) + 1
        facts: dict[str, object] = {"clip_norm": problem.details.clip_norm, "window": int(self.window)}
        facts["vector_size"], facts["n_tables"] = int(self.vector_size), 1 if self.tied else 2
        if not isinstance(self.gradient_estimator, str):
            facts["gradient_estimator"] = repr(self.gradient_estimator)
        if known is None:
            facts["max_words_per_group"] = int(self.max_words_per_group)
            facts["vocabulary_share"] = float(self.vocabulary_share)
        else:
            facts["n_words"] = len(known)
        if self.unit == "record":
            facts["most_windows_of_a_word"] = width  # of one place in a text
        return facts

    def _assumptions(self, problem: SentenceProblem) -> tuple[str, ...]:
        if problem.details.known is None:
            return ()
        return ("vocabulary was not chosen by looking at these sentences",)

    # ---------------------------------------------------------------- uses of the vectors

    def most_similar(self, word: str, topn: int = 10) -> list[tuple[str, float]]:
        """List the words whose vectors have the largest cosines with the vector of ``word``.

        Parameters
        ----------
        word : str
            Of the vocabulary.
        topn : int, default=10

        Returns
        -------
        list of tuple (str, float)
            Words and cosines, the largest first, without the word itself.

        Raises
        ------
        KeyError
            If the word is not in the vocabulary.
        TypeError
            If it is no str.
        """
        check_is_fitted(self)
        check_number("topn", topn, Integral, low=1)
        if not isinstance(word, str):
            raise TypeError(f"word must be a str, got {type(word).__name__}")
        if word not in self.vocabulary_:
            raise KeyError(f"{word!r} is not among the {len(self.vocabulary_)} words of vocabulary_")
        row, words = self.vocabulary_[word], list(self.vocabulary_)
        norms = np.linalg.norm(self.vectors_, axis=1)
        cosines = self.vectors_ @ self.vectors_[row] / np.maximum(norms * norms[row], 1e-30)
        cosines[row] = -np.inf
        order = np.argsort(-cosines, kind="stable")[: min(int(topn), len(words) - 1)]
        return [(words[k], float(cosines[k])) for k in order]

    def loss(self, sentences: object) -> float:
        """Return the mean loss of the windows of sentences.

        It is a function of the sentences that are given: of private ones it is a number that no epsilon covers.

        Parameters
        ----------
        sentences : list of lists of str

        Returns
        -------
        float
            With negatives that follow from each window alone, the same in every call. NaN if there is no window.
        """
        from skdp.kernels import cbow_losses

        check_is_fitted(self)
        windows, _ = windows_of(read_sentences(sentences), self.vocabulary_, int(self.window))
        table = self.vectors_ if self.tied else np.vstack([self.vectors_, self.output_vectors_])
        negatives = self._negatives(len(self.vocabulary_), self.word_counts_)
        losses = cbow_losses(windows, table, len(self.vocabulary_), negatives.table(), 0)
        return float(losses.mean()) if losses.size else math.nan

    def save_word2vec_format(self, path: str | PathLike[str]) -> None:
        """Write the vectors to a text file in the format of word2vec.

        Parameters
        ----------
        path : str or path
            The first line has the number of words and the length of a vector; each other line a word
            and its vector.

        Raises
        ------
        ValueError
            If a word is empty or holds white space, which the format cannot say.
        """
        check_is_fitted(self)
        save_word2vec(path, self.vocabulary_, self.vectors_)


def _start(rng: np.random.Generator, n_words: int, size: int, tied: bool) -> Floats:
    """Vectors before the first step, of length about 0.6; the outputs of a second table begin at 0."""
    first = rng.uniform(-1.0, 1.0, (n_words, size)) / math.sqrt(size)
    return first if tied else np.vstack([first, np.zeros_like(first)])
