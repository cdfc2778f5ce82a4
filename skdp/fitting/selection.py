"""Noise on a few chosen coordinates of a step's gradient: sparse selection and DP-AdaFEST.

A step of sparse selection chooses k coordinates of the mean of clipped gradients and adds noise to these alone.
`SparseSelection` says where the published algorithm errs. DP-AdaFEST (Ghazi et al. 2023) chooses rows of an
embedding by noisy counts of the records that touch them. Both choose among all coordinates, also those that no
record of the batch touched: else the support of a step would tell words.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.base import check_choice, check_number
from skdp.base.plan import Advice
from skdp.exceptions import UtilityWarning
from skdp.fitting.clipped_mean import ClippedMean, Clipping, Release, TouchedRows
from skdp.fitting.optimizers import FewEntries
from skdp.privacy import Batch, BatchGroup, BatchPart, BatchPlan, Bounded, PrivacySession, PrivateRecords, factor

__all__ = ["AdaFEST", "SelectedMean", "SparseSelection", "advice_on_choice", "advice_on_counts"]

METHODS = ("exponential", "sparse vector", "uniform")
COMMON = 0.1  # part of the records of a batch above which a token is very common; a choice, not tuned
LARGEST_THRESHOLD = 1e9  # of DP-AdaFEST, in standard deviations


def _check_share(share: float) -> None:
    check_number("share", share, Real, low=0, strict=True)
    if share >= 1:
        raise ValueError(f"share must be in (0, 1), got {share!r}")


@dataclass(frozen=True)
class SparseSelection:
    """Noise on floor(fraction p) of the p parameters, at least one, which each step chooses anew.

    **It lowers the accuracy of ordinary nets**, often to that of guessing. It is for nets with a wide `Embedding`,
    and for comparisons with the paper. Fits that are likely to lose by it warn.

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


@dataclass(frozen=True)
class AdaFEST:
    """Noise on the rows of an embedding that many records touch, and on all other layers.

    All other tokens keep the vectors they start with. So nets with few tokens, or with small batches, lose
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
    multipliers s of the counts and z of the gradient together cost as much as one release of multiplier (s^-2 +
    z^-2)^-1/2.

    References
    ----------
    B. Ghazi et al., "Sparsity-preserving differentially private training of large embedding models" (NeurIPS
    2023).

    Examples
    --------
    >>> from skdp.nn import AdaFEST
    >>> AdaFEST(threshold=3.0)
    AdaFEST(threshold=3.0, share=0.2)
    """

    threshold: float = 2.0
    share: float = 0.2

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, Real)
        # Times a standard deviation, it must be a number.
        if not abs(self.threshold) <= LARGEST_THRESHOLD:
            raise ValueError(
                f"threshold must be a number between -{LARGEST_THRESHOLD:g} and {LARGEST_THRESHOLD:g}, got "
                f"{self.threshold!r}"
            )
        _check_share(self.share)


@dataclass(frozen=True)
class SelectedMean(ClippedMean):
    """A step's gradient is the mean of clipped gradients, with noise, at chosen coordinates, and 0 elsewhere.

    Attributes
    ----------
    clipping : Clipping
    select : SparseSelection or AdaFEST
    """

    clipping: Clipping
    select: SparseSelection | AdaFEST

    @property
    def scans(self) -> bool:
        return isinstance(self.select, SparseSelection) and self.select.method == "sparse vector"

    @property
    def changed(self) -> float:
        return float(self.select.fraction) if isinstance(self.select, SparseSelection) else 1.0

    def group(self, n_iter: int, batch_size: int, n_projections: int = 0, size: int = 0) -> BatchGroup:
        select = self.select
        if isinstance(select, AdaFEST):
            parts = (select.share, 1.0 - select.share)
            return BatchGroup(n_iter, batch_size, parts=parts, purpose="counts and steps")
        if select.method == "uniform":
            return BatchGroup(n_iter, batch_size)
        choices = select.count(size)
        return BatchGroup(n_iter, batch_size, choices=choices, choice_share=select.share)

    def advice(
        self, plans: Sequence[BatchPlan], adjacency: str, size: int, n_tokens: int | None
    ) -> Iterable[Advice]:
        (plan,) = plans
        if isinstance(self.select, AdaFEST):
            assert n_tokens is not None  # of the table that it is for
            return advice_on_counts(self.select, plan, n_tokens, factor(adjacency), "token", "record")
        moved, norm = self.clipping.together * factor(adjacency), self.clipping.norm
        plain = n_tokens is None
        return advice_on_choice(self.select, plan, size, moved * norm, norm, "parameters", plain)

    def release(
        self, session: PrivacySession, records: PrivateRecords, plan: BatchPlan, touched: TouchedRows | None
    ) -> Release:
        if isinstance(self.select, AdaFEST):
            assert touched is not None  # of the table that it is for
            return by_counts(self.select, self.clipping, session, records, plan, touched)
        return selected_by(self.select, session, plan)


