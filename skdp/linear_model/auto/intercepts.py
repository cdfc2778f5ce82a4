"""Intercepts at which the mean probabilities are the classes' frequencies.

Clipped gradients and shrunken steps move mean probabilities away from the frequencies. The gradient with respect
to the intercepts, which is their difference, is bounded without a clip: it is released, and the intercepts follow.
"""

import math

import numpy as np
from scipy.special import expit, softmax

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.losses import Loss
from skdp.privacy import PrivateRecords, accounting, factor


def is_worth(budget: BudgetSplit, rows: PrivateRecords, loss: Loss) -> bool:
    """Whether the noise of the correction is small enough; public numbers decide."""
    session = budget.session
    effective_n = rows.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    noise = factor(session.adjacency) * loss.lipschitz / (effective_n * math.sqrt(DEFAULTS.intercepts.share))
    return noise < DEFAULTS.intercepts.max_noise


def corrected(
    budget: BudgetSplit, rows: PrivateRecords, loss: Loss, theta: np.ndarray, gram: np.ndarray
) -> np.ndarray:
    """Release the mean of (probabilities - labels), and move the intercepts so that it becomes 0.

    How much a mean probability moves with an intercept follows from the scores' distribution. It is simulated:
    normal, with the covariance that the released Gram matrix gives the scores.

    Parameters
    ----------
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        For standardized rows; the intercept is the last row.
    gram : ndarray of shape (n_parameters, n_parameters)
        Released, positive semidefinite.

    Notes
    -----
    **Privacy.** A record adds p - e_y, of norm at most 1 (two classes: one entry) or sqrt(2); a group adds the
    mean over its rows.
    """
    session = budget.session
    only = np.zeros(rows.n_parameters, dtype=bool)
    only[-1] = True
    mean = rows.averaged().mean_gradient(loss, theta, loss.lipschitz, mask=only)
    plan = budget.take(DEFAULTS.intercepts.share, "mean probabilities")
    surplus = session.gaussian(mean, plan)[-1]
    noise = session.noise_std(mean, plan)
    size = float(np.sum(surplus**2))
    surplus = surplus * max(0.0, 1.0 - np.size(surplus) * noise**2 / size) if size else surplus
    moved = theta.copy()
    moved[-1] += _shift(_simulated(theta, gram), surplus)
    return moved


def _simulated(theta: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Scores of shape (draws,) or (draws, n_classes), from a fixed stream: a function of theta and gram."""
    weights = theta[:-1].reshape(len(theta) - 1, -1)
    covariance = weights.T @ gram[:-1, :-1] @ weights
    values, vectors = np.linalg.eigh(covariance)
    defaults = DEFAULTS.intercepts
    normal = np.random.default_rng(0).standard_normal((defaults.n_draws // 2, len(values)))
    scores = np.vstack([normal, -normal]) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return (scores + theta[-1]).reshape(defaults.n_draws, *theta.shape[1:])


def _shift(scores: np.ndarray, surplus: np.ndarray) -> np.ndarray:
    """What to add to the scores so that their mean probabilities fall by ``surplus``."""
    defaults = DEFAULTS.intercepts
    probability = expit if scores.ndim == 1 else softmax_of_rows
    wanted = probability(scores).mean(axis=0) - surplus
    wanted = np.clip(wanted, defaults.min_probability, 1.0 - defaults.min_probability)
    shift = np.zeros_like(wanted)
    for _ in range(defaults.max_iter):  # each step matches odds, as iterative proportional fitting does
        now = np.clip(probability(scores + shift).mean(axis=0), 1e-12, 1.0 - 1e-12)
        step = np.log(wanted / now)
        if scores.ndim == 1:
            step = step - np.log((1.0 - wanted) / (1.0 - now))
        shift = np.clip(shift + step, -defaults.max_shift, defaults.max_shift)
    return shift if scores.ndim == 1 else shift - shift.mean()


def softmax_of_rows(scores: np.ndarray) -> np.ndarray:
    """Softmax of every row."""
    return np.asarray(softmax(scores, axis=1))
