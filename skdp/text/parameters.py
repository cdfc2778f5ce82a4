"""The parameters of vectors of words, each declared once, with the checks of several together."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from skdp.base import check_number
from skdp.base.declare import changed, parameter, word_or_object
from skdp.base.kinds import described, flag, integer, real
from skdp.base.plan import FitPlan
from skdp.base.problem import Problem
from skdp.fitting.minibatches import MinibatchFit
from skdp.fitting.optimizers import check_unsmoothed
from skdp.fitting.selection import AdaFEST, SparseSelection
from skdp.kernels import Negatives
from skdp.text.decision import RELEASED, WordDetails
from skdp.text.sentences import MOST_WORDS, Sentences, check_vocabulary

PRIVATE = "private"


class SentenceProblem(Problem):
    """Checked sentences."""

    records: Sentences

    @property
    def details(self) -> WordDetails:
        """The decisions of the fit."""
        return cast("WordDetails", cast("FitPlan", self.plan).decision.details)


SIZE = integer(low=1, high=10**6)


class WordParameters(MinibatchFit[SentenceProblem]):
    """The parameters of vectors of words."""

    vocabulary: Sequence[str] | Literal["private"] = parameter(
        described('list of str or "private"'),
        """A public list of words, in the order of the rows of ``vectors_``. "private" releases it for a part of
        the budget: the words that enough groups have, in alphabetical order. This needs ``unit="group"``.""",
        default=PRIVATE,
    )
    vector_size: int = parameter(SIZE, "Length of a word's vector.", default=100)
    window: int = parameter(
        SIZE,
        """Words on either side of a target that are its context. Words that are not in the vocabulary are
        left out first.""",
        default=4,
    )
    negative: int = parameter(
        SIZE, "Words that are drawn for each window and step. A word that is the target is left out.", default=8
    )
    negative_weights: ArrayLike | Literal["released"] | None = parameter(
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
        """Public, for ``vocabulary="private"``: the most different words that count of a group, the most
        frequent first.""",
        default=200,
    )
    max_vocabulary_size: int = parameter(
        integer(low=1, high=MOST_WORDS),
        """Public, for ``vocabulary="private"``: the most words that are kept, those with the largest
        noisy counts.""",
        default=10000,
    )
    vocabulary_share: float = parameter(
        real(low=0, strict=True, high=0.9),
        'Part of the budget (of mu^2) for ``vocabulary="private"``.',
        default=0.1,
    )
    gradient_estimator: Literal["mean"] | SparseSelection | AdaFEST = parameter(
        word_or_object("mean", types=(SparseSelection, AdaFEST)),
        """The release of a step. "mean" is the noisy mean of clipped gradients: noise goes to all numbers of the
        table. With `skdp.nn.SparseSelection` it goes to numbers that each step chooses anew; this needs a public
        vocabulary. With `skdp.nn.AdaFEST` it goes to the vectors of words that many units have; where none has
        enough, a step adds its noise to the first word of the vocabulary.""",
        default="mean",
    )
    unit: Literal["record", "group"] = changed(
        default="group",
        text="""Whose change the claim protects. "group" is a document or a person: all sentences with one of
        ``groups`` in `fit`; their summed gradient is clipped as one. "record" is one window, and needs a public
        vocabulary. A word of a text is in up to ``2 * window + 1`` windows, so this protects less than one
        word. The number of windows is then public: words of the vocabulary that have another one near them.
        Fits with other vocabularies show other such numbers, and no epsilon covers them; ``n_public`` keeps
        them private.""",
    )
    _gone: ClassVar[dict[str, str]] = {
        **MinibatchFit._gone,
        "select": "gradient_estimator=SparseSelection(...) or AdaFEST(...)",
    }

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
