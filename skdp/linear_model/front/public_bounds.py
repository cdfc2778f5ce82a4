"""Public numbers that a user may know of a table: ends of columns, and of the targets."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from skdp.base.columns import check_bounds, per_column

__all__ = ["check_feature_bounds", "check_target_bounds", "column_ends"]

NAME = "feature_bounds"


def check_feature_bounds(given: Any) -> None:
    """Refuse what is neither None, nor (low, high), nor a dict of such pairs by column."""
    if isinstance(given, Mapping):
        for column, pair in given.items():
            low, high = _pair(column, pair)
            if not low < high:
                raise ValueError(
                    f"{NAME}[{column!r}] must be (low, high), low < high, got {pair!r}"
                )
        return
    check_bounds(given, finite=False, name=NAME)


def column_ends(given: Any, n_features: int, names: Any = None) -> np.ndarray | None:
    """Return the ends of all columns, of shape (2, n_features); infinite where none are known, None for None.

    Parameters
    ----------
    given : None, tuple or dict
        As `check_feature_bounds` allows.
    n_features : int
    names : array-like of str, default=None
        Names of the columns, if they have some.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        ends = per_column(NAME, given, n_features, finite=False)
        return None if ends is None else np.stack(ends)
    found = np.outer([-math.inf, math.inf], np.ones(n_features))
    known = [] if names is None else list(names)
    for column, pair in given.items():
        place = known.index(column) if column in known else column
        is_number = isinstance(place, (int, np.integer)) and not isinstance(place, bool)
        if not (is_number and 0 <= place < n_features):
            have = f"the columns {known}" if known else f"{n_features} columns without names"
            raise ValueError(
                f"{NAME} names the column {column!r}, and X has {have}: give names or numbers of them"
            )
        found[:, int(place)] = _pair(column, pair)
    return found


def _pair(column: Any, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise ValueError(
            f"{NAME}[{column!r}] must be (low, high), two numbers, got {pair!r}"
        ) from None
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"{NAME}[{column!r}] must not be NaN; give -inf or inf for an unknown end")
    return low, high


def check_target_bounds(given: Any) -> None:
    """Refuse what is neither None nor (low, high)."""
    if given is None:
        return
    wrong = f"y_bounds must be None or (low, high), two finite public numbers, low < high; got {given!r}"
    try:
        ends = check_bounds(given, name="y_bounds")
    except (TypeError, ValueError) as error:
        raise type(error)(wrong) from None
    if ends is None or any(end.ndim for end in ends):
        raise TypeError(wrong)
