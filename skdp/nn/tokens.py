"""Sequences of token ids: read row by row, cut or padded to a public length."""

from collections.abc import Iterable, Iterator, Mapping, Set

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import is_cupy
from skdp.nn.arrays import Array

__all__ = ["token_rows"]

FORM = (
    "X must hold a sequence of token ids for each record: a list of lists of whole numbers, or an array of shape "
    "(n_samples, length) in which 0 is padding"
)
NUMBERS = "ids must be whole numbers; give each token of your vocabulary a number, from 1 on, and fill gaps with 0"


def token_rows(X: object, max_length: int, vocabulary_size: int) -> NDArray[np.float32]:
    """Return an array of ids, 0 where a row has ended.

    Padding is left out before a row is cut, and may stand before, between or behind the tokens.

    Parameters
    ----------
    X : array-like of shape (n_samples, length), or sequence of sequences of different lengths
    max_length : int
        Rows of more tokens lose their end.
    vocabulary_size : int
        The largest id.

    Returns
    -------
    ndarray of float32 of shape (n_samples, max_length)

    Raises
    ------
    TypeError, ValueError
        If an id is not a whole number from 0 to ``vocabulary_size``, or X is sparse, an iterator, a mapping or
        text. Each row is read by itself. No message quotes an id.

    Examples
    --------
    >>> from skdp.nn.tokens import token_rows
    >>> token_rows([[3, 1], [], [2, 2, 2, 2], [0, 0, 0, 4]], 3, 5)
    array([[3., 1., 0.],
           [0., 0., 0.],
           [2., 2., 2.],
           [4., 0., 0.]], dtype=float32)
    """
    if is_cupy(X):
        raise TypeError("token ids are read on the host: use cupy.asnumpy(X)")
    if hasattr(X, "toarray"):
        # Counts of words are whole numbers, too, and would be read as ids.
        raise TypeError(
            f"{FORM}; got a sparse matrix. Counts of words are for a linear model, such as DPLogisticRegression; "
            "a matrix of ids needs X.toarray()"
        )
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(X, (Mapping, Set)):
        raise TypeError(f"{FORM}; got {type(X).__name__}. Of a tokenizer's output give the ids alone")
    if isinstance(X, Iterator):
        raise TypeError(f"{FORM}; got an iterator, which can be read only once: use list(X)")
    if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
        raise TypeError(f"{FORM}; got {type(X).__name__}")
    if isinstance(X, np.ndarray) and X.dtype != object:
        if X.dtype.kind in "SU":
            raise TypeError(f"{FORM}; got text: {NUMBERS}")
        if X.ndim != 2:
            one = ". One record needs X.reshape(1, -1)" if X.ndim == 1 else ""
            raise ValueError(f"{FORM}; got {X.ndim} dimensions{one}")
        rows: Array | list[Array] = _ids(X, vocabulary_size)
    else:
        rows = [_ids(_row(row), vocabulary_size) for row in X]
    found = np.zeros((len(rows), max_length), dtype=np.float32)
    for out, row in zip(found, rows):
        kept = row[row != 0][:max_length]
        out[: kept.size] = kept
    return found


def _row(row: object) -> np.ndarray:
    """A row of a table that holds objects."""
    row = row.to_numpy() if hasattr(row, "to_numpy") else row
    if isinstance(row, (str, bytes)):
        raise TypeError(f"{FORM}; a row is text: {NUMBERS}")
    if isinstance(row, (Mapping, Set)) or not isinstance(row, Iterable):
        raise TypeError(f"{FORM}; a row is no sequence. One record needs [X]")
    try:
        values = np.asarray(list(row) if not isinstance(row, np.ndarray) else row)
        if values.dtype == object:  # numbers in an array of objects
            values = np.asarray(values.tolist())
    except ValueError:
        raise ValueError(f"{FORM}; a row holds sequences of different lengths") from None
    if values.ndim != 1:
        raise ValueError(
            f"{FORM}; a row has {values.ndim} dimensions. Of a data frame with a column of sequences give "
            "the column"
        )
    return values


def _ids(values: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """The same numbers, if all of them are ids or padding."""
    if values.size and values.dtype.kind not in "biuf":
        raise TypeError(NUMBERS)
    with np.errstate(all="ignore"):  # a warning would tell of a value
        if values.dtype.kind == "f" and not bool(np.all(values == np.floor(values))):
            raise ValueError(f"{NUMBERS}. Some are not whole, or NaN")
        if values.size and not bool(np.all((values >= 0) & (values <= vocabulary_size))):
            raise ValueError(
                f"ids must be from 1 to vocabulary_size={vocabulary_size}, and 0 is padding; some are not. Give "
                "tokens that are not in the public vocabulary one id of their own, or leave them out"
            )
    return values
