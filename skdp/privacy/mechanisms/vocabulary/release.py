"""A private vocabulary as a release of a session: the words that enough units have, and noisy counts of them.

Privacy
-------
A unit with k <= m words adds a vector of l2 norm at most 1: 1 / sqrt(k) for each of its words. Every word that any
unit has gets Gaussian noise of standard deviation s, and is released, with its noisy count, if that reaches the
threshold t. m, s and t are public, and fixed before.

Let A be the words of the units of a data set D, and B the words of a neighbour D'. They differ by the words of one
unit, u or u'. A word of A that is not in B is u's alone. That such a word is released has probability at most d =
max over k <= m of 1 - Phi((t - 1 / sqrt(k)) / s)^k, and no other unit has a part in it. Let M be the release and F
the fit after it, and let M~ release the same without looking at words outside of A and B together.

1. M~ is a Gaussian mechanism on the words of A and B, and a threshold, which is post-processing. Its sensitivity
   is 1, or sqrt(2) under replace-one: no unit's vector has a negative entry, so |u - u'|^2 <= |u|^2 + |u'|^2.
   Hence F after M~ costs what the Gaussian releases and batches of the session cost: (epsilon, delta), say.
2. The noise of different words is independent. Given that no word of A without B is released, M(D) has the law of
   M~(D), so P(F M(D) in S) <= P(F M~(D) in S) + d.
3. P(F M~(D') in S) (1 - d) <= P(F M(D') in S), by the same independence.
4. Together P(F M(D) in S) <= e^epsilon P(F M~(D') in S) + delta + d <= e^(epsilon - log(1 - d)) P(F M(D') in S) +
   delta + d.

The release costs its mu, and -log(1 - d) of epsilon and d of delta beside it. The plan takes these two from the
part of the budget that is kept for the error of the samplers. d is a quarter of that part of delta.

The noise is drawn as integers, and everything is added and compared as integers. Words that neither u nor u' has
get noise of one law on both data sets, so the samplers err on at most 2 m words.
"""

import math
from dataclasses import dataclass
from functools import partial

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.mechanisms.gaussian.release import GaussianReleases
from skdp.privacy.mechanisms.vocabulary.cost import VocabularyRelease, shares_of_words, word_threshold
from skdp.privacy.noise import KeyStream
from skdp.privacy.session.ledger import GaussianPlan, Ledger, check_number, check_share
from skdp.privacy.words import PrivateWords

MOST_WORDS = 10**6
LEAST_GRID = 2**20  # units of the grid that a unit adds: roundings stay small
# l2 sensitivity over the largest norm of a unit's contribution, by adjacency; rounded up.
MOVED = {"zero-out": 1.0, "add-remove": 1.0, "replace-one": math.sqrt(2.0) * (1 + 2.0**-50)}
PART = 0.25  # share of the delta that is kept for samplers' errors
Vocabulary = tuple[tuple[str, ...], tuple[float, ...]]


