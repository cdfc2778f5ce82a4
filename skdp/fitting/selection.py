"""Noise on a few chosen coordinates of a step's gradient: sparse selection and DP-AdaFEST.

A step of sparse selection chooses k coordinates of the mean of clipped gradients and adds noise to these alone.
`SparseSelection` says where the published algorithm errs. DP-AdaFEST (Ghazi et al. 2023) chooses rows of an
embedding by noisy counts of the records that touch them. Both choose among all coordinates, also those that no
record of the batch touched: else the support of a step would tell words.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from skdp.base import check_choice, check_number
from skdp.fitting.minibatch_warnings import StepFacts
from skdp.fitting.noisy_mean import (
    Clipping,
    GradientEstimator,
    NoisyMean,
    Release,
    StepNoise,
    TouchedRows,
    method_of,
)
from skdp.fitting.optimizers import FewEntries
from skdp.privacy import (
    Batch,
    BatchGroup,
    BatchPlan,
    BoundedStatistic,
    Choices,
    PrivacySession,
    PrivateRecords,
    factor,
)

METHODS = ("exponential", "sparse vector", "uniform")
LARGEST_THRESHOLD = 1e9  # largest threshold of DP-AdaFEST, in standard deviations


def _check_share(share: float) -> None:
    check_number("share", share, Real, low=0, strict=True)
    if share >= 1:
        raise ValueError(f"share must be in (0, 1), got {share!r}")


class Selection(GradientEstimator):
    """The common methods of `SparseSelection` and `AdaFEST`."""

    partitions = False
    full_batches = False

    def check(self, model: BaseEstimator) -> None:
        if method_of(model.clipping) == "projections":
            raise ValueError(
                f"gradient_estimator={type(self).__name__}() has no proof with clipping={model.clipping!r}; use "
                "another clipping"
            )


@dataclass(frozen=True)
class SparseSelection(Selection):
    """Noise on floor(fraction p) of the p parameters, at least one, which each step chooses anew.

    **It lowers the accuracy of ordinary nets**, often to the accuracy of guessing. It is for nets with a wide
    `Embedding`, and for comparisons with the paper. Fits that are likely to lose by it warn.

    Parameters
    ----------
    fraction : float, default=0.01
        Part of the parameters that a step changes, in (0, 1].
    method : {"exponential", "sparse vector", "uniform"}, default="exponential"
        "exponential" chooses large entries of the mean gradient: the k largest of abs(g_j) with Gumbel noise.
        "sparse vector" takes the first k of a random order whose noisy abs(g_j) is above ``threshold``, and others
        uniformly if these are fewer. "uniform" chooses without looking, so it costs nothing.
    score_clip : float, default=None
        Largest abs(g_j) that counts in the choice, in units of the mean gradient. None is no clip.
    value_clip : float, default=None
        Largest l2 norm of the chosen entries of the mean gradient. None is no clip.
    share : float, default=0.25
        Part of a step's cost, in zero-concentrated DP, that the choice takes.
    threshold : float, default=None
        Of "sparse vector", which alone reads it and needs it; in units of the mean gradient.

    Notes
    -----
    The paper's S1 is the ``clip_norm`` of the estimator, S0 is ``score_clip`` and S2 is ``value_clip``. Choice and
    noise are one release on one Poisson batch, under zero-out and add-remove. "uniform" has a proof under
    replace-one, too. Four things differ from the published text. It chooses one coordinate more than it pays for.
    Its noise for a replaced record lacks a factor 2 in the first version. Its epsilon of one choice leaves out a
    term of the strong composition. And its strong composition over steps costs many times more than the exact one.

    **Speed.** With ``optimizer=SGD(momentum=0)``, without average and smoothing, a step visits the
    rows of an Embedding that its batch touches, and the chosen parameters, and no others. Otherwise all
    parameters move in each step. "sparse vector" visits all of them, too. With ``learning_rate="auto"`` a step
    of SGD is longer than without a choice, by 1 over the root of ``fraction``: an entry gets noise in so many
    fewer steps.

    Examples
    --------
    >>> from skdp.nn import SparseSelection
    >>> SparseSelection(0.001, score_clip=0.1, value_clip=1.0).count(100_000)
    100
    """

    fraction: float = 0.01
    method: str = "exponential"
    score_clip: float | None = None
    value_clip: float | None = None
    share: float = 0.25
    threshold: float | None = None

    def __post_init__(self) -> None:
        check_number("fraction", self.fraction, Real, low=0, strict=True, high=1)
        check_choice("method", self.method, METHODS)
        for name in ("score_clip", "value_clip"):
            check_number(name, getattr(self, name), Real, low=0, strict=True, none=True)
            if getattr(self, name) == math.inf:
                raise ValueError(f"{name} must be finite; None is no clip")
        check_number("threshold", self.threshold, Real, none=True)
        if self.method == "sparse vector" and self.threshold is None:
            raise ValueError(
                'method="sparse vector" needs threshold=, above which entries of the mean gradient are found'
            )
        if self.method != "sparse vector" and self.threshold is not None:
            raise ValueError('threshold goes with method="sparse vector" only')
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be a finite number, got {self.threshold!r}")
        _check_share(self.share)

    def count(self, size: int) -> int:
        """Number of coordinates that a step changes, of ``size``."""
        # A product such as 0.29 * 100 must not fall below the integer that it means.
        return max(1, math.floor(self.fraction * size * (1.0 + 1e-12)))

    def engine(self, clipping: Clipping) -> "SelectedMean":
        return SelectedMean(clipping, self)


@dataclass(frozen=True)
class AdaFEST(Selection):
    """Noise on the rows of an embedding that many records touch, and on all other layers.

    All other tokens keep the vectors they start with, and nets with few tokens, or with small batches, lose
    accuracy. A fit warns where only very common tokens can pass.

    Parameters
    ----------
    threshold : float, default=2.0
        A row is changed in a step if the noisy number of records that touch it is at least this many standard
        deviations of the noise. Rows that no record touches pass with the probability of a normal tail.
    share : float, default=0.2
        Part of a step's cost, of the inverse square of the noise multiplier, that the counts take.

    Notes
    -----
    A record counts with 1 for each different token, and its counts are clipped to an l2 norm of 1. The noise
    multipliers s of the counts and z of the gradient together cost as much as one release of multiplier
    (s^-2 + z^-2)^-1/2.

    References
    ----------
    B. Ghazi et al., "Sparsity-preserving differentially private training of large embedding
    models" (NeurIPS 2023).

    Examples
    --------
    >>> from skdp.nn import AdaFEST
    >>> AdaFEST(threshold=3.0)
    AdaFEST(threshold=3.0, share=0.2)
    """

    threshold: float = 2.0
    share: float = 0.2
    needs_table = True

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, Real)
        # Times a standard deviation, it must be a number.
        if not abs(self.threshold) <= LARGEST_THRESHOLD:
            raise ValueError(
                f"threshold must be a number between -{LARGEST_THRESHOLD:g} and {LARGEST_THRESHOLD:g}, got "
                f"{self.threshold!r}"
            )
        _check_share(self.share)

    def engine(self, clipping: Clipping) -> "CountedMean":
        return CountedMean(clipping, self)


@dataclass(frozen=True)
class SelectedMean(NoisyMean):
    """A step's gradient is the mean of clipped gradients, with noise, at chosen coordinates, and 0 elsewhere."""

    select: SparseSelection

    @property
    def scans(self) -> bool:  # type: ignore[override]
        return self.select.method == "sparse vector"

    def releases(self, n_iter: int, batch_size: int, size: int) -> tuple[BatchGroup, ...]:
        if self.select.method == "uniform":
            return (BatchGroup(n_iter, batch_size),)
        return (BatchGroup(n_iter, batch_size, extra=Choices(self.select.count(size), self.select.share)),)

    def noise(self, plans: Sequence[BatchPlan], adjacency: str) -> StepNoise:
        return super().noise(plans, adjacency)._replace(changed=float(self.select.fraction))

    def utility(self, plans: Sequence[BatchPlan], adjacency: str, steps: StepFacts) -> StepFacts:
        (plan,), select, count = plans, self.select, self.select.count(steps.size)
        if count == steps.size or plan.noise_multiplier <= 0:
            return steps
        clip = math.inf if select.score_clip is None else select.score_clip
        looks, noise = select.method != "uniform", 0.0
        if isinstance(plan.extra, Choices):
            moved = self.clipping.together * factor(adjacency) * self.clipping.norm
            noise = 2.0 * min(moved / plan.batch_size, clip) / plan.extra.epsilon
        largest = min(self.clipping.norm / math.sqrt(count), clip)
        return replace(steps, chosen=count, looks=looks, largest=largest, noise=noise)

    def release(
        self, session: PrivacySession, records: PrivateRecords, plan: BatchPlan, touched: TouchedRows | None
    ) -> Release:
        select = self.select
        if select.method != "uniform":
            clips = {"score_clip": select.score_clip, "value_clip": select.value_clip}
            return lambda mean, batch: FewEntries(
                *session.selected_gaussian(mean, plan, threshold=select.threshold, **clips)
            )
        # Public randomness: which coordinates a step changes is no secret.
        rng = np.random.default_rng(session.integers(2**62, 4).tolist())

        def uniform(mean: BoundedStatistic, batch: Batch) -> FewEntries:
            count = select.count(mean.size)
            positions = np.sort(rng.choice(mean.size, count, replace=False, shuffle=False))
            kept = mean.entries(positions, clip=select.value_clip)
            return FewEntries(positions, session.gaussian(kept, plan))

        return uniform


