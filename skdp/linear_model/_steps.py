"""Step sizes that need no tuning, and the private clip norm.

Step sizes are computed from released values and public numbers only, so they cost no privacy. A step
size from the worst-case smoothness is 50 times too small on text; distance over gradients (Ivgi, Hinder
& Carmon 2023) is not, once the noise, whose size is known, is taken out of both.
"""

import math
from typing import Any, Protocol

import numpy as np

from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["ConstantStep", "DistanceOverGradients", "StepRule", "released_clip_norm", "square"]

_EDGES = 2.0 ** np.arange(-30.0, 30.5, 0.5)  # public grid of candidate clip norms


class StepRule(Protocol):
    """Turns released gradients into points; knows the noise's size, sees no data."""

    learning_rate: float

    @property
    def next_rate(self) -> float:
        """Step size that the next move would take, before its gradient is known."""

    def move(
        self, theta: np.ndarray, gradient: np.ndarray, noise_std: float, n_noisy: int
    ) -> np.ndarray:
        """Return the next point, before it is thresholded.

        ``n_noisy`` rows of the gradient carry noise of standard deviation ``noise_std``.
        """

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""


class ConstantStep:
    """``theta - learning_rate * gradient``, literally; the output is the last iterate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    @property
    def next_rate(self) -> float:
        """The step size."""
        return self.learning_rate

    def move(
        self, theta: np.ndarray, gradient: np.ndarray, noise_std: float, n_noisy: int
    ) -> np.ndarray:
        """Return the next point, before it is thresholded."""
        return theta - self.learning_rate * gradient

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""
        return last


class DistanceOverGradients:
    """Dual averaging with momentum, step size eta_t = r_t / sqrt(G_t), and averaging of the points.

    With released gradients g_t whose noise has the known standard deviation sd in d coordinates::

        m_t = beta m_{t-1} + (1 - beta) g_t
        G_t = G_{t-1} + max(|g_t|^2 - 0.9 d sd^2, 0.1 d sd^2)
        v_t = v_{t-1} - (r_t / sqrt(G_t)) m_t
        r_t = max_i sqrt(max(|v_i - v_0|^2 - N_i, 0)), r_0 = 4 / clip_norm

    N_i is the expected squared length of what the noise alone has added to v_i; both corrections only
    take out what is known to be noise. Gradients are taken at the thresholded point, but what was cut
    off stays in v, so that a coordinate may come back. Kept is the average of v_t with weights
    r_t (t + 1).
    """

    momentum = 0.9
    floor = 0.1

    def __init__(self, start: np.ndarray, clip_norm: float, n_iter: int) -> None:
        self._start = start
        self._point = start.copy()
        self._velocity = np.zeros_like(start)
        self._bound = clip_norm if math.isfinite(clip_norm) else 1.0
        self._distance = 4.0 / self._bound
        self._squares = 0.0
        self._fresh = np.zeros(n_iter)  # weight of each gradient's noise in the velocity ...
        self._walked = np.zeros(n_iter)  # ... and in the point
        self._sum = np.zeros_like(start)
        self._weight = 0.0
        self._count = 0
        self.learning_rate = 0.0

    @property
    def next_rate(self) -> float:
        """The last step size; before the first step, one that moves by the first distance at most."""
        return self.learning_rate or self._distance / self._bound

    def move(
        self, theta: np.ndarray, gradient: np.ndarray, noise_std: float, n_noisy: int
    ) -> np.ndarray:
        """Return the next point, before it is thresholded."""
        beta = self.momentum
        noise = n_noisy * (gradient.size // len(gradient)) * noise_std**2
        self._velocity *= beta
        self._velocity += (1 - beta) * gradient
        self._fresh *= beta
        self._fresh[self._count] = 1 - beta
        self._squares += max(square(gradient) - (1 - self.floor) * noise, self.floor * noise)
        if self._squares == 0:
            return self._point
        self.learning_rate = self._distance / math.sqrt(self._squares)
        self._point = self._point - self.learning_rate * self._velocity
        self._walked += self.learning_rate * self._fresh
        known = noise * float(np.sum(np.square(self._walked)))
        gone = square(self._point - self._start)
        self._distance = max(self._distance, math.sqrt(max(gone - known, 0.0)))
        self._count += 1
        weight = self._distance * self._count
        self._sum += weight * self._point
        self._weight += weight
        return self._point

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""
        return self._sum / self._weight if self._weight else last


def square(values: np.ndarray) -> float:
    """Squared norm; not by BLAS, whose threads cost more than they save on one vector."""
    flat = values.ravel()
    return float(np.einsum("i,i->", flat, flat))


def released_clip_norm(
    session: PrivacySession, records: PrivateRecords, loss: Any, theta: np.ndarray, share: float
) -> float:
    """Release the median of the units' gradient norms at ``theta``, from one noisy histogram.

    Every unit adds 1 to one bin of a public grid of half octaves. The median is the first grid point at
    which the noisy cumulative count reaches half of the public number of units.
    """
    histogram = records.gradient_norm_histogram(loss, theta, _EDGES)
    plan = session.plan_gaussian(1, share, purpose="clip norm")
    below = np.cumsum(session.gaussian(histogram, plan))[: _EDGES.size]
    reached = below >= 0.5 * records.n_units
    return float(_EDGES[np.argmax(reached)] if reached.any() else _EDGES[-1])
