"""Weights of the strengths of the shrinkage: the evidence, or the evidence and Stein's risk (``C="auto"``).

A step is the mean of shrunk steps, one for each variance that a normal prior may have. Both rules read released
gradients and their known noise only, so the releases of a fit are the same whatever C is.

The risk alone is not taken: with few features an estimate of it says little, and more tables lost by it
(``examples/penalty_choice.py --evidence 0 --temperature 2``). Together they gain little, and lose hardly anything.
"""

from collections.abc import Callable

import numpy as np

from skdp.linear_model.auto.defaults import DEFAULTS

# (gradient, curvature, noise, signals) -> logarithms of the weights, of shape (n_scales,). ``signals`` are prior
# variances of the gradient without its noise, of shape (n_scales, n_directions, n_outputs).
Noise = float | np.ndarray  # of all entries of a gradient, or of each direction, of shape (n_directions, 1)
Weigh = Callable[[np.ndarray, np.ndarray, Noise, np.ndarray], np.ndarray]


def weighing(automatic: bool) -> Weigh:
    """The rule of ``C="auto"``, or the rule of a given C."""
    return evidence_and_risk if automatic else evidence


def evidence(gradient: np.ndarray, curvature: np.ndarray, noise: Noise, signals: np.ndarray) -> np.ndarray:
    """Logarithm of the marginal likelihood of each scale, but for a constant."""
    spread = signals + noise**2
    return np.asarray(-0.5 * (np.log(spread) + gradient**2 / spread).sum(axis=(1, 2)))


def evidence_and_risk(
    gradient: np.ndarray, curvature: np.ndarray, noise: Noise, signals: np.ndarray
) -> np.ndarray:
    """The root of the evidence, times exp(-risk / temperature) with Stein's risk of each scale."""
    defaults = DEFAULTS.penalty
    risk = stein_risk(gradient, curvature, noise, signals / (signals + noise**2))
    of_a_direction = float(np.mean(np.square(noise))) * float(np.mean(1.0 / curvature))
    known = evidence(gradient, curvature, noise, signals)
    return np.asarray(defaults.evidence_power * known - risk / (defaults.temperature * of_a_direction))


def stein_risk(gradient: np.ndarray, curvature: np.ndarray, noise: Noise, kept: np.ndarray) -> np.ndarray:
    """Unbiased estimate of twice the loss above its minimum, after a step ``kept * gradient / curvature``.

    Parameters
    ----------
    gradient, curvature : ndarray of shape (n_directions, n_outputs)
    noise : float or ndarray of shape (n_directions, 1)
        Standard deviation of the gradient's entries.
    kept : ndarray of shape (..., n_directions, n_outputs)
        Factors that do not depend on the gradient.

    Returns
    -------
    ndarray of shape (...)

    Notes
    -----
    Along the eigenvectors of the curvature (for numbers of the Gram matrix G, for classes of G times the
    covariance of the classes) the quadratic model of the loss is the sum of h_j (x_j - b_j)^2 / 2, x the step. Of
    the wanted step b is released g_j = h_j b_j + e_j, e_j normal with variance s^2. A step x_j = k_j g_j / h_j has

        E h_j (x_j - b_j)^2 = ((1 - k_j)^2 (h_j b_j)^2 + k_j^2 s^2) / h_j .

    E g_j^2 = (h_j b_j)^2 + s^2, so that the sum over j of

        ((1 - k_j)^2 (g_j^2 - s^2) + k_j^2 s^2) / h_j = ((1 - k_j)^2 g_j^2 + (2 k_j - 1) s^2) / h_j

    has the same mean: Stein's unbiased risk (1981) of a linear estimate, or Mallows' C_L (1973). A ridge penalty
    alpha keeps k_j = h_j / (h_j + alpha), a normal prior of variance v keeps h_j^2 v / (h_j^2 v + s^2).

    The noise of the curvature and the sampling error of the records are not in this risk. It refers to the loss on
    the records, and for classes to the quadratic model of this loss.
    """
    parts = (1.0 - kept) ** 2 * gradient**2 + (2.0 * kept - 1.0) * noise**2
    return np.asarray((parts / curvature).sum(axis=(-2, -1)))


def matching_C(variance: float, curvature: float, noise: float, n: int) -> float:
    """The C whose penalty shrinks a direction as a normal prior of this variance does.

    h / (h + 1 / (C n)) is h^2 v / (h^2 v + s^2) for C = h v / (n s^2). The noise s falls as 1 / (n mu), so C grows
    as n mu^2.
    """
    return variance * curvature / (n * max(noise, 1e-12) ** 2)