@dataclass(frozen=True)
class CountedMean(NoisyMean):
    """A step's gradient is the mean of clipped gradients, with noise, in the rows that noisy counts choose.

    Units count with 1 for each different row that each of their records touches, clipped to an l2 norm of 1. Which
    rows pass is a release, so it is public from then on.
    """

    select: AdaFEST

    def releases(self, n_iter: int, batch_size: int, size: int) -> tuple[BatchGroup, ...]:
        parts = (self.select.share, 1.0 - self.select.share)
        return (BatchGroup(n_iter, batch_size, parts=parts, purpose="counts and steps"),)

    def utility(self, plans: Sequence[BatchPlan], adjacency: str, steps: StepFacts) -> StepFacts:
        (plan,), n_tokens = plans, steps.n_tokens
        assert n_tokens is not None  # of the table that it is for
        std = plan.noise_multiplier / math.sqrt(self.select.share) * factor(adjacency)
        # A unit of k different tokens counts 1 / sqrt(k) for each.
        wanted = math.ceil(self.select.threshold * std * math.sqrt(n_tokens))
        return replace(steps, wanted=wanted, batch_size=plan.batch_size)

    def release(
        self, session: PrivacySession, records: PrivateRecords, plan: BatchPlan, touched: TouchedRows | None
    ) -> Release:
        assert touched is not None  # of the table that it is for
        counted, added = plan.parts
        # Microbatches are of gradients only.
        way = "one-by-one" if self.clipping.method == "one-by-one" else "materialized"

        def chosen(mean: BoundedStatistic, batch: Batch) -> FewEntries:
            counts = records.gradient_sum(touched.of, 1.0, size=touched.n_table, batch=batch, clipping=way)
            limit = self.select.threshold * session.noise_std(counts, counted)
            positions = touched.entries(session.gaussian_above(counts, counted, limit))
            return FewEntries(positions, session.gaussian(mean.entries(positions), added))

        return chosen
