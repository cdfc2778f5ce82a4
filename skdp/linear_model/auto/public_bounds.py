"""Public numbers that a user may know of a table: ends of columns, and of the targets."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from skdp.fitting.columns import check_bounds, per_column

NAME = "feature_bounds"
# Least width of a window over its farthest end, and limits of ends: numbers beyond them cannot be divided by, or
# their squares overflow.
MIN_RELATIVE_WIDTH, MIN_WIDTH, MAX_END = 2.0**-30, 1e-100, 1e100
SHOULD = (
    "feature_bounds must be None, (low, high), each a number or one for each column, infinite where none is "
    "known, or a dict of such pairs by column"
)


def check_feature_bounds(name: str, given: object) -> None:
    """Refuse what is neither None, nor (low, high), nor a dict of such pairs by column."""
    if isinstance(given, Mapping):
        for column, pair in given.items():
            low, high = _pair(column, pair)
            if not low < high:
                raise ValueError(f"{NAME}[{column!r}] must be (low, high), low < high, got {pair!r}")
            _check_width(f"{NAME}[{column!r}]", low, high)
        return
    try:
        ends = check_bounds(given, finite=False, name=NAME)
    except (TypeError, ValueError) as error:
        told = f"got {given!r}" if len(repr(given)) < 100 else f"got {type(given).__name__}"
        hint = "; for pairs of columns give them by name: {column: (low, high)}"
        raise type(error)(f"{SHOULD}, low < high; {told}{hint}") from None
    if ends is not None:
        for low, high in np.broadcast(*ends):
            _check_width(NAME, float(low), float(high))


def _check_width(name: str, low: float, high: float) -> None:
    """Refuse a window of two finite ends that float64 cannot divide by."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return
    size = max(abs(low), abs(high))
    if size > MAX_END or high - low < max(MIN_WIDTH, MIN_RELATIVE_WIDTH * size):
        raise ValueError(
            f"{name} must be at most {MAX_END:g} in size, and at least 1e-9 of that apart, got ({low!r}, "
            f"{high!r}): subtract a public number from the values, or choose another unit"
        )


def column_ends(given: object, n_features: int, names: object = None) -> np.ndarray | None:
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
    for place, (column, pair) in zip(column_positions(NAME, given, n_features, names), given.items(), strict=True):
        found[:, place] = _pair(column, pair)
    return found


def column_positions(parameter: str, given: Iterable[Any], n_features: int, names: Any = None) -> list[int]:
    """Return the numbers of columns that a parameter gives by name or by number; no column may be given twice.

    Parameters
    ----------
    parameter : str
        Its name, for messages.
    given : iterable of str or int
    n_features : int
    names : array-like of str, default=None
        Names of the columns, if they have some.
    """
    known = [] if names is None else list(names)
    positions: list[int] = []
    for column in given:
        place = known.index(column) if column in known else column
        is_number = isinstance(place, (int, np.integer)) and not isinstance(place, bool)
        if not (is_number and 0 <= place < n_features):
            have = f"the columns {known}" if known else f"{n_features} columns without names"
            hint = "" if known else ', or frames: a ColumnTransformer has set_output(transform="pandas")'
            raise ValueError(
                f"{parameter} names the column {column!r}, and X has {have}: give names or numbers of them{hint}"
            )
        if place in positions:
            raise ValueError(
                f"{parameter} names column {int(place)} twice, by name and by number: keep one of them"
            )
        positions.append(int(place))
    return positions


def _pair(column: object, pair: Iterable[float]) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise ValueError(
            f"{NAME}[{column!r}] must be (low, high), two numbers, inf for an unknown end; got {pair!r}"
        ) from None
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"{NAME}[{column!r}] must not be NaN; give -inf or inf for an unknown end")
    return low, high


def check_target_bounds(name: str, given: object) -> None:
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
    _check_width("y_bounds", *(float(end) for end in ends))
