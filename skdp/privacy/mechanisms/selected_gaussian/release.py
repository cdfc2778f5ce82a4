"""The choice of coordinates of a batch's sum and the noise on these, as one release of a session.

Privacy
-------
Everything happens on the grid of the noise, in integers. Let s be the sup-norm bound of a unit's change to the
statistic, and S0 the clip of the scores. A score is min(abs(x_j), S0): it changes by at most min(s, S0) in units
of the grid, rounded up. Gumbel noise of scale 2 D / epsilon on integer scores of sensitivity D is a choice of
bounded range epsilon, and the k largest at once are k such choices in sequence (`skdp.privacy.mechanisms.top_k`).
The chosen entries of the same integers are clipped and get Gaussian noise: `entries` has the proof. Both are
functions of one batch, and `selected_gaussian.cost` has the cost of them together. Coordinates that no record
touched are candidates like all others, and get noise.

With a threshold the coordinates are found by the sparse vector technique
(`skdp.privacy.mechanisms.sparse_vector`): k rounds, each of pure epsilon / 2. The log-likelihood ratio of such a
round lies in [-epsilon / 2, epsilon / 2], so it is a choice of bounded range epsilon. Where fewer are found,
uniform others are added: post-processing.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.accounting.text import ACCOUNTANTS
from skdp.privacy.batches import BatchExtra, BatchPlan
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.entries import clipped, values_at
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian.release import GaussianReleases
from skdp.privacy.mechanisms.grid import Noise, sensitivity_factor
from skdp.privacy.mechanisms.selected_gaussian.cost import SelectedGaussian, check_choices
from skdp.privacy.mechanisms.selected_gaussian.noise import sparse_top_k
from skdp.privacy.mechanisms.sparse_vector.noise import numeric_sparse

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Entries = tuple[Integers, Floats]  # positions and values


@dataclass(frozen=True)
class Choices(BatchExtra):
    """Each release chooses a few coordinates of a batch's statistic and adds noise to these alone.

    `PrivacySession.selected_gaussian` releases them. It needs zero-out or add-remove.

    Parameters
    ----------
    choices : int
        Number of coordinates.
    share : float, default=0.25
        Part of a batch's cost, in zero-concentrated DP, that the choices take; in (0, 1).
    epsilon : float, default=inf
        Bounded range of one choice. A plan has it; in a `BatchGroup` it counts for nothing.

    Examples
    --------
    >>> from skdp.privacy import BatchGroup, Choices, PrivacySession
    >>> session = PrivacySession(epsilon=3.0, delta=1e-5, adjacency="zero-out", minibatches=True)
    >>> (plan,) = session.plan_batches([BatchGroup(1, 50, extra=Choices(5))], n_units=200)
    >>> 0 < plan.extra.epsilon < 1
    True
    """

    name: ClassVar[str] = SelectedGaussian.name
    method: ClassVar[str] = "selected_gaussian"
    accountant: ClassVar[str] = ACCOUNTANTS["selected"]

    choices: int
    share: float = 0.25
    epsilon: float = math.inf

    @property
    def odds(self) -> float:
        """Bounded range of one choice times the noise multiplier."""
        return 2.0 * math.sqrt(self.share / (1.0 - self.share) / self.choices)

    def unit_release(self, releases: int, sampling: str, rate: float) -> SelectedGaussian:
        return SelectedGaussian(
            noise_multiplier=1.0, choices=self.choices, choice_epsilon=self.odds,
            count=releases, sampling=sampling, sampling_rate=rate,
        )  # fmt: skip

    def checked(self, adjacency: str, n_statistics: int, *, exact: bool) -> "Choices":
        if not 0.0 < self.share < 1.0:
            raise ValueError(f"share of Choices must be in (0, 1), got {self.share!r}")
        choices, _ = check_choices(self.choices, 1.0)
        if adjacency == "replace-one" and not exact:
            raise UnsupportedAccounting(
                "choices and noise on one sampled batch have a proof under zero-out and add-remove only: use "
                "adjacency='zero-out', or SparseSelection(method='uniform')"
            )
        if n_statistics > 1:
            raise UnsupportedAccounting(
                "a choice of coordinates has no proof beside other statistics of its batch"
            )
        return Choices(choices, float(self.share))

    def planned(self, noise_multiplier: float) -> "Choices":
        """With the bounded range of one choice, rounded down."""
        epsilon = self.odds / noise_multiplier * (1.0 - 2.0**-40) if noise_multiplier else math.inf
        return replace(self, epsilon=epsilon)

    def describe(self) -> LedgerRow:
        return {"choices": self.choices, "choice_epsilon": self.epsilon}

    def check_size(self, size: int) -> None:
        if self.choices > size:
            raise ValueError(f"{self.choices} of {size} values cannot be chosen: choose fewer")

    def numerical_error(self, plan: BatchPlan, size: int, delta: float, *, scans: bool) -> tuple[float, float]:
        found = noise.numeric_sparse_numerical_error(size, self.choices, 1, self.epsilon) if scans else (0.0, 0.0)
        drawn = noise.gaussian_numerical_error(self.choices, plan.noise_multiplier)
        chosen = noise.selection_numerical_error(self.choices, size, self.epsilon)
        return found[0] + drawn[0] + chosen[0], found[1] + drawn[1] + chosen[1]


class SelectedReleases(GaussianReleases):
    """Releases of a few coordinates that are chosen privately."""

    def selected_gaussian(
        self,
        bounded: BoundedStatistic,
        plan: BatchPlan,
        *,
        score_clip: float | None = None,
        value_clip: float | None = None,
        threshold: float | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Choose ``plan.extra.choices`` coordinates privately and release these entries with Gaussian noise.

        Coordinates are chosen by their absolute values, by Gumbel noise. The choice and the noise are one release
        on one batch. All coordinates are candidates, also those that no record touched. With `Source.sparse` these
        are not visited.

        Parameters
        ----------
        bounded : BoundedStatistic
            A statistic of a batch of this plan, fresh and not used, with finite bounds.
        plan : BatchPlan
            Of this session, made of a `BatchGroup` with `Choices`, with a release left.
        score_clip : float, default=None
            Largest absolute value that counts in the choice; public, in units of the statistic. A smaller one
            needs less noise and tells large entries less well apart.
        value_clip : float, default=None
            Largest l2 norm of the chosen entries; public. None leaves them as they are.
        threshold : float, default=None
            Public, in units of the statistic. If given, coordinates whose absolute value is above it are found by
            the sparse vector technique instead, in a random order, and uniform others make up the number. It looks
            at every coordinate.

        Returns
        -------
        positions : ndarray of shape (n_choices,), dtype int64
            Ascending positions in the flattened statistic.
        values : ndarray of shape (n_choices,), dtype float64
            These entries with noise.

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan holds no further release. Nothing was drawn or released.
        UnsupportedAccounting
            If the statistic or the plan is of another kind.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp.privacy import BatchGroup, Choices, PrivateRecords, PrivacySession
        >>> records = PrivateRecords(np.random.default_rng(0).uniform(size=(200, 50)))
        >>> session = PrivacySession(epsilon=3.0, delta=1e-5, adjacency="zero-out", minibatches=True)
        >>> (plan,) = session.plan_batches([BatchGroup(1, 50, extra=Choices(5))], n_units=200)
        >>> batch = session.draw(plan, records)
        >>> total = records.clipped_sum(lambda X, y: X, 1.0, size=50, batch=batch)
        >>> positions, values = session.selected_gaussian(total * (1 / plan.batch_size), plan)
        >>> positions.size, values.size
        (5, 5)
        """
        with self._lock:
            one, ledger, extra = self._checked(bounded, plan, Choices.method), self._ledger, plan.extra
            assert isinstance(extra, Choices)
            extra.check_size(bounded.size)
            choice = Selection(extra.choices, extra.epsilon, score_clip, value_clip, threshold)
            if ledger.exact:
                self._use(*one)
                return exact_choice(bounded._value, choice)
            noisy = selection_grid(bounded, choice, plan.noise_multiplier, ledger.adjacency)
            error = extra.numerical_error(plan, bounded.size, ledger.delta, scans=threshold is not None)
            return self._draw_planned(plan, one, partial(selected_gaussian, bounded, choice, *noisy), error)


