"""Results in scikit-learn's shape: a Bunch, (X, y), or pandas objects on request."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Bunch


def import_pandas() -> Any:
    """pandas, or an ImportError that says which argument asked for it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas, which is not installed: pip install pandas") from error
    return pandas


def as_objects(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Stack columns of different types as one object array of Python values."""
    table = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        if column.dtype.kind == "O":
            table[:, place] = column
        else:
            # Each distinct value becomes one Python object, shared by its rows.
            values, inverse = np.unique(column, return_inverse=True)
            table[:, place] = values.astype(object)[inverse]
    return table


def _frame(data: object, names: Sequence[str]) -> object:
    pandas = import_pandas()
    if isinstance(data, Mapping):
        return pandas.DataFrame(dict(data), columns=list(names))
    if issparse(data):
        return pandas.DataFrame.sparse.from_spmatrix(data, columns=names)
    return pandas.DataFrame(data, columns=names)


def make_bunch(
    data: Any,
    target: np.ndarray,
    *,
    target_name: str,
    feature_names: Sequence[str],
    return_X_y: bool,
    as_frame: bool,
    **more: object,
) -> Bunch | tuple[object, object]:
    """Put the parts together; `data` is an array, a sparse matrix, or a dict of columns."""
    frame = None
    if as_frame:
        data = _frame(data, feature_names)
        target = import_pandas().Series(target, name=target_name)
        frame = data.assign(**{target_name: target})
    elif isinstance(data, Mapping):
        data = as_objects([data[name] for name in feature_names])
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=list(feature_names),
        target_names=[target_name],
        **more,
    )


def make_text_bunch(
    data: list[str], target: np.ndarray, *, target_name: str, return_X_y: bool, as_frame: bool, **more: object
) -> Bunch | tuple[object, object]:
    """The same for texts; an array among `more` has one value a text and joins the frame."""
    frame = None
    if as_frame:
        arrays = {key: value for key, value in more.items() if isinstance(value, np.ndarray)}
        frame = import_pandas().DataFrame({"text": data, target_name: target, **arrays})
        data, target = frame["text"], frame[target_name]
        more |= {key: frame[key] for key in arrays}
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, frame=frame, target_names=[target_name], **more)
