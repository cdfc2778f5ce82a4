"""Predictions from scores: labels, probabilities of classes, and numbers that are cut to bounds.

Loops run over blocks of rows that stay in the cache.
"""

import math
from collections.abc import Iterator

import numpy as np

from skdp.kernels import is_cupy

NUMBERS = 2**13  # scores in a block; a choice, not tuned
ROWS = 2**14  # rows of scores that become labels at once; a choice
MAX_LOOPED_CLASSES = 16  # classes up to which one operation a class is faster than a reduction along a short axis


NOWHERE = (-math.inf, math.inf)  # bounds that cut nothing


def _blocks(n: int, rows: int) -> Iterator[slice]:
    return (slice(first, first + rows) for first in range(0, n, rows))


def of_two_classes(scores: np.ndarray) -> np.ndarray:
    """Return the probabilities ``1 / (1 + exp(s))`` and ``1 / (1 + exp(-s))`` of each score.

    Each keeps its relative accuracy, down to the least positive float64: the smaller one is not 1 minus the other.

    Parameters
    ----------
    scores : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n, 2)
    """
    out = np.empty((len(scores), 2))
    with np.errstate(under="ignore"):
        for rows in _blocks(len(scores), NUMBERS):
            s = scores[rows]
            rare = np.exp(-np.abs(s))
            common = 1.0 / (1.0 + rare)
            rare *= common
            second = s > 0.0
            out[rows, 0] = np.where(second, rare, common)
            out[rows, 1] = np.where(second, common, rare)
    return out


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return the softmax of each row.

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    n, k = scores.shape
    out = np.empty((n, k))
    with np.errstate(under="ignore"):
        for rows in _blocks(n, max(1, NUMBERS // k)):
            part = out[rows]
            np.subtract(scores[rows], _over_classes(np.maximum, scores[rows]), out=part)
            np.exp(part, out=part)
            part /= _over_classes(np.add, part)
    return out


def _over_classes(combine: np.ufunc, table: np.ndarray) -> np.ndarray:
    """Reduce each row by ``combine``; of shape (n, 1)."""
    if table.shape[1] > MAX_LOOPED_CLASSES:
        return np.asarray(combine.reduce(table, axis=1, keepdims=True))
    found = table[:, 0].copy()
    for k in range(1, table.shape[1]):
        combine(found, table[:, k], out=found)
    return found[:, None]


def of_signs(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The second of two labels where a score is positive.

    Labels of eight bytes are written over the scores, which nobody else holds: a new array of a million numbers
    costs more than to fill it.
    """
    labels = (
        np.require(scores, np.float64, ["C", "W"]).view(classes.dtype)
        if classes.dtype in (np.int64, np.float64)
        else np.empty(len(scores), dtype=classes.dtype)
    )
    for part in _blocks(len(scores), ROWS):
        classes.take((scores[part] > 0).view(np.int8), out=labels[part], mode="clip")
    return labels


def cut(model: object, found: np.ndarray) -> np.ndarray:
    """Predictions of a fitted model, cut in place; they may be on a device."""
    bounds = vars(model).get("prediction_bounds_", NOWHERE)
    return found if bounds == NOWHERE else found.clip(*bounds, out=found)


def cut_text(bounds: tuple[float, float]) -> str:
    """The line of a report."""
    return "predictions are cut to [{:.6g}, {:.6g}]".format(*bounds)


def like(X: object, result: np.ndarray) -> np.ndarray:
    """Return a result where X lies: on the device, unless it holds text labels."""
    if is_cupy(X) and result.dtype.kind in "biuf":
        import cupy

        return cupy.asarray(result)
    return result