class Selection(NamedTuple):
    """Public numbers of one choice and its noise.

    Attributes
    ----------
    size : int
        Number of chosen coordinates.
    epsilon : float
        Bounded range of one of them.
    score_clip, value_clip : float or None
        Largest score, and largest l2 norm of the chosen entries.
    threshold : float or None
        Of the sparse vector technique; None chooses by Gumbel noise.
    """

    size: int
    epsilon: float
    score_clip: float | None
    value_clip: float | None
    threshold: float | None = None


def selection_grid(
    bounded: BoundedStatistic, choice: Selection, multiplier: float, adjacency: str
) -> tuple[Noise, int]:
    """The noise of the chosen entries, with its grid, and the integer sensitivity of a score.

    Raises
    ------
    ValueError
        If a clip is not > 0, or lies below the grid, or the noise of the sparse vector technique cannot be drawn.
    """
    # A choice is no function of a sum that wrapped around, so the grid must hold all sums.
    whole = replace(bounded._value, usual=None, sparse=None)
    like = BoundedStatistic.from_source(
        whole, bounded.shape, l1=bounded.l1, l2=bounded.l2, linf=bounded.linf, adjacency=bounded.adjacency
    )  # fmt: skip
    kept = like.entries(np.arange(choice.size), clip=choice.value_clip)
    drawn_with = grid.gaussian_grid(kept, multiplier, adjacency)
    moved = sensitivity_factor(bounded, adjacency) * bounded.linf
    sensitivity = math.floor(moved / drawn_with.unit) + 1 + bounded._value.roundings
    if choice.score_clip is not None:
        sensitivity = min(sensitivity, _largest_score(choice.score_clip, drawn_with.unit))
    if choice.threshold is not None:
        low, high = noise.SCALE_RANGE
        scale = _vector_scale(choice, sensitivity)
        if not (low <= scale <= high and abs(choice.threshold) < 2.0**60 * drawn_with.unit):
            raise ValueError(
                f"noise of {scale:.3g} units around a threshold of {choice.threshold:g} cannot be drawn; choose "
                "fewer coordinates, a smaller score_clip or another threshold"
            )
    return drawn_with, sensitivity


