"""The choice of coordinates of a sum and the noise on these: a Bounded in, positions and values out.

Privacy
-------
Everything happens on the grid of the noise, in integers. Let s be the sup-norm bound of what a unit changes in the
statistic, and S0 the clip of the scores. A score is min(abs(x_j), S0): it changes by at most min(s, S0) in units
of the grid, rounded up. Gumbel noise of scale 2 D / epsilon on integer scores of sensitivity D is a choice of
bounded range epsilon, and the k largest at once are k such choices in sequence (`skdp.privacy.mechanisms`). The
chosen entries of the same integers are clipped and get Gaussian noise: `entries` has the proof. Both are functions
of one batch, and `skdp.privacy.mechanisms.selected_gaussian.cost` has the cost of them together. Coordinates that
no record touched are candidates like all others, and get noise.

With a threshold the coordinates are found by the sparse vector technique (`skdp.privacy.mechanisms`): k rounds,
each of pure epsilon / 2. The log-likelihood ratio of such a round lies in [-epsilon / 2, epsilon / 2], so it is a
choice of bounded range epsilon. Where fewer are found, uniform others are added: post-processing.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.bounded import Bounded, Source
from skdp.privacy.entries import clipped, values_at
from skdp.privacy.mechanisms import Noise, gaussian_grid, sensitivity_factor
from skdp.privacy.mechanisms.selected_gaussian.cost import SelectedGaussian

__all__ = ["Choice", "exact_choice", "selected_gaussian", "selection_grid"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Choice(NamedTuple):
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


def selection_grid(bounded: Bounded, choice: Choice, multiplier: float, adjacency: str) -> tuple[Noise, int]:
    """The noise of the chosen entries, with its grid, and the integer sensitivity of a score.

    Raises
    ------
    ValueError
        If a clip is not > 0, or lies below the grid, or the noise of the sparse vector technique cannot be drawn.
    """
    # A choice is no function of a sum that wrapped around, so the grid must hold all sums.
    whole = replace(bounded._value, usual=None, sparse=None)
    like = Bounded.from_source(
        whole, bounded.shape, l1=bounded.l1, l2=bounded.l2, linf=bounded.linf, adjacency=bounded.adjacency
    )  # fmt: skip
    kept = like.entries(np.arange(choice.size), clip=choice.value_clip)
    drawn_with = gaussian_grid(kept, multiplier, adjacency)
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
    bounded: Bounded, choice: Choice, drawn_with: Noise, sensitivity: int, stream: noise.KeyStream
) -> tuple[Integers, Floats, LedgerRow]:
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
    return positions, noise.add_noise(drawn, values, unit), made.describe()


def exact_choice(source: Source, choice: Choice) -> tuple[Integers, Floats]:
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
    choice: Choice, size: int, support: Integers, scores: Integers, sensitivity: int, unit: float,
    stream: noise.KeyStream,
) -> Integers:  # fmt: skip
    """The chosen coordinates, ascending; the scores are integers at the positions of ``support``."""
    scale = 2.0 * sensitivity / choice.epsilon * (1 + 2.0**-50)
    if choice.threshold is not None:
        limit, width = round(choice.threshold / unit), _vector_scale(choice, sensitivity)
        every = values_at(np.arange(size), support, scores)
        support, _ = noise.numeric_sparse(every, limit, choice.size, (width, width, width), stream)
        # All that were found have the same overwhelming score; the others are uniform.
        scores, scale = np.full(support.size, 2**60, dtype=np.int64), 1.0
    return noise.sparse_top_k(support, scores, size, choice.size, scale, stream)


def _vector_scale(choice: Choice, sensitivity: int) -> float:
    """Scale of the noise of threshold and query: D / s + 2 D / s is half of the bounded range."""
    return 6.0 * sensitivity / choice.epsilon * (1 + 2.0**-50)


def _largest_score(clip: float, unit: float) -> int:
    if not 0 < clip < math.inf:
        raise ValueError(f"score_clip must be finite and > 0, got {clip!r}")
    largest = math.floor(min(clip / unit, 2.0**61))
    if largest < 1:
        raise ValueError(f"score_clip={clip:g} is below the grid of {unit:.3g}: give a larger one")
    return largest
