"""How far released coefficients scatter over draws of the privacy noise, as far as this is known.

A step takes theta to theta - K H^-1 g, along the eigenvectors of the Gram matrix and the directions of the outputs:
g is the released gradient, H the curvature that the step assumes, K what the shrinkage keeps. About the coefficients
b without noise g = R H (theta - b) + e, with R the part of the curvature that the loss has. So the covariance V of
theta over the draws becomes

    (1 - K R) V (1 - K R) + K^2 H^-2 Var(e) + K^2 Cov(H^-1 N x) ,

where N is the noise of the Gram matrix and x the step: of a symmetric matrix of normal entries with variance 2 tau^2
on the diagonal and tau^2 elsewhere, Cov(N x) = tau^2 (|x|^2 + x x^T). Later steps take back what earlier ones did
wrong, and new features start at 0 without noise.

Where a recalibration multiplies all coefficients by one released slope, what they have of their own direction is
replaced: V becomes P V P^T + s^2 theta theta^T with P the projection along theta that is orthogonal in the curvature,
and s the noise of the slope over the slope.

Left out: the noise of centres and scales, what a scale of the shrinkage that was found on the gradient adds, and the
rank-one part of Cov(N x) off its diagonal.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["Move", "along_direction", "common_factor", "covariances", "replaced"]


class Move(NamedTuple):
    """A step that was taken, by what its noise did.

    Attributes
    ----------
    vectors : ndarray of shape (p, p)
        Eigenvectors of the Gram matrix.
    kept : ndarray of shape (p, q)
        Part K of the wanted step that was taken along each of them and each direction of the outputs.
    added : ndarray of shape (p, q)
        Variance that the noise of the gradient and the one of the Gram matrix added.
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
        Curvature of the loss over the one that steps assume.
    """
    vectors, found = moves[0].vectors, None
    for move in moves:
        if found is None:
            found = np.zeros((move.kept.shape[1], *vectors.shape))
        elif move.vectors is not vectors:
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
    """Covariance of the noise of a common factor with the coefficients, and the variance of this factor."""
    dual = metric @ coef * weights
    dual = dual / max(float((coef * dual).sum()), 1e-300)
    cross = np.einsum("qij,jq->iq", along, dual)
    return cross, float((cross * dual).sum())


def replaced(
    covariance: np.ndarray, row: np.ndarray, coef: np.ndarray, parts: tuple[np.ndarray, float], noise: float
) -> np.ndarray:
    """A covariance where the noise of the common factor is another."""
    cross, own = parts[0] @ row, coef @ row
    both = np.outer(cross, own)
    return covariance - both - both.T + (parts[1] + noise**2) * np.outer(own, own)
