"""Decisions of a fit of vectors of words from public numbers before its first release, and its warnings."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skdp.base.plan import Advice, BudgetSplit, Decision, steps_of
from skdp.base.problem import Problem
from skdp.fitting.minibatch_warnings import StepFacts, WordFacts
from skdp.fitting.noisy_mean import Clipping, NoisyMean, estimator_of
from skdp.fitting.optimizers import Rule, rate_factor
from skdp.fitting.sizes import CLIP_NORM, chosen_run, signal
from skdp.fitting.task import given
from skdp.fitting.utility import Facts, utility_warnings
from skdp.privacy import BatchPlan, PrivacySession, PublicShape, VocabularyPlan, factor

if TYPE_CHECKING:
    from skdp.text.parameters import SentenceProblem, WordParameters

RELEASED = "released"
# Chosen on held-out sentences of Brown, one seed. The largest standard deviation that the noise of all steps gives
# an entry, about the size of the entries; and the first step over (1 - momentum), in clip norms, for each word, if
# the noise allows it.
WALK, STEP, LEAST_STEP = 0.1, 0.2, 10.0
ADAM_STEP = 0.01
MIN_WINDOW_WORDS = 2  # words of a window
MIN_SIGNIFICANT_WORD = 2.0  # standard deviations of the noise that a fit does not rely on to release a word


@dataclass(frozen=True)
class WordDetails:
    """Public numbers of a fit; steps, warnings and the report read them.

    Attributes
    ----------
    method : NoisyMean
        How a step clips gradients and releases their mean.
    batches : BatchPlan
        Of all steps.
    rule : Rule
    n_numbers : int
        Of the table; of a private vocabulary, at most.
    known : dict of str to int, or None
        The public vocabulary.
    words : VocabularyPlan or None
        The plan of the release of a private one; None for a public one.
    """

    method: NoisyMean
    batches: BatchPlan
    rule: Rule
    n_numbers: int
    known: dict[str, int] | None
    words: VocabularyPlan | None

    @property
    def clip_norm(self) -> float:
        """Largest l2 norm of a unit's part of a sum."""
        return self.method.clipping.norm

    @property
    def threshold(self) -> float:
        """Groups that a private vocabulary needs of a word that is their only one."""
        assert self.words is not None  # asked for where the vocabulary is private
        return float(self.words.threshold / self.words.grid)


def decide(model: "WordParameters", session: PrivacySession, problem: Problem) -> Decision:
    """Decide everything that public numbers tell, and refuse impossible parameters; see `WordDetails`."""
    known, shape = model._known(), problem.records.shape
    n_units, rule, method = shape.n_units, model._rule(), _method(model)
    share = 0.0 if known is not None else float(model.vocabulary_share)
    most = int(model.max_vocabulary_size) if known is None else len(known)
    size = _n_numbers(model, most)
    run = chosen_run(
        model.epsilon, model.delta, n_units, size,
        batch_size=given(model.batch_size), max_iter=given(model.max_iter), n_epochs=model.n_epochs,
    )  # fmt: skip
    groups = method.releases(run.n_iter, run.batch_size, size)
    vocabulary, rest = BudgetSplit(session).split(vocabulary=share, steps=None)
    (batches,) = rest.plan_batches(groups, n_units=n_units)
    words = None
    if known is None:
        words = vocabulary.plan_vocabulary(int(model.max_words_per_group))
    details = WordDetails(method, batches, rule, size, known, words)
    # The best case: each group has one word, and it is the same.
    if words is not None and details.threshold > n_units + MIN_SIGNIFICANT_WORD * words.noise_std:
        raise ValueError(
            f"no word could be released: it needs about {details.threshold:.0f} groups, and there are {n_units}. "
            "Nothing was spent. Give a public vocabulary, a larger epsilon or vocabulary_share, or more groups"
        )
    session.require_feasible_batches(size, (batches,), scans=method.scans)
    # The number of words that are released decides about a step of SGD.
    waits = words is not None and isinstance(model.learning_rate, str) and rule.solver == "sgd"
    seen = signal(model.epsilon, model.delta, n_units, size)
    return Decision(
        method="full batches" if run.batch_size >= n_units else "Poisson batches",
        reason=run.reason,
        sizes={
            "n_words": most if words is None else f"at most {most}",
            "n_iter": batches.releases,
            "batch_size": batches.batch_size,
            "clip_norm": details.clip_norm,
            "learning_rate": RELEASED if waits else first_rate(model, details, most),
        },
        steps=(*vocabulary.step("vocabulary"), *steps_of((batches,))),
        signal=None if math.isinf(seen) else seen,
        details=details,
    )


def _n_numbers(model: "WordParameters", n_words: int) -> int:
    """Numbers of a table of so many words."""
    return (n_words if model.tied else 2 * n_words) * int(model.vector_size)


def _method(model: "WordParameters") -> NoisyMean:
    norm = given(model.clip_norm)
    return estimator_of(model.gradient_estimator).engine(Clipping(CLIP_NORM if norm is None else float(norm)))


def first_rate(model: "WordParameters", details: WordDetails, n_words: int) -> float:
    """The first step: as long as the signal asks, and no longer than the noise allows, by public numbers."""
    rate = given(model.learning_rate)
    if rate is not None:
        return float(rate)
    rule, batches = details.rule, details.batches
    n_iter = batches.releases
    factors = (rate_factor(rule.schedule, t, n_iter) for t in range(n_iter))
    length = math.sqrt(math.fsum(f * f for f in factors))
    if rule.solver == "adam":  # its steps have size 1 in every entry
        return min(ADAM_STEP, WALK / length)
    # A window touches few of the words, so a mean over windows is the smaller the more words there are.
    rate = max(LEAST_STEP, STEP * n_words) / details.clip_norm
    multiplier = batches.parts[-1].noise_multiplier
    noise = multiplier * factor(model.adjacency) * details.clip_norm / batches.batch_size
    rate = min(rate, WALK / (noise * length)) if noise else rate
    return (1 - rule.momentum) * rate


def advice(model: "WordParameters", session: PrivacySession, problem: "SentenceProblem") -> tuple[Advice, ...]:
    """Warnings from public numbers."""
    shape, details = problem.records.shape, problem.details
    steps = StepFacts(
        details.n_numbers,
        2 * int(model.window) + 1,  # a document has more different words
        "numbers of the table",
        "word",
        "window" if model.unit == "record" else "group",
    )
    steps = details.method.utility((details.batches,), model.adjacency, steps)
    return advice_on_words(model, shape, None if details.known is None else len(details.known), details, steps)


def advice_on_words(
    model: "WordParameters", shape: PublicShape, n_words: int | None, details: WordDetails,
    steps: StepFacts | None = None,
) -> tuple[Advice, ...]:  # fmt: skip
    """Warnings of a table of so many words, a public number or a released one; None is the fewest of a window."""
    size = _n_numbers(model, n_words or MIN_WINDOW_WORDS)
    seen = signal(model.epsilon, model.delta, shape.n_units, size)
    words = WordFacts(n_words or MIN_WINDOW_WORDS, size, seen, least=n_words is None)
    if details.words is not None and steps is not None:  # before the release of the words
        words = replace(words, threshold=details.threshold, most=int(model.max_words_per_group))
    return utility_warnings(Facts(type(model).__name__, shape, model.epsilon, words=words, steps=steps))
