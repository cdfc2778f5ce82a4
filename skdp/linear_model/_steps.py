"""Step sizes and outputs that need no tuning and cost no privacy: they use released values only.

Distance over gradients, corrected for the noise whose size is known (Ivgi, Hinder & Carmon 2023 give the
rule without noise). A step size from the worst-case smoothness is 50 times too small on text.
"""

import math
from typing import Any

import numpy as np

from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["ConstantStep", "DistanceOverGradients", "released_clip_norm"]

_EDGES = 2.0 ** np.arange(-30.0, 30.25, 0.25)  # public grid of candidate clip norms


class ConstantStep:
    """The step size that the user gave, honoured literally; the output is the last iterate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def step(self, gradient: np.ndarray, noise_std: float) -> float:
        """Return the step size for a released gradient."""
        return self.learning_rate

    def moved(self, theta: np.ndarray, noisy: int) -> None:
        """Take note of a new iterate."""

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the iterate to keep, before its last thresholding."""
        return last


class DistanceOverGradients:
    """eta_t = r_t / sqrt(G_t) from released gradients and iterates.

    G_t sums ``max(|g|^2 - 0.9 d sd^2, 0.1 d sd^2)``, r_t is the largest distance from the start less
    what the noise alone has walked, r_0 = 2 / clip_norm.
    """

    def __init__(self, start: np.ndarray, clip_norm: float) -> None:
        self._start = start
        self._distance = 2.0 / clip_norm if math.isfinite(clip_norm) else 1.0
        self._squares = 0.0
        self._walked = 0.0
        self._std = 0.0
        self._sum = np.zeros_like(start)
        self._weight = 0.0
        self._count = 0
        self.learning_rate = 0.0

    def step(self, gradient: np.ndarray, noise_std: float) -> float:
        """Return the step size for a released gradient."""
        self._std = noise_std
        noise = gradient.size * noise_std**2
        square = float(np.vdot(gradient, gradient))
        self._squares += max(square - 0.9 * noise, 0.1 * noise)
        self.learning_rate = self._distance / math.sqrt(self._squares) if self._squares else 0.0
        return self.learning_rate

    def moved(self, theta: np.ndarray, noisy: int) -> None:
        """Take note of a new iterate that keeps ``noisy`` noisy coordinates."""
        self._walked += (self.learning_rate * self._std) ** 2 * noisy
        gone = theta - self._start
        square = float(np.vdot(gone, gone))
        self._distance = max(self._distance, math.sqrt(max(square - self._walked, 0.0)))
        self._count += 1
        weight = self._distance * self._count
        self._sum += weight * theta
        self._weight += weight

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the iterate to keep, before its last thresholding."""
        return self._sum / self._weight if self._weight else last


def released_clip_norm(
    session: PrivacySession, records: PrivateRecords, loss: Any, theta: np.ndarray, share: float
) -> float:
    """Release the median of the records' gradient norms at the start, from a noisy histogram.

    Every record adds 1 to one bin of a public grid. The median is the first grid point at which the
    noisy cumulative count reaches half of all; counting is exact up to the noise.
    """
    histogram = records.gradient_norm_histogram(loss, theta, _EDGES)
    plan = session.plan_gaussian(1, share, purpose="clip norm") if not session.exact else None
    counts = session.gaussian(histogram, plan or session.plan_gaussian(1, purpose="clip norm"))
    below = np.cumsum(counts)[: _EDGES.size] >= 0.5 * records.n_units
    return float(_EDGES[np.argmax(below)] if below.any() else _EDGES[-1])