def selected_by(select: SparseSelection, session: PrivacySession, plan: BatchPlan) -> Release:
    """A function of a mean and its batch that releases positions and values, by sparse selection."""
    if select.method != "uniform":
        clips = {"score_clip": select.score_clip, "value_clip": select.value_clip, "threshold": select.threshold}
        return lambda mean, batch: FewEntries(*session.selected_gaussian(mean, plan, **clips))
    # Public randomness: which coordinates a step changes is no secret.
    rng = np.random.default_rng(session.integers(2**62, 4).tolist())

    def uniform(mean: Bounded, batch: Batch) -> FewEntries:
        count = select.count(mean.size)
        positions = np.sort(rng.choice(mean.size, count, replace=False, shuffle=False))
        kept = mean.entries(positions, clip=select.value_clip)
        return FewEntries(positions, session.gaussian(kept, plan))

    return uniform


def advice_on_choice(
    select: SparseSelection, plan: BatchPlan, size: int, moved: float, norm: float,
    what: str, plain: bool = False,
) -> Iterator[Advice]:  # fmt: skip
    """Warn where the choice can hardly be better than chance, or where nets have lost by it.

    Parameters
    ----------
    size : int
        Number of parameters.
    moved : float
        The most that one unit changes the sum of a batch.
    norm : float
        Clip norm.
    what : str
        What the parameters are called.
    plain : bool, default=False
        Whether they are those of a net without an Embedding.
    """
    count = select.count(size)
    if count == size or plan.noise_multiplier <= 0:
        return
    reason = ""
    if plain:
        reason = "nets without an Embedding learnt less with it than without"
    elif select.method == "uniform":
        reason = 'method="uniform" does not look for the ones that matter'
    else:
        # The largest that all chosen entries can be at once, and the noise that they must exceed.
        clip = math.inf if select.score_clip is None else select.score_clip
        largest = min(norm / math.sqrt(count), clip)
        noise = 2.0 * min(moved / plan.batch_size, clip) / plan.choice_epsilon
        if largest < noise * math.log(size / count):
            reason = "the noise of the choice is so large that the choice is nearly random"
    if reason:
        yield Advice(
            f"gradient_estimator=SparseSelection changes {count} of {size} {what} in a step, and {reason}: leave "
            "it out, or compare both on public data",
            UtilityWarning,
        )


def advice_on_counts(
    select: AdaFEST, plan: BatchPlan, n_tokens: int, moved: float, token: str, unit: str
) -> Iterator[Advice]:
    """Warn where only very common tokens can pass the threshold.

    Parameters
    ----------
    n_tokens : int
        How many different tokens a unit has, at most, or a number below that.
    moved : float
        The most that one unit changes the counts of a batch, of norm 1 each.
    token, unit : str
        What these are called.
    """
    std = plan.noise_multiplier / math.sqrt(select.share) * moved
    # A unit of k different tokens counts 1 / sqrt(k) for each.
    wanted = math.ceil(select.threshold * std * math.sqrt(n_tokens))
    if wanted > COMMON * plan.batch_size:
        yield Advice(
            f"gradient_estimator=AdaFEST changes the vector of a {token} only where about {wanted} {unit}s of a "
            f"batch have it (for {n_tokens} different {token}s in each), and a batch has {plan.batch_size}: give "
            "a smaller threshold, such as 0, or a larger batch_size, or leave it out",
            UtilityWarning,
        )


def by_counts(
    select: AdaFEST, clipping: Clipping, session: PrivacySession, records: PrivateRecords,
    plan: BatchPlan, touched: TouchedRows,
) -> Release:  # fmt: skip
    """A function of a mean and its batch that releases positions and values, by the counts of touched rows.

    Units count with 1 for each different row that each of their records touches, clipped to an l2 norm of 1. Which
    rows pass is a release, so it is public from then on.
    """
    counted, added = plan.parts

    def chosen(mean: Bounded, batch: Batch) -> FewEntries:
        counts = records.gradient_sum(touched.of, 1.0, size=touched.n_table, batch=batch, **_one_by_one(clipping))
        positions = touched.entries(kept_rows(select, session, counts, counted))
        return FewEntries(positions, session.gaussian(mean.entries(positions), added))

    return chosen


def kept_rows(select: AdaFEST, session: PrivacySession, counts: Bounded, counted: BatchPart) -> NDArray[np.int64]:
    """Rows whose noisy counts reach the threshold: the release of the counts."""
    limit = select.threshold * session.noise_std(counts, counted)
    return session.gaussian_above(counts, counted, limit)


def _one_by_one(clipping: Clipping) -> dict[str, Any]:
    """How counts are clipped: microbatches are of gradients only."""
    return {"clipping": "one-by-one"} if clipping.method == "one-by-one" else {}
