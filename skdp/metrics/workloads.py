"""The questions to the table of a two-class evaluation, as a matrix of linear queries; all of it is public.

A table has a cell for each label and score bin: bins of label 1 first, then bins of label 0. A question is one
number for each cell. The workload V is a weighted sum of q q^T over questions; `skdp.metrics.strategies` finds the
release whose answers have the least weighted variance.
"""

import math

import numpy as np
from scipy.special import ndtr

from skdp.kernels.protocols import Floats

REACH = 7.0  # the outermost edges lie at about this logit: p = .0009 and .9991; a choice
CLIP = 1e-3  # log loss takes probabilities clipped to [CLIP, 1 - CLIP], so that a record adds at most 6.9

# Weights of the questions; choices, made so that accuracy, AUC and log loss have about the same error in units of
# their sampling error on tables of public laws (`tools/make_strategies.py` prints the errors).
AVERAGES, AREAS, COUNTS, PREFIXES = 3.0, 6.0, 0.5, 0.3

SHARES_OF_POSITIVES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)  # shares that the public score laws have
SEPARATIONS = (0.7, 1.19, 1.8, 2.5)  # distances of the classes' means, in standard deviations of a logit


def logit_edges(n_bins: int) -> Floats:
    """Return the inner edges of an even number of bins on the logit scale, one of them at 0.

    Parameters
    ----------
    n_bins : int
        Even.

    Returns
    -------
    ndarray of shape (n_bins - 1,)
    """
    reach = REACH * (n_bins - 2) / n_bins
    return np.linspace(-reach, reach, n_bins - 1)


def losses_of_bins(probabilities: Floats, clip: float = CLIP) -> tuple[Floats, Floats]:
    """Return log loss and Brier score of each cell, where all scores of a bin are its centre.

    Parameters
    ----------
    probabilities : ndarray of shape (n_bins,)
        Of label 1.
    clip : float, default=1e-3

    Returns
    -------
    log_loss, brier : ndarray of shape (2 n_bins,)
        Bins of label 1 first.
    """
    p = np.clip(probabilities, clip, 1.0 - clip)
    log_loss = np.concatenate((-np.log(p), -np.log1p(-p)))
    brier = np.concatenate(((1.0 - probabilities) ** 2, probabilities**2))
    return log_loss, brier


def table_workload(n_bins: int) -> Floats:
    """Return V of a table of two classes on the logit grid.

    It holds accuracy, Brier score and log loss; the gradient of the AUC under a public family of laws of scores;
    the counts of classes and of the threshold .5; and the counts up to each edge.

    Parameters
    ----------
    n_bins : int
        Even.

    Returns
    -------
    ndarray of shape (2 n_bins, 2 n_bins)
    """
    edges = logit_edges(n_bins)
    right = (np.arange(n_bins) >= n_bins // 2).astype(np.float64)
    accuracy = np.concatenate((right, 1.0 - right))
    averages = [accuracy, *losses_of_bins(bin_centers(edges))]
    total = AVERAGES * _outer(averages)
    gradients = [_area_gradient(edges, share, d) for share in SHARES_OF_POSITIVES for d in SEPARATIONS]
    total += AREAS / len(gradients) * _outer(gradients)
    first, zeros = np.repeat((1.0, 0.0), n_bins), np.zeros(n_bins)
    counts = [first, np.concatenate((right, zeros)), np.concatenate((zeros, right))]
    total += COUNTS * _outer(counts)
    return total + PREFIXES / (2 * n_bins) * np.kron(np.eye(2), _prefixes(n_bins))


def confidence_workload(n_bins: int) -> Floats:
    """Return V of a table (bin of the confidence) x (right or wrong): accuracy, Brier-like means, all prefixes."""
    confidence = np.linspace(0.0, 1.0, n_bins)
    right = np.repeat((1.0, 0.0), n_bins)
    questions = [right, np.tile(confidence, 2), np.concatenate((confidence, np.zeros(n_bins)))]
    return AVERAGES * _outer(questions) + PREFIXES / (2 * n_bins) * np.kron(np.eye(2), _prefixes(n_bins))


def probability_workload(n_bins: int) -> Floats:
    """Return V of the bins of the probability of the true class: log loss, mean probability and all prefixes."""
    p = bin_centers(logit_edges(n_bins))
    questions = [-np.log(np.clip(p, CLIP, 1.0)), p, (1.0 - p) ** 2]
    return AVERAGES * _outer(questions) + PREFIXES / n_bins * _prefixes(n_bins)


def bin_centers(edges: Floats) -> Floats:
    """Return the probability in the middle of each bin on the logit scale; outer bins are as wide as
    their neighbours.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Logits.
    """
    if edges.size == 1:
        ends = np.array([edges[0] - 1.0, edges[0], edges[0] + 1.0])
    else:
        ends = np.concatenate(([2 * edges[0] - edges[1]], edges, [2 * edges[-1] - edges[-2]]))
    middle = 0.5 * (ends[1:] + ends[:-1])
    return np.asarray(1.0 / (1.0 + np.exp(-middle)))


def _outer(questions: list[Floats]) -> Floats:
    """Sum of q q^T of questions that are scaled to a range of 1, around 0."""
    scaled = np.array([(q - (q.max() + q.min()) / 2) / (q.max() - q.min()) for q in questions])
    return np.asarray(scaled.T @ scaled)


def _prefixes(n_bins: int) -> Floats:
    below = np.tril(np.ones((n_bins, n_bins)))
    return np.asarray(below.T @ below)


def _area_gradient(edges: Floats, share: float, d: float) -> Floats:
    """Gradient of the AUC by the cells' parts, where logits of both classes are normal and calibrated."""
    law = score_law(edges, share, d)
    positive, negative = law[: len(law) // 2] / share, law[len(law) // 2 :] / (1.0 - share)
    below = np.cumsum(negative) - negative / 2
    above = 1.0 - np.cumsum(positive) + positive / 2
    area = positive @ below
    return np.concatenate(((below - area) / share, (above - area) / (1.0 - share)))


def score_law(edges: Floats, share: float, d: float) -> Floats:
    """Return the part of records in each cell, where the logits of both classes are normal and calibrated.

    Parameters
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Logits.
    share : float
        Of label 1, in (0, 1).
    d : float
        Standard deviation of the logit in each class; the means lie d^2 apart.

    Returns
    -------
    ndarray of shape (2 n_bins,)
    """
    middle = math.log(share / (1.0 - share))
    ends = np.concatenate(([-np.inf], edges, [np.inf]))
    positive = share * np.diff(ndtr((ends - middle - d * d / 2) / d))
    negative = (1.0 - share) * np.diff(ndtr((ends - middle + d * d / 2) / d))
    return np.concatenate((positive, negative))
