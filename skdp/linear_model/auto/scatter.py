"""The scatter of released coefficients over draws of the privacy noise, as far as it is known.

A step takes theta to theta - K H^-1 g, along the eigenvectors of the Gram matrix and the directions of the
outputs: g is the released gradient, H the curvature that the step assumes, K the part that the shrinkage keeps.
About the coefficients b without noise, g = R H (theta - b) + e with R the part of this curvature that clipped
gradients have, and without the lift that was added to the eigenvalues of the Gram matrix. The covariance V of
theta over the draws becomes

    (1 - K R) V (1 - K R) + K^2 H^-2 Var(e) + K^2 Cov(H^-1 N x) + U ,

where x is the step, N the noise of the Gram matrix: of a symmetric matrix of normal entries with variance 2 tau^2
on the diagonal and tau^2 elsewhere, Cov(N x) = tau^2 (|x|^2 + x x^T). U is the variance of x over the scales that
the shrinkage holds for possible. Later steps take back what earlier ones did wrong, and new features start at 0.

Where all coefficients are multiplied by one released slope, their noise along their own direction is replaced: V
becomes P V P^T + s^2 theta theta^T with P the projection along theta that is orthogonal in the curvature, and s
the noise of the slope over the slope.

Left out: the noise of centres and scales, and Cov(N x) off the diagonal. How often the bands that follow hold is
measured by `tools/coverage_shapes.py`.
"""

from typing import NamedTuple

import numpy as np


class Move(NamedTuple):
    """A step that was taken, and the effect of its noise.

    Attributes
    ----------
    vectors : ndarray of shape (p, p)
        Eigenvectors of the Gram matrix.
    kept : ndarray of shape (p, q)
        Part of the distance to b that was taken along each of them and each direction of the outputs, if clipped
        gradients had the assumed curvature.
    added : ndarray of shape (p, q)
        Variance that the step added.
    """

    vectors: np.ndarray
    kept: np.ndarray
    added: np.ndarray


def covariances(moves: list[Move], agreement: np.ndarray) -> np.ndarray:
    """Covariance of the coefficients along each direction of the outputs, of shape (q, p, p).

    Parameters
    ----------
    moves : list of Move
        In order; p may grow, by features before the last one.
    agreement : ndarray of shape (q,)
        Curvature that clipped gradients have, over the one that steps assume.
    """
    vectors = moves[0].vectors
    found = np.zeros((agreement.size, *vectors.shape))
    for move in moves:
        if move.vectors is not vectors:
            turn = _padded(vectors, len(move.vectors)).T @ move.vectors
            found = turn.T @ found @ turn
        vectors = move.vectors
        left = (1.0 - move.kept * agreement).T
        found *= left[:, :, None] * left[:, None, :]
        diagonal = np.arange(len(vectors))
        found[:, diagonal, diagonal] += move.added.T
    return np.asarray(vectors @ found @ vectors.T)


def _padded(vectors: np.ndarray, size: int) -> np.ndarray:
    """Rows of 0 for more features, before the last row."""
    more = np.zeros((size - len(vectors), vectors.shape[1]))
    return np.concatenate([vectors[:-1], more, vectors[-1:]])


def common_factor(before: np.ndarray, after: np.ndarray) -> float:
    """The factor of all coefficients but the intercepts that makes one theta of another."""
    old, new = before[:-1].ravel(), after[:-1].ravel()
    return float(new @ old) / max(float(old @ old), 1e-300)


def along_direction(
    along: np.ndarray, coef: np.ndarray, metric: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Covariance of the noise of a common factor of ``coef`` with coefficients, (p, q), and its variance.

    The factor is fitted to noise in the norm of ``metric`` x ``weights``.
    """
    dual = metric @ coef * weights
    dual = dual / max(float((coef * dual).sum()), 1e-300)
    cross = np.einsum("qij,jq->iq", along, dual)
    return cross, float((cross * dual).sum())


def replaced(
    covariance: np.ndarray, row: np.ndarray, coef: np.ndarray, parts: tuple[np.ndarray, float], noise: float
) -> np.ndarray:
    """Covariance of ``coef @ row``, of which a common factor has other noise.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
    row : ndarray of shape (q,)
        Of the directions of the outputs.
    parts : tuple
        What `along_direction` found.
    noise : float
        Standard deviation of the factor.
    """
    cross, own = parts[0] @ row, coef @ row
    both = np.outer(cross, own)
    return np.asarray(covariance - both - both.T + (parts[1] + np.square(noise)) * np.outer(own, own))
