"""The calls of an evaluation to a model: its classes, and one score for each row, from this row alone.

Privacy
-------
A record's cell must be a function of this record and of public numbers. A model scores a row by itself, but its
last bits may depend on the row's place in a block and on the block's size: products of BLAS treat the last rows of
a block in another way. Where the number of rows is public, every other row keeps its place in a call on all rows
when a record changes. Where it is private (groups, or a given ``n_public``), rows move. skdp's linear and additive
models compute each row alone here (`skdp.kernels.rows_alone`), also inside a pipeline. Any other model gets
exactly 64 rows at a time, on one thread of BLAS (the last block repeats its last row), if 64 generated rows show
that positions among 64 do not matter (`skdp.privacy.check_batch_independence`). Otherwise it gets one row at a
time. For tables that cannot be generated, such as data frames of text, it is an assumption.
"""

import re
from numbers import Real
from typing import Any, Literal, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from skdp.base.cells import as_cells, check_collected, is_untyped, label_codes
from skdp.kernels.protocols import Floats, Integers, is_cupy

AT_ONCE = 64  # rows of a call where positions may matter, as many as `check_batch_independence` looks at
MAX_CELL = 1e30  # largest cell of the generated rows; scikit-learn's trees refuse numbers beyond float32


def kind_of(model: object) -> str:
    """Return "classifier" or "regressor"; anything else, or an unfitted model, raises."""
    if isinstance(model, type):
        raise TypeError(f"model must be a fitted estimator, got the class {model.__name__}")
    if is_classifier(model):
        kind = "classifier"
    elif is_regressor(model):
        kind = "regressor"
    else:
        raise TypeError(
            f"model must be a fitted classifier or regressor of scikit-learn's kind, got {type(model).__name__}"
        )
    check_is_fitted(model)
    return kind


def name_of(model: object) -> str:
    """Return the name of the model's class, for texts; for a pipeline the class of its last step."""
    return type(model.steps[-1][1] if isinstance(model, Pipeline) else model).__name__


def protects_groups(model: object) -> bool:
    """Whether the report of a fitted model, or of a model inside it, says that it protects groups."""
    held = [getattr(model, name, None) for name in ("best_estimator_", "estimator_", "regressor_")]
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else []
    of_groups = getattr(getattr(model, "privacy_", None), "unit", None) == "group"
    return of_groups or any(protects_groups(each) for each in (*held, *steps) if each is not None)


def classes_of(model: object) -> NDArray[np.generic]:
    """Return the model's labels, at least two."""
    classes = getattr(model, "classes_", None)
    if classes is None or np.ndim(classes) != 1 or len(classes) < 2:
        raise ValueError(
            f"{type(model).__name__} has no classes_ of at least two labels: labels come from the model, "
            f"never from y"
        )
    return np.asarray(classes)


def score_method(model: object) -> str:
    """Return "predict_proba" or "decision_function", whichever the model has."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method):
            return method
    raise TypeError(
        f"{type(model).__name__} has neither predict_proba nor decision_function, so it has no scores to "
        "evaluate; for labels alone use skdp.metrics.accuracy_score"
    )


def own_threshold(model: object, plain: float) -> float:
    """Return the threshold that ``predict`` of a model of two classes uses: ``plain``, or one of its own.

    `DPTunedThresholdClassifier` and scikit-learn's ``TunedThresholdClassifierCV`` and ``FixedThresholdClassifier``
    have one, also at the end of a Pipeline.
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    found = getattr(last, "best_threshold_", None)
    if found is None and isinstance(last, FixedThresholdClassifier):
        found = last.threshold
    if (
        found is not None
        and getattr(last, "response_method", "") == "decision_function"
        and score_method(model) != "decision_function"
    ):
        raise ValueError(
            f"the threshold of {type(last).__name__} is one of decision_function, and the model is evaluated by "
            "predict_proba: give threshold= as a probability, or response_method='predict_proba' to the model"
        )
    return float(found) if isinstance(found, Real) and not isinstance(found, bool) else plain


def count_rows(X: object, y: object) -> int:
    """Return the number of rows; X and y of different lengths raise, without the lengths, which may be private."""
    check_collected(X=X, y=y)
    if y is None:
        raise ValueError("an evaluation needs y: the labels or targets of X")
    n, labels = _num_samples(X), _num_samples(y)
    if n != labels:
        raise ValueError("X and y need one entry a row: they have different lengths")
    if n == 0:
        raise ValueError("X has no rows: there is nothing to evaluate")
    return int(n)


