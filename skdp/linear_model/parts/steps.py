"""Step sizes that need no tuning.

They are computed from released values and public numbers only, so they cost no privacy. A step size from
the worst-case smoothness is 50 times too small on text; distance over gradients (Ivgi, Hinder & Carmon
2023) is not, once the noise, whose size is known, is taken out of both.
"""

import math
from typing import Protocol

import numpy as np

__all__ = [
    "AcceleratedStep",
    "ConstantStep",
    "DistanceOverGradients",
    "StepRule",
    "shrinkage",
    "square",
]

FLOOR = 0.1  # share of the noise's energy that always stays in the sum of squares
LEAST = 0.1  # of shrunk coefficients that stays in any case
POWER = 6  # points are averaged with weights (t + 1)^POWER


class StepRule(Protocol):
    """Turns released gradients into points; knows the noise's size, sees no data."""

    learning_rate: float
    distance: float

    @property
    def next_rate(self) -> float:
        """Step size that the next move would take, before its gradient is known."""

    def move(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> np.ndarray:
        """Return the next point, before it is thresholded."""

    def moved(self, theta: np.ndarray) -> np.ndarray:
        """Take note of the thresholded point; return where the next gradient is taken."""

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""


class ConstantStep:
    """``theta - learning_rate * gradient``, literally; the output is the last iterate."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.distance = 0.0

    @property
    def next_rate(self) -> float:
        """The step size."""
        return self.learning_rate

    def move(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> np.ndarray:
        """Return the next point, before it is thresholded."""
        return theta - self.learning_rate * gradient

    def moved(self, theta: np.ndarray) -> np.ndarray:
        """Take note of the thresholded point; return where the next gradient is taken."""
        return theta

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""
        return last


class DistanceOverGradients:
    """Dual averaging with momentum, step size r_t / sqrt(G_t), and averaging of the points.

    With released gradients g_t whose noise has the known standard deviation sd in d coordinates, and
    w_t = H_s(v_t) the point at which the next gradient is released::

        m_t = beta m_{t-1} + (1 - beta) g_t
        G_t = G_{t-1} + max(|g_t|^2 - 0.9 d sd^2, 0.1 d sd^2)
        v_t = v_{t-1} - (r_{t-1} / sqrt(G_t)) m_t
        r_t = max(r_{t-1}, sqrt(max(|w_t - w_0|^2 - k c_t^2 sd^2, 0)))

    c_t sd is the standard deviation of the noise that each coordinate of v_t has gathered, which is known
    exactly, and k = 2 s log(e d / s) bounds what the s largest of d noises have of it. What was cut off
    stays in v, so that a coordinate may come back. Kept is the average of v_t with weights (t + 1)^6.

    Parameters
    ----------
    start : ndarray
        w_0.
    distance : float
        r_0.
    n_iter : int
        Number of moves.
    n_noisy : int
        Number d of coordinates that carry noise.
    n_kept : int
        Number s of coordinates that thresholding keeps.
    """

    def __init__(
        self, start: np.ndarray, distance: float, n_iter: int, n_noisy: int, n_kept: int
    ) -> None:
        self._start = start
        self._point = start.copy()
        self._velocity = np.zeros_like(start)
        self._momentum = min(0.95, max(0.0, 1 - 10 / n_iter))
        self.distance = distance
        self._squares = 0.0
        self._n_noisy = n_noisy
        largest = 2 * n_kept * math.log(math.e * n_noisy / n_kept) if n_kept < n_noisy else math.inf
        self._n_walking = min(n_noisy, largest)
        self._std = 0.0
        self._fresh = np.zeros(n_iter)  # weight of each gradient's noise in the velocity ...
        self._walked = np.zeros(n_iter)  # ... and in the point
        self._sum = np.zeros_like(start)
        self._weight = 0.0
        self._count = 0
        self.learning_rate = 0.0

    @property
    def next_rate(self) -> float:
        """The last step size, 0 before the first gradient."""
        return self.learning_rate

    def move(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> np.ndarray:
        """Return the next point, before it is thresholded."""
        beta, self._std = self._momentum, noise_std
        energy = self._n_noisy * noise_std**2
        self._squares += max(square(gradient) - (1 - FLOOR) * energy, FLOOR * energy)
        self.learning_rate = self.distance / math.sqrt(self._squares) if self._squares else 0.0
        self._velocity *= beta
        self._velocity += (1 - beta) * gradient
        self._fresh *= beta
        self._fresh[self._count] = 1 - beta
        self._walked += self.learning_rate * self._fresh
        self._point = self._point - self.learning_rate * self._velocity
        self._count += 1
        weight = float(self._count) ** POWER
        self._sum += weight * self._point
        self._weight += weight
        return self._point

    def moved(self, theta: np.ndarray) -> np.ndarray:
        """Take note of the thresholded point; return where the next gradient is taken."""
        noise = self._n_walking * float(np.sum(np.square(self._walked))) * self._std**2
        gone = square(theta - self._start)
        self.distance = max(self.distance, math.sqrt(max(gone - noise, 0.0)))
        return theta

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""
        return self._sum / self._weight if self._weight else last


class AcceleratedStep:
    """Nesterov's momentum on steps of a given size, restarted when it points uphill; for exact gradients.

    The gradient is taken at x_t + b_t (x_t - x_{t-1}), x_t the thresholded points (O'Donoghue & Candes
    2015 give the restart). Noise would make the momentum useless, so only fits without clipping and
    noise use it; the output is the last iterate.
    """

    def __init__(self, learning_rate: float, start: np.ndarray) -> None:
        self.learning_rate = learning_rate
        self.distance = 0.0
        self._last = start
        self._gradient = np.zeros_like(start)
        self._count = 0

    @property
    def next_rate(self) -> float:
        """The step size."""
        return self.learning_rate

    def move(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> np.ndarray:
        """Return the next point, before it is thresholded."""
        self._gradient = gradient
        return theta - self.learning_rate * gradient

    def moved(self, theta: np.ndarray) -> np.ndarray:
        """Take note of the thresholded point; return where the next gradient is taken."""
        change = theta - self._last
        self._last = theta
        self._count = 0 if float(np.sum(self._gradient * change)) > 0 else self._count + 1
        return theta + max(0, self._count - 1) / (self._count + 2) * change

    def output(self, last: np.ndarray) -> np.ndarray:
        """Return the point to keep, before it is thresholded."""
        return self._last


def square(values: np.ndarray) -> float:
    """Squared norm; not by BLAS, whose threads cost more than they save on one vector."""
    flat = values.ravel()
    return float(np.einsum("i,i->", flat, flat))


def shrinkage(values: np.ndarray, noise_std: float) -> float:
    """Factor of James and Stein for values of which each has noise of this standard deviation."""
    energy = square(values)
    return max(LEAST, 1.0 - values.size * noise_std**2 / energy) if energy else 1.0