@dataclass(frozen=True)
class VocabularyPlan:
    """One release of a vocabulary; made by a session only.

    Attributes
    ----------
    gaussian : GaussianPlan
        Its share of the budget, and its noise multiplier.
    max_words : int
        Most words that count of a unit.
    delta : float
        Largest probability that a word of one unit alone is released.
    grid : int
        Units of the grid that make 1.
    threshold : int
        In units of the grid.
    """

    gaussian: GaussianPlan
    max_words: int
    delta: float
    grid: int
    threshold: int

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of a count; 0 where the session is exact."""
        return float(noise.CANONICAL_SIGMA) / self.grid if self.gaussian.noise_multiplier else 0.0


class Vocabularies(GaussianReleases):
    """Vocabularies of groups."""

    def plan_vocabulary(self, share: float, max_words: int, *, purpose: str = "vocabulary") -> VocabularyPlan:
        """Fix the noise and the threshold of one release of a vocabulary.

        Parameters
        ----------
        share : float
            Share of the session's mu^2 in (0, 1].
        max_words : int
            Public: the most different words that count of a unit.
        purpose : str, default="vocabulary"
            Written to the report.

        Returns
        -------
        VocabularyPlan

        Raises
        ------
        PrivacyBudgetExceeded
            If less than ``share`` is left, or its noise does not fit on the grid.
        UnsupportedAccounting
            If the unit is the record.
        """
        with self._lock:
            self._check_open()
            ledger, words = self._ledger, check_number(max_words, "max_words")
            if words > MOST_WORDS:
                raise ValueError(f"max_words must be at most {MOST_WORDS}, got {words}")
            if ledger.unit != "group":
                raise UnsupportedAccounting(
                    "a vocabulary is released of groups, each with words of its own: use unit='group'"
                )
            ledger.require_gaussian()
            share = check_share(share)
            if ledger.exact:
                plan = self.plan_gaussian(1, share, purpose=purpose)
                return _kept(ledger, VocabularyPlan(plan, words, 0.0, LEAST_GRID, 0))
            # Refused before anything is written down.
            multiplier = 1.0 / math.sqrt(share * ledger.mu2) * (1 + 2.0**-40)
            sigma, delta = float(noise.CANONICAL_SIGMA), PART * ledger.delta_numerical_error
            grid = math.floor(sigma / (multiplier * MOVED[ledger.adjacency]))
            if not LEAST_GRID <= grid:
                raise PrivacyBudgetExceeded(
                    f"a noise multiplier of {multiplier:.3g} leaves nothing of a vocabulary: ask for a larger "
                    "epsilon or share, or give a public vocabulary"
                )
            numerical_error = noise.gaussian_numerical_error(2 * words, multiplier)
            # Real probabilities are at most a factor away from the ideal ones, and the factor is below 1 + 1e-4.
            extra = (-math.log1p(-delta), delta * (1 + 1e-4))
            ledger.check_numerical_error((numerical_error[0] + extra[0], numerical_error[1] + extra[1]))
            plan = self.plan_gaussian(1, share, purpose=purpose)
            ledger.charge_numerical_error((numerical_error[0] + extra[0], numerical_error[1] + extra[1]))
            threshold = word_threshold(grid, sigma, words, delta)
            return _kept(ledger, VocabularyPlan(plan, words, delta, grid, threshold))

    def release_vocabulary(self, words: PrivateWords, plan: VocabularyPlan) -> Vocabulary:
        """Release the words that enough units have, in alphabetical order, and noisy counts of them.

        Parameters
        ----------
        words : PrivateWords
        plan : VocabularyPlan
            Of this session, not used yet.

        Returns
        -------
        words : tuple of str
        counts : tuple of float
            A unit of k words counted 1 / sqrt(k) for each of them.

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan was used already. Nothing was drawn or released.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            if not isinstance(words, PrivateWords) or type(plan) is not VocabularyPlan:
                raise TypeError("a vocabulary is released of PrivateWords, with a plan of plan_vocabulary")
            if ledger.adjacency == "add-remove" and words.shape.n_public is None:
                raise ValueError("under adjacency='add-remove' give PrivateWords their n_public")
            if not any(plan is own for own in ledger.vocabularies):
                raise PrivacyBudgetExceeded("this plan belongs to another session, or is a copy")
            ledger.check_plan(plan.gaussian, 1)
            shares = shares_of_words(plan.grid, plan.max_words).tolist()
            if ledger.exact:
                ledger.use(plan.gaussian)
                return _shown(sorted(words._counts(shares).items()), plan.grid)
            sigma, unit = float(noise.CANONICAL_SIGMA), 1.0 / plan.grid
            row = VocabularyRelease(
                noise_multiplier=plan.gaussian.noise_multiplier, sensitivity=MOVED[ledger.adjacency],
                noise_std=sigma * unit, grid=unit, threshold=plan.threshold * unit, max_words=plan.max_words,
                delta=plan.delta,
            )  # fmt: skip

            def draw(stream: KeyStream) -> tuple[Vocabulary, LedgerRow]:
                counts = sorted(words._counts(shares).items())
                drawn = noise.rounded_gaussian(sigma, len(counts), stream).tolist()
                noisy = [(word, count + more) for (word, count), more in zip(counts, drawn)]
                kept = [(word, count) for word, count in noisy if count >= plan.threshold]
                return _shown(kept, plan.grid), row.describe()

            # The plan paid for the sampler's error.
            return self._release(
                draw,
                numerical_error=(0.0, 0.0),
                admit=partial(ledger.use, plan.gaussian),
                purpose=plan.gaussian.purpose,
            )


def _kept(ledger: Ledger, plan: VocabularyPlan) -> VocabularyPlan:
    """The plan, which the ledger knows from now on: a copy could have another threshold or grid."""
    ledger.vocabularies.append(plan)
    return plan


def _shown(found: list[tuple[str, int]], grid: int) -> Vocabulary:
    return tuple(word for word, _ in found), tuple(count / grid for _, count in found)