def selected_gaussian(
    bounded: BoundedStatistic, choice: Selection, drawn_with: Noise, sensitivity: int, stream: noise.KeyStream
) -> tuple[Entries, LedgerRow]:
    """Choose coordinates by large absolute values and release these entries with Gaussian noise.

    Returns
    -------
    positions : ndarray of int64 of shape (size,)
        Ascending.
    values : ndarray of float64 of shape (size,)
    ledger_row : dict
    """
    unit, sigma, total = drawn_with
    support, integers = bounded._value.support(unit)
    scores = np.abs(integers)
    if choice.score_clip is not None:
        scores = np.minimum(scores, _largest_score(choice.score_clip, unit))
    positions = _chosen(choice, bounded.size, support, scores, sensitivity, unit, stream)
    values = values_at(positions, support, integers)
    if choice.value_clip is not None:
        values = clipped(values, choice.value_clip / unit)
    drawn = noise.rounded_gaussian(sigma, choice.size, stream)
    made = SelectedGaussian(
        noise_multiplier=sigma * unit / total, choices=choice.size, choice_epsilon=choice.epsilon,
        sensitivity=total, noise_std=sigma * unit, grid=unit,
    )  # fmt: skip
    return (positions, noise.add_noise(drawn, values, unit)), made.describe()


def exact_choice(source: Source, choice: Selection) -> tuple[Integers, Floats]:
    """The same without noise: ties go to the lowest position."""
    values = source.plain().ravel()
    scores = np.abs(values)
    if choice.score_clip is not None:
        scores = np.minimum(scores, choice.score_clip)
    positions = np.sort(np.argsort(-scores, kind="stable")[: choice.size]).astype(np.int64)
    kept = values[positions]
    norm = math.sqrt(float(np.sum(np.square(kept))))
    if choice.value_clip is not None and norm > choice.value_clip:
        kept = kept * (choice.value_clip / norm)
    return positions, kept


def _chosen(
    choice: Selection, size: int, support: Integers, scores: Integers, sensitivity: int, unit: float,
    stream: noise.KeyStream,
) -> Integers:  # fmt: skip
    """The chosen coordinates, ascending; the scores are integers at the positions of ``support``."""
    scale = 2.0 * sensitivity / choice.epsilon * (1 + 2.0**-50)
    if choice.threshold is not None:
        limit, width = round(choice.threshold / unit), _vector_scale(choice, sensitivity)
        every = values_at(np.arange(size), support, scores)
        support, _ = numeric_sparse(every, limit, choice.size, (width, width, width), stream)
        # All that were found have the same overwhelming score; the others are uniform.
        scores, scale = np.full(support.size, 2**60, dtype=np.int64), 1.0
    return sparse_top_k(support, scores, size, choice.size, scale, stream)


def _vector_scale(choice: Selection, sensitivity: int) -> float:
    """Scale of the noise of threshold and query: D / s + 2 D / s is half of the bounded range."""
    return 6.0 * sensitivity / choice.epsilon * (1 + 2.0**-50)


def _largest_score(clip: float, unit: float) -> int:
    if not 0 < clip < math.inf:
        raise ValueError(f"score_clip must be finite and > 0, got {clip!r}")
    largest = math.floor(min(clip / unit, 2.0**61))
    if largest < 1:
        raise ValueError(f"score_clip={clip:g} is below the grid of {unit:.3g}: give a larger one")
    return largest
