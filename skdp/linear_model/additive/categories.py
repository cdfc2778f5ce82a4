"""Columns whose values are public codes without an order, such as `categories={"region": [1, 2, 3]}`."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from skdp.linear_model.auto.public_bounds import column_positions

NAME = "categories"
# Limits of the number of values of one column, a choice. Each value is a feature of its own, and few records have
# a rare value: most of hundreds of features would be noise.
MIN_CATEGORIES, MAX_CATEGORIES = 2, 64
SHOULD = f"{NAME} must be None or a dict of public codes by column, such as {{column: [1, 2, 3]}}"


def check_categories(name: str, given: object) -> None:
    """Refuse what is neither None nor a dict of distinct finite numbers by column."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise TypeError(f"{SHOULD}; got {type(given).__name__}")
    for column, values in given.items():
        _codes(column, values)


def category_values(given: Any, n_features: int, names: object = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and their values, one entry for each value.

    Parameters
    ----------
    given : None or dict
        As `check_categories` allows.
    n_features : int
    names : array-like of str, default=None
        Names of the columns, if they have some.

    Returns
    -------
    columns : ndarray of int64, of shape (n_values,)
        Ascending.
    values : ndarray of float64, of shape (n_values,)
        Those of a column in the order in which they were given.
    """
    given = {} if given is None else given
    positions = column_positions(NAME, given, n_features, names)
    codes = {
        place: _codes(column, values) for place, (column, values) in zip(positions, given.items(), strict=True)
    }
    columns = [place for place in sorted(codes) for _ in codes[place]]
    found = [value for place in sorted(codes) for value in codes[place]]
    return np.array(columns, dtype=np.int64), np.array(found, dtype=np.float64)


def _codes(column: object, values: object) -> list[float]:
    name = f"{NAME}[{column!r}]"
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a list of numbers, got {type(values).__name__}")
    given = list(values)
    if not MIN_CATEGORIES <= len(given) <= MAX_CATEGORIES:
        raise ValueError(
            f"{name} must have {MIN_CATEGORIES} to {MAX_CATEGORIES} values, got {len(given)}: other "
            "values of the column count as none of them, so rare ones can be left out"
        )
    for value in given:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not (is_number and _is_finite(value)):
            raise ValueError(
                f"{name} must have finite numbers, got {value!r}: encode text and flags as numbers by a public "
                "table, in the column too"
            )
    codes = [float(value) for value in given]
    if len(set(codes)) < len(codes):
        twice = next(value for i, value in enumerate(codes) if value in codes[:i])
        raise ValueError(f"{name} has {twice!r} twice, as float64: give each value once")
    return codes


def _is_finite(value: Real) -> bool:
    """Whether float64 has the value, rounded; an integer may be too large for it."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
