"""Scores of a fitted model on private rows, each one released mean of a number per row.

Privacy
-------
The number of a row depends on the released model and on this row alone: it is a prediction compared with the row's
target. It is clipped to public bounds, or to bounds that are released first for a part of the same budget. A group
counts as one, by the mean of its rows. A row that cannot be predicted, or has a prediction that is not finite,
counts as the worst number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from skdp.base.cells import as_cells, cell_numbers, is_untyped, label_codes
from skdp.base.fit import Adjacency, Unit
from skdp.kernels import on_host
from skdp.kernels.protocols import Floats, Integers
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.statistics import mean
from skdp.statistics.column_moments import released_once

# Probabilities below this count as this one in the logarithmic loss; the worst loss is then 6.9, by choice.
LEAST_PROBABILITY = 1e-3
WORST_ERROR = 1e150  # of a prediction that is not finite: beyond the bounds that are released
_BEST, _WORST = 0.0, -math.log(LEAST_PROBABILITY)


@dataclass(frozen=True)
class ScoreTerms:
    """The largest cost of a released score, and its unit."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    unit: Unit
    n_public: int | None
    n_least: int | None  # the same where bounds are searched
    random_state: int | None


def _labels(y: object, classes: np.ndarray) -> Integers:
    """Positions of labels in the sorted classes; -1 for a label that is not there."""
    cells = as_cells(y)
    if is_untyped(cells):
        found = np.asarray(label_codes(cells.ravel(), classes))
        return np.where(np.isfinite(found), found, -1.0).astype(np.int64)
    labels = np.asarray(cells).reshape(-1)
    positions = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
    return np.where(classes[positions] == labels, positions, -1).astype(np.int64)


def _wrong(model: BaseEstimator, X: object, y: object) -> Floats:
    found = _by_rows(model.predict, X)
    if isinstance(found, list):
        positions = [-2 if cell is None else _labels([cell], model.classes_)[0] for cell in found]
        predicted = np.array(positions)
    else:
        predicted = _labels(found, model.classes_)
    return (predicted != _labels(y, model.classes_)).astype(np.float64)


def _log_loss(model: BaseEstimator, X: object, y: object) -> Floats:
    found = _by_rows(model.predict_proba, X)
    codes = _labels(y, model.classes_)
    worst = np.zeros(len(model.classes_))
    table = np.stack([worst if row is None else np.asarray(row, dtype=np.float64) for row in found])
    p = np.where(codes < 0, 0.0, table[np.arange(codes.size), np.maximum(codes, 0)])
    return -np.log(np.clip(np.nan_to_num(p, nan=0.0), LEAST_PROBABILITY, 1.0))


def _errors(model: BaseEstimator, X: object, y: object) -> Floats:
    found = _by_rows(model.predict, X)
    predicted = np.array([math.nan if cell is None else float(cell) for cell in found])
    apart = np.abs(predicted - cell_numbers(as_cells(y)).reshape(-1))
    return np.minimum(np.nan_to_num(apart, nan=WORST_ERROR, posinf=WORST_ERROR), WORST_ERROR)


def _squares(model: BaseEstimator, X: object, y: object) -> Floats:
    return np.minimum(np.square(_errors(model, X, y)), WORST_ERROR)


@dataclass(frozen=True)
class _Score:
    """A mean of numbers per row, smaller is better; ``offset`` minus it is the score."""

    values: Callable[[BaseEstimator, object, object], Floats]
    bounds: tuple[float, float] | None
    offset: float
    needs: str

    def held(self, score: float) -> float:
        """A released score in its range, which noise may have left."""
        low, high = (0.0, math.inf) if self.bounds is None else self.bounds
        return float(np.clip(score, self.offset - high, self.offset - low))


CLASSIFIER_SCORES = {
    "accuracy": _Score(_wrong, (0.0, 1.0), 1.0, "predict"),
    "neg_log_loss": _Score(_log_loss, (_BEST, _WORST), 0.0, "predict_proba"),
}
REGRESSOR_SCORES = {
    "neg_mean_absolute_error": _Score(_errors, None, 0.0, "predict"),
    "neg_mean_squared_error": _Score(_squares, None, 0.0, "predict"),
}


def default_score(classifies: bool) -> str:
    """The score of ``scoring=None``: it orders models as their `score` does."""
    return "accuracy" if classifies else "neg_mean_squared_error"


def released_score(
    name: str, model: BaseEstimator, X: object, y: object, groups: Any, terms: ScoreTerms
) -> tuple[float, float]:
    """Score a model on private rows; larger is better.

    Returns
    -------
    score, noise_std : float
    """
    score = {**CLASSIFIER_SCORES, **REGRESSOR_SCORES}[name]
    values = score.values(model, X, y)
    if score.bounds is None:
        found = mean(
            values, epsilon=terms.epsilon, delta=terms.delta, unit=terms.unit, groups=groups,
            adjacency=terms.adjacency, n_public=terms.n_least, accountant=False,
            random_state=terms.random_state,
        )  # fmt: skip
        return score.offset - float(found.value), float(found.noise_std)
    low, high = score.bounds
    records = PrivateRecords(values.reshape(-1, 1), groups=groups, n_public=terms.n_public)
    # The mean is not clipped to the bounds: noisy scores beyond them still have an order.
    with PrivacySession(
        records, epsilon=terms.epsilon, delta=terms.delta, adjacency=terms.adjacency, unit=terms.unit,
        accountant=False, random_state=terms.random_state, estimator="score",
    ) as session:  # fmt: skip
        center, half_width = np.array([0.5 * (low + high)]), np.array([0.5 * (high - low)])
        sums = records.column_sums(center, half_width)
        total, noise = released_once(session, sums, "score")
    released, noise = float(total[0]) / records.n_units, noise / records.n_units
    return score.offset - (float(center[0]) + float(half_width[0]) * released), float(half_width[0]) * noise


def _by_rows(predict: Callable[[object], object], X: Any) -> Any:
    """Predictions of all rows; if they fail together, of each row by itself, None where that fails.

    A row that cannot be predicted then changes its own number and no other.
    """
    try:
        return on_host(predict(X))
    except Exception:  # of one row, perhaps
        found = []
        for row in range(X.shape[0] if hasattr(X, "shape") else len(X)):
            try:
                found.append(on_host(predict(_safe_indexing(X, np.array([row, row]))))[0])
            except Exception:
                found.append(None)
        return found
