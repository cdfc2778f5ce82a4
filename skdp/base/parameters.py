"""Checks of parameters, before any data are looked at."""

import math
from numbers import Integral
from typing import Literal, cast

import numpy as np

from skdp.privacy import BudgetAccountant, check_accountant, check_adjacency, check_budget, check_unit

__all__ = ["check_choice", "check_flag", "check_groups", "check_number", "check_privacy"]


def check_privacy(
    epsilon: float,
    delta: float,
    *,
    adjacency: str,
    unit: str,
    accountant: BudgetAccountant | Literal[False] | None,
    n_public: int | None,
) -> None:
    """Check the parameters that every private estimator has."""
    check_budget(epsilon, delta)
    check_adjacency(adjacency)
    check_unit(unit)
    check_accountant(accountant)
    if n_public is not None:
        check_number("n_public", n_public, Integral, low=1)
    if adjacency == "add-remove" and n_public is None:
        raise ValueError(
            "under adjacency='add-remove' the number of records is private: give n_public, a "
            "public number that means divide by, or use adjacency='zero-out'"
        )


def check_groups(unit: str, groups: object) -> None:
    """Raise ValueError unless ``groups`` is given exactly where the group is the unit."""
    if unit == "group" and groups is None:
        raise ValueError(
            "unit='group' needs groups=: who each row belongs to. scikit-learn hands groups "
            "to a search's splitter only; route them with "
            "sklearn.set_config(enable_metadata_routing=True) and then set_fit_request(groups=True), "
            "or give both cross_validate(groups=g, params={'groups': g})"
        )
    if unit == "record" and groups is not None:
        raise ValueError(
            "groups= was given but unit='record' protects single rows; "
            "use unit='group' to protect everything that belongs to one group"
        )


def check_number(
    name: str,
    value: object,
    kind: type,
    *,
    low: float | None = None,
    high: float | None = None,
    strict: bool = False,
    word: str | None = None,
    none: bool = False,
) -> None:
    """Raise TypeError or ValueError unless ``value`` is a number of ``kind`` in its range.

    Parameters
    ----------
    name : str
    value : object
    kind : type
        ``numbers.Integral`` or ``numbers.Real``.
    low, high : float, default=None
        Inclusive bounds; ``low`` is exclusive with ``strict``.
    strict : bool, default=False
    word : str, default=None
        A string that is allowed as well.
    none : bool, default=False
        Whether None is allowed as well.
    """
    if none and value is None:
        return
    wanted = "an int" if kind is Integral else "a number"
    also = (f" or {word!r}" if word else "") + (" or None" if none else "")
    if word is not None and isinstance(value, str):
        if value != word:
            raise ValueError(f"{name} must be {wanted}{also}, got {value!r}")
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}{also}, got {type(value).__name__}")
    number = cast("float", value)  # of the kind, which compares with floats
    try:
        float(number)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 can hold") from None
    if low is None and math.isnan(number):
        raise ValueError(f"{name} must be {wanted}{also}, got {value!r}")
    if math.isnan(number) or (low is not None and (number <= low if strict else number < low)):
        raise ValueError(f"{name} must be {'>' if strict else '>='} {low:g}{also}, got {value!r}")
    if high is not None and number > high:
        raise ValueError(f"{name} must be <= {high:.10g}{also}, got {value!r}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
