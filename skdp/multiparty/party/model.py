"""A released model, written and read back: predictions for raw rows, with no records and no other party.

It is the last step of `skdp.multiparty.party`.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array

from skdp.fitting.linear import prediction_bounds
from skdp.multiparty.party.document import PlanError
from skdp.multiparty.party.plan import Feature, make_estimator
from skdp.multiparty.party.table import public_rows


class PlanRows(TransformerMixin, BaseEstimator):
    """Rows in the units of a plan's features, mapped as every party mapped its records.

    A feature with bounds is clipped to them and mapped to [-1, 1]; an empty cell (nan) of it becomes 0. Others
    stay as they are. Nothing is learnt from any row.

    Parameters
    ----------
    features : sequence of (str, float or None, float or None)
        Name, lower and upper bound of each column.
    """

    learns_from_data = False  # `skdp._compat` asks what stands before a private fit

    def __init__(self, features: Sequence[tuple[str, float | None, float | None]]) -> None:
        self.features = features

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.features)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns, in the plan's order."""
        return np.array([name for name, _, _ in self.features], dtype=object)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """As ``feature_names_in_``."""
        return self.feature_names_in_

    def fit(self, X: object, y: object = None) -> Self:
        """Return self; nothing is read."""
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Map rows.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
            The columns of a DataFrame are found by name, in any order, and it may have others. An array has the
            plan's columns in the plan's order.

        Returns
        -------
        ndarray of float64 of shape (n_samples, n_features)

        Raises
        ------
        ValueError
            If a column is missing, if X is no table of numbers, or if a column without bounds has an empty cell.
        """
        if hasattr(X, "columns"):
            names = [name for name, _, _ in self.features]
            missing = [name for name in names if name not in X.columns]
            if missing:
                raise ValueError(f"the table has no column {', '.join(map(repr, missing))}")
            X = X[names]
        rows = check_array(X, dtype=np.float64, ensure_all_finite=False)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {rows.shape[1]} columns, but the plan has {self.n_features_in_} features")
        return public_rows(rows, [Feature(*one) for one in self.features])


def load_model(path: str | os.PathLike[str]) -> Pipeline:
    """Read the model that `skdp party` wrote, as a fitted pipeline.

    Parameters
    ----------
    path : str or path-like
        ``ID.NAME.model.json`` of any party: all hold the same model. It is JSON, so reading it runs no code.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Its first step maps rows by the plan's public bounds, its second is the plan's estimator with the released
        coefficients. ``predict``, ``score`` and, of a classifier, ``predict_proba`` and ``decision_function`` take
        rows in the units of the plan's features. Fitting it would be a new private fit.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no such model.

    Notes
    -----
    The model of the pipeline has no ``privacy_``: the report is a file of its own, ``ID.NAME.report.json``.

    ``row_norm`` scales the rows of a fit. Rows that are predicted keep their length, and the same estimator fitted
    in one process, after the same bounds, gives the same predictions. Where most rows are longer than
    ``row_norm``, probabilities are more extreme than in the fit.

    Examples
    --------
    >>> from skdp.multiparty.party import load_model
    >>> model = load_model("study/rand-hie.hospital_a.model.json")  # doctest: +SKIP
    >>> model.predict_proba(table)  # doctest: +SKIP
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        return Pipeline([("rows", _rows(document)), ("model", _estimator(document))])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{os.fspath(path)} is no model of `skdp party`: {error}") from error


def model_document(model: Any) -> dict[str, object]:
    """The attributes of a fitted estimator in the file of a model, beside its plan."""
    return {
        "classes": model.classes_.tolist() if is_classifier(model) else None,
        "coef": np.asarray(model.coef_).tolist(),
        "intercept": np.asarray(model.intercept_).tolist(),
        "n_iter": int(model.n_iter_),
        "epsilon": model.privacy_.epsilon,
        "delta": model.privacy_.delta,
    }


def _rows(document: Mapping[str, Any]) -> PlanRows:
    ends = [(one["name"], *(one["bounds"] or (None, None))) for one in document["features"]]
    if any(len(one) != 3 for one in ends):
        raise ValueError("'bounds' must be two numbers")
    return PlanRows(ends)


def _estimator(document: Mapping[str, Any]) -> Any:
    """The estimator with the coefficients of the document."""
    classes, size = document["classes"], len(document["features"])
    try:
        model: Any = make_estimator(document["estimator"], document["parameters"], classes)
    except PlanError as error:
        raise ValueError(str(error)) from error
    coef = np.array(document["coef"], dtype=np.float64)
    intercept = np.array(document["intercept"], dtype=np.float64)
    if is_classifier(model):
        outputs = 1 if len(classes) == 2 else len(classes)
        shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((outputs, size), (outputs,))
        model.classes_ = np.asarray(classes)
    else:
        shapes = ((size,), ())
    if (coef.shape, intercept.shape) != shapes:
        raise ValueError(f"'coef' and 'intercept' must have the shapes {shapes[0]} and {shapes[1]}")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("'coef' and 'intercept' must be finite")
    model.coef_, model.intercept_ = coef, intercept if intercept.shape else float(intercept)
    model.row_norm_ = model._row_norm(size)
    if not is_classifier(model):
        model.prediction_bounds_ = prediction_bounds(model, {})
    model.n_features_in_, model.n_iter_ = size, int(document["n_iter"])
    return model
