"""Private vectors of words."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._compat import warn_user
from skdp._docs import document
from skdp.base import check_number
from skdp.base.declare import changed, fitted, parameter, word_or_object
from skdp.base.fit import SessionOptions
from skdp.base.kinds import described, flag, integer, real
from skdp.base.plan import Advice, Decision, FitPlan, NoRecords
from skdp.base.problem import Problem, Solution
from skdp.fitting.loop import descend
from skdp.fitting.minibatches import MinibatchFit, of_width
from skdp.fitting.noisy_mean import estimator_of
from skdp.fitting.optimizers import FewEntries, SinglePrecision, check_unsmoothed
from skdp.fitting.progress import Progress
from skdp.fitting.selection import AdaFEST, SparseSelection
from skdp.kernels import Negatives
from skdp.kernels.protocols import Floats
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape
from skdp.privacy.statistics import cbow_gradient
from skdp.text.counted_words import touched_words
from skdp.text.decision import WordDetails, advice, advice_on_words, decide, first_rate
from skdp.text.export import save_word2vec
from skdp.text.sentences import MOST_WORDS, Sentences, check_form, check_vocabulary, read_sentences, windows_of

__all__ = ["DPWord2Vec"]

PRIVATE, RELEASED = "private", "released"
POWER = 0.75  # of counts, by which negatives are drawn (Mikolov et al. 2013)
KEYS = 0x9E3779B97F4A7C15  # between the keys of two steps


class SentenceProblem(Problem):
    """Checked sentences."""

    records: Sentences

    @property
    def details(self) -> WordDetails:
        """What the fit has decided."""
        return cast("WordDetails", cast("FitPlan", self.plan).decision.details)


SIZE = integer(low=1, high=10**6)


@document()
class DPWord2Vec(MinibatchFit[SentenceProblem]):
    """Vectors of words from their contexts, by differentially private SGD.

    The model is CBOW with negative sampling ([Mikolov2013]_): the mean of the vectors of a window's context is to
    tell the window's target from words that were drawn. Training takes steps along noisy clipped gradients of
    minibatches of windows, as in [Abadi2016]_. The noise is added to all numbers of the table, also to those of
    words that no window of the batch has.

    {guarantee}

    Attributes
    ----------
    vectors_ : ndarray of float32 of shape (n_words, vector_size)
        Released vectors of the words.
    output_vectors_ : ndarray of float32 of shape (n_words, vector_size)
        Released vectors of targets and negatives: the same array where the tables are tied.
    vocabulary_ : dict
        The row of each word.
    word_counts_ : ndarray of shape (n_words,), or None
        Of a private vocabulary: released sums over the groups, each of which counts 1 / sqrt(k) for each of its k
        words. Few of them are below the threshold of the release, and all carry noise.
    clip_norm_ : float
        The clip norm given, or the one that "auto" is.
    {batch_size_} {learning_rate_.net} {n_iter_} {privacy_}

    See Also
    --------
    DPLSTMClassifier : A classifier of sequences, which learns vectors of tokens too.
    skdp.datasets.fetch_brown : Documents of words.

    Notes
    -----
    {privacy.net}

    A window's negatives follow from a key, the step and the window's own words. So they depend on nobody else's
    words. Nothing else of a step is random but the batch and the noise.

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

    vocabulary: Sequence[str] | Literal["private"] = parameter(
        described('list of str or "private"'),
        """A public list of words, in the order of the rows of ``vectors_``. "private" releases it for a part of
        the budget: the words that enough groups have, in alphabetical order. This needs ``unit="group"``.""",
        default=PRIVATE,
    )
    vector_size: int = parameter(SIZE, "Length of a word's vector.", default=100)
    window: int = parameter(
        SIZE,
        """Words on either side of a target that are its context. Words that are not in the vocabulary are left out
        first.""",
        default=4,
    )
    negative: int = parameter(
        SIZE, "Words that are drawn for each window and step. A word that is the target is left out.", default=8
    )
    negative_weights: Any = parameter(
        described('array-like of float or "released"'),
        """Law of these words: None is uniform. Numbers are public, one for each word of a public vocabulary.
        "released" takes the noisy counts of a private vocabulary, to the power 0.75. It is never the frequency of
        words in the sentences.""",
        default=None,
    )
    tied: bool = parameter(
        flag(),
        "Whether targets and negatives have the vectors of words in a context, or a second table.",
        default=False,
    )
    max_words_per_group: int = parameter(
        SIZE,
        """Public, for ``vocabulary="private"``: the most different words that count of a group, the most frequent
        first.""",
        default=200,
    )
    max_vocabulary_size: int = parameter(
        integer(low=1, high=MOST_WORDS),
        """Public, for ``vocabulary="private"``: the most words that are kept, those with the largest noisy
        counts.""",
        default=10000,
    )
    vocabulary_share: float = parameter(
        real(low=0, strict=True, high=0.9),
        'Part of the budget (of mu^2) for ``vocabulary="private"``.',
        default=0.1,
    )
    gradient_estimator: Literal["mean"] | SparseSelection | AdaFEST = parameter(
        word_or_object("mean", types=(SparseSelection, AdaFEST)),
        """What a step releases. "mean" is the noisy mean of clipped gradients: noise goes to all numbers of the
        table. With `skdp.nn.SparseSelection` it goes to numbers that each step chooses anew; this needs a public
        vocabulary. With `skdp.nn.AdaFEST` it goes to the vectors of words that many units have; where none has
        enough, a step adds its noise to the first word of the vocabulary.""",
        default="mean",
    )
    unit: Literal["record", "group"] = changed(
        default="group",
        text="""Whose change the claim protects. "group" is a document or a person: all sentences with one of
        ``groups`` in `fit`; their summed gradient is clipped as one. "record" is one window, and needs a public
        vocabulary. A word of a text is in up to ``2 * window + 1`` windows, so this protects less than one word.
        The number of windows is then public: words of the vocabulary that have another one near them. Fits with
        other vocabularies show other such numbers, and no epsilon covers them; ``n_public`` keeps them
        private.""",
    )
    vectors_: NDArray[np.float32] = fitted()
    output_vectors_: NDArray[np.float32] = fitted()
    vocabulary_: Mapping[str, int] = fitted()
    word_counts_: Floats | None = fitted()
    _gone: ClassVar[dict[str, str]] = {
        **MinibatchFit._gone,
        "select": "gradient_estimator=SparseSelection(...) or AdaFEST(...)",
    }

    _record_checks = "sentences of words"
    _counts: ClassVar[Mapping[str, str]] = {
        "n_windows": "n_records",
        "n_groups": "n_groups",
        "n_public": "n_public",
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    # ---------------------------------------------------------------- parameters

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_unsmoothed(self.optimizer)
        if self.epsilon < math.inf and not isinstance(self.clip_norm, str):
            check_number("clip_norm", self.clip_norm, Real, low=1e-6, high=1e6)
        self._check_vocabulary()
        if isinstance(self.gradient_estimator, SparseSelection) and self._known() is None:
            raise ValueError(
                "SparseSelection needs a public vocabulary: how many numbers a step chooses is planned before any "
                "release. AdaFEST takes a private one"
            )

    def _check_vocabulary(self) -> None:
        known, weights = self._known(), self.negative_weights
        if known is None and self.unit != "group":
            raise ValueError(
                "vocabulary='private' needs unit='group': the words of a document are counted as one. With "
                "unit='record' give a public list of words"
            )
        if isinstance(weights, str):
            if weights != RELEASED:
                raise ValueError(f"negative_weights must be None, numbers or {RELEASED!r}, got {weights!r}")
            if known is not None:
                raise ValueError(
                    "negative_weights='released' needs vocabulary='private', whose noisy counts it takes; give "
                    "public numbers, one for each word"
                )
        elif weights is not None:
            if known is None:
                raise ValueError("negative_weights as numbers need a public vocabulary: one for each of its words")
            if np.shape(weights) != (len(known),):
                raise ValueError(f"negative_weights must be {len(known)} numbers, one for each word")
            try:
                Negatives.by_weights(1, weights)
            except ValueError as error:
                raise ValueError(f"negative_{error}") from None

    def _known(self) -> dict[str, int] | None:
        """The public vocabulary, or None for a private one."""
        if isinstance(self.vocabulary, str):
            if self.vocabulary != PRIVATE:
                raise ValueError(f"vocabulary must be a list of words or {PRIVATE!r}")
            return None
        return check_vocabulary(self.vocabulary)

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        # Windows are counted in `read`.
        options["record_is"] = "window"
        options["minibatches"] = True
        return super()._open_session(self.n_public, **options)

    # ---------------------------------------------------------------- the fit

    def fit(  # type: ignore[override]
        self, sentences: Any, y: Any = None, *, groups: Any = None, **more: Any
    ) -> Self:
        """Learn the vectors privately.

        Parameters
        ----------
        sentences : list of lists of str
            The words of each sentence. A window does not reach over the end of a sentence.
        y : None
            Ignored.
        groups : array-like of shape (n_sentences,), default=None
            The document or person that each sentence belongs to; needed by, and allowed with, ``unit="group"``
            only.
        **more : dict
            ``sample_weight=None`` or nothing: windows have no weighted form.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError, ValueError
            If a parameter or the data are not as described. No budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim, which is a bug in skdp. The result is discarded.
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
        records: Any = NoRecords(of_width(shape, 2 * int(self.window) + 1, "window"))
        return SentenceProblem(records, {}, ())

    # ---------------------------------------------------------------- the plan: skdp.text.decision

    def _decide(self, session: PrivacySession, problem: SentenceProblem) -> Decision:
        return decide(self, session, problem.records.shape, self._known())

    def _advice(self, session: PrivacySession, problem: SentenceProblem) -> tuple[Advice, ...]:
        return advice(self, problem.records.shape, problem.details)

    # ---------------------------------------------------------------- the solver

    def solve(self, session: PrivacySession, problem: SentenceProblem) -> Solution:
        """Release the vocabulary if it is private; then train."""
        data, details, counts = problem.records, problem.details, None
        known = details.known
        if known is None:
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
            batch = session.draw(batches, records, places=counts_words)
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

    # ---------------------------------------------------------------- what is done with the vectors

    def most_similar(self, word: str, topn: int = 10) -> list[tuple[str, float]]:
        """List the words whose vectors have the largest cosines with that of ``word``.

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

    def loss(self, sentences: Any) -> float:
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
        n_words = len(self.vocabulary_)
        negatives = self._negatives(n_words, self.word_counts_)
        losses = cbow_losses(windows, table, n_words, negatives.table(), 0)
        return float(losses.mean()) if losses.size else math.nan

    def save_word2vec_format(self, path: Any) -> None:
        """Write the vectors to a text file in the format of word2vec.

        Parameters
        ----------
        path : str or path
            The first line has the number of words and the length of a vector; each other line a word and its
            vector.

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
