"""Checks of the parameters that several methods share."""

import math
from numbers import Real
from typing import Any

from skdp.base import check_number
from skdp.fitting.task import given

__all__ = ["check_callback", "check_clip", "check_features"]


def check_callback(callback: Any) -> None:
    """Raise TypeError unless ``callback`` is None or callable."""
    if callback is not None and not callable(callback):
        raise TypeError("callback must be callable: callback(iteration, coef)")


def check_clip(name: str, value: Any, epsilon: float, word: str = "auto") -> None:
    """Check a clip norm: a number that the fixed-point sums can hold, or the word."""
    check_number(name, value, Real, low=0, strict=True, word=word)
    number = given(value)
    if number is None or 1e-100 <= number <= 1e100 or number == epsilon == math.inf:
        return
    raise ValueError(
        f"{name} must be finite and between 1e-100 and 1e100, got {value!r} "
        "(inf is possible with epsilon=inf only)"
    )


def check_features(n_nonzero_coefs: int | None, n_features: int) -> None:
    """Raise ValueError if more coefficients are to be kept than there are features."""
    if n_nonzero_coefs is not None and n_nonzero_coefs > n_features:
        raise ValueError(f"n_nonzero_coefs={n_nonzero_coefs} is more than the {n_features} features of X")
