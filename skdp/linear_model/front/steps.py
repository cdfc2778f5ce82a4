"""Steps along released gradients, shrunk by what is known of their noise: for both methods of the front door."""

import math
from typing import NamedTuple

import numpy as np

from skdp.linear_model.front.penalty import Weigh
from skdp.linear_model.front.shares import Shares
from skdp.privacy import PrivateRecords

__all__ = [
    "ROW_NORM",
    "Step",
    "largest_rows",
    "posterior_step",
    "released_gram",
    "towards_identity",
]

ROW_NORM = 0.9  # of a row that is not scaled down, over the root mean square norm
FLOOR = 0.5  # of the Gram matrix, over the spectral norm of its noise
LEAST_VALUE = 0.05  # of an eigenvalue of the Gram matrix
CLEARLY = (
    1.2  # times the largest eigenvalue of noise alone: that of a direction which surely has more
)


def released_gram(shares: Shares, rows: PrivateRecords, share: float) -> np.ndarray:
    """Release the Gram matrix of the rows, and lift its eigenvalues above their noise.

    Columns are standardized, so the matrix is shrunk towards the identity first.
    """
    session, p, n = shares.session, rows.n_parameters, rows.n_units
    norm = math.sqrt(ROW_NORM**2 * p - rows.fit_intercept)
    moment = rows.second_moment(norm, 1.0, adjacency=session.adjacency, target_weight=0.0)
    plan = shares.plan(share, "Gram matrix")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n
    shrunk, left = towards_identity(0.5 * (released + released.T), noise)
    values, vectors = np.linalg.eigh(shrunk)
    ridge = FLOOR * left * math.sqrt(2 * p)
    values = np.maximum(values + max(ridge, ridge - values[0]), LEAST_VALUE)
    return np.asarray(vectors * values @ vectors.T)


def towards_identity(gram: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Shrink a Gram matrix of standardized columns towards the identity; return it, and what is left of its noise.

    The noise off the diagonal, where two triangles are averaged, is known: what the entries' mean square exceeds
    it by is their signal. A direction that many columns share shows in one eigenvalue, and hardly in an entry:
    eigenvalues beyond those of noise alone are kept, less what noise adds to them (Capitaine, Donati-Martin and
    Feral 2009). Steps would be too long there otherwise, and grow.
    """
    p = len(gram)
    away = gram - np.eye(p)
    square = float(np.mean(away[~np.eye(p, dtype=bool)] ** 2)) if p > 1 else 0.0
    kept = max(0.0, 1.0 - noise**2 / 2 / max(square, 1e-12))
    values, vectors = np.linalg.eigh(away)
    edge = noise * math.sqrt(2 * p)  # of the eigenvalues of the noise
    surely = 0.5 * (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0)))
    values = np.where(values > CLEARLY * edge, np.maximum(surely, kept * values), kept * values)
    return np.eye(p) + np.asarray(vectors * values @ vectors.T), kept * noise


class Step(NamedTuple):
    """A step, of shape (n_directions, n_outputs), the variance that it left, and the mean of the scale t."""

    mean: np.ndarray
    unknown: np.ndarray
    scale: float


def posterior_step(
    gradient: np.ndarray,
    curvature: np.ndarray,
    noise: float,
    prior: np.ndarray,
    scales: np.ndarray,
    weigh: Weigh,
) -> Step:
    """Posterior mean and variance of the wanted steps b, of which ``curvature * b`` is released with noise.

    The prior of b is normal with variance t times ``prior``; t is one of ``scales``.

    Parameters
    ----------
    gradient, curvature, prior : ndarray of shape (n_directions, n_outputs)
    noise : float
        Standard deviation of the gradient's noise.
    scales : ndarray of shape (n_scales,)
    weigh : callable
        Gives the scales their weights: one of `skdp.linear_model.front.penalty`.
    """
    signal, noise = curvature**2 * prior, max(noise, 1e-12)
    signals = signal * scales[:, None, None]
    spread = signals + noise**2  # of the gradient, for every scale
    likelihood = weigh(gradient, curvature, noise, signals)
    weight = np.exp(likelihood - likelihood.max())
    share = weight / weight.sum()
    weight = (share * scales)[:, None, None]
    mean = (weight * prior * curvature / spread).sum(axis=0) * gradient
    unknown = (weight * prior * noise**2 / spread).sum(axis=0)
    return Step(mean, unknown, float(share @ scales))


def largest_rows(theta: np.ndarray, count: int | None) -> np.ndarray:
    """Numbers of the rows of largest norm, sorted; all of them for None."""
    size = np.abs(theta) if theta.ndim == 1 else np.linalg.norm(theta, axis=1)
    if count is None or count >= size.size:
        return np.arange(size.size)
    return np.sort(np.argsort(-size, kind="stable")[:count])