def row_scores(model: object, method: str, X: object, n_outputs: int, *, fixed: bool) -> Floats:
    """Return the output of a method for each row.

    Parameters
    ----------
    model : fitted estimator
    method : str
        "predict", "predict_proba" or "decision_function".
    X : array-like, CSR matrix or data frame
    n_outputs : int
        Numbers that the method gives for a row.
    fixed : bool
        Whether the number of rows is public, so that every row keeps its place on a neighbouring table.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)

    Raises
    ------
    ValueError
        If the method raised. Its message is withheld: it may quote a cell.
    """
    from skdp.kernels import on_host, one_blas_thread, rows_alone

    n = _num_samples(X)
    size = None if fixed else _at_once(model, method, X)
    found = np.empty((n, n_outputs))
    if size is not None and isinstance(X, list | tuple):
        X = np.asarray(X)
    ask = getattr(model, method)
    step = n if size is None else size
    with rows_alone(), one_blas_thread(), np.errstate(all="ignore"):
        for first in range(0, n, step):
            part = slice(first, first + step)
            positions = np.minimum(np.arange(first, part.stop), n - 1)
            failed = ""
            try:
                answers = on_host(ask(X if size is None else _safe_indexing(X, positions)))
            except Exception as error:
                failed = type(error).__name__
            if failed:  # outside of the handler: no context of the error holds a cell
                raise ValueError(
                    f"{type(model).__name__}.{method} raised {failed} on these rows. The message is "
                    "withheld, because it may quote a cell: pass rows that the model accepts, of the columns "
                    "that it was fitted to and without missing values if it takes none"
                )
            numbers = np.asarray(answers, dtype=np.float64)
            if numbers.size != positions.size * n_outputs:
                raise ValueError(
                    f"{type(model).__name__}.{method} gives another number of outputs a row than an evaluation "
                    f"takes, {n_outputs}: evaluate each of several targets by itself"
                )
            found[part] = numbers.reshape(-1, n_outputs)[: n - first]
    return found


def _rows_alone(model: object) -> bool:
    """Whether the model's scores of a row have the same bits wherever the row stands."""
    from skdp.fitting.linear import LinearFit

    if isinstance(model, Pipeline):
        return len(model.steps) == 1 and _rows_alone(model.steps[-1][1])
    return isinstance(model, LinearFit) and type(model).__module__.startswith("skdp.linear_model")


def _at_once(model: BaseEstimator, method: str, X: Any) -> int | None:
    """How many rows a call gets: None for all, 64 where generated rows show, or cannot show, that positions
    do not matter."""
    from skdp.kernels import rows_alone
    from skdp.privacy import Vectors, check_batch_independence

    if _rows_alone(model):
        # A single row lies in C and in Fortran order at once, and the kernels of the two add in different orders.
        return None if _num_samples(X) > 1 else 2
    sparse, table = hasattr(X, "indptr"), hasattr(X, "dtype") and np.ndim(X) == 2
    if is_cupy(X) or not (sparse or table) or X.dtype.kind not in "fiu":
        return AT_ONCE
    ask = getattr(model, method)

    def function(rows: Floats, y: Floats | None) -> list[Vectors]:
        cells = np.zeros((AT_ONCE, rows.shape[1]), dtype=rows.dtype)
        # scikit-learn refuses other cells, and a row that is refused reaches no other row.
        cells[: len(rows)] = np.where(np.abs(rows) < MAX_CELL, rows, 0.0)
        answers = np.asarray(ask(sp.csr_matrix(cells) if sparse else cells), dtype=np.float64)
        return [Vectors(answers.reshape(AT_ONCE, -1)[: len(rows)].copy())]

    try:
        with rows_alone():
            check_batch_independence(function, int(X.shape[1]))
    except Exception:
        # A place matters, or the model refuses generated rows, such as rows with categories that it does not know.
        return 1
    return AT_ONCE


_TEXT = re.compile(r"(large_)?str(ing)?(_view)?(\[\w+\])?|utf8")
_NUMBER = re.compile(r"(bool(ean)?|u?int\d+|float\d+|double|float)(\[\w+\])?")


def label_type(column: object) -> Literal["number", "text"] | None:
    """Whether a container's type says that its labels are numbers, or text; None where each cell has its own.

    It is read from the type alone, which is public, also where pandas or Polars hold the column: a cell that is
    missing changes nothing.
    """
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype):
        return "number" if dtype.kind in "biuf" else "text" if dtype.kind in "US" else None
    name = str(dtype).lower()
    return "text" if _TEXT.fullmatch(name) else "number" if _NUMBER.fullmatch(name) else None


def _type_name(column: object) -> str:
    return str(getattr(column, "dtype", type(column).__name__))


def class_codes(y: object, classes: NDArray[np.generic]) -> Integers:
    """Return the index of each label in ``classes``; one that is missing or unknown counts as the first class.

    No value raises. A whole column of another type does, as types are public.
    """
    cells = as_cells(y)
    labels = np.asarray(cells) if not is_untyped(cells) else np.asarray(cells, dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y must be a column of labels, got {labels.ndim} dimensions")
    numbers = "biuf"
    if {label_type(y), label_type(classes)} == {"number", "text"}:
        raise ValueError(
            f"the labels hold {_type_name(y)} and the known ones are {classes.dtype}, so none of them would be "
            "known: give y the type of model.classes_, or a function of scores labels= of the type of y_true"
        )
    if labels.dtype.kind in numbers and classes.dtype.kind in numbers:
        if classes.size == 2:
            return (labels == classes[1]).astype(np.int64)
        order = np.argsort(classes, kind="stable")
        place = np.minimum(np.searchsorted(classes[order], labels), classes.size - 1)
        known = classes[order][place] == labels
        return np.where(known, order[place], 0).astype(np.int64)
    codes = label_codes(cast("list[object]", labels), classes)
    return np.where(codes >= 0, codes, 0).astype(np.int64)
