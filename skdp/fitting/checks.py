"""Checks of the parameters that several methods share."""

import math
from numbers import Real
from typing import Any

from skdp._compat import warn_user
from skdp.base import check_number
from skdp.exceptions import UtilityWarning
from skdp.fitting.task import given
from skdp.privacy import PublicShape

__all__ = [
    "SURE_MASS",
    "check_callback",
    "check_clip",
    "check_features",
    "warn_probabilities",
]

# Units times mu from which a linear classifier's probabilities are hardly ever worse than the frequencies of the
# classes: on the suite's training parts at most one fit in twenty above it. Nets take it without a measurement.
SURE_MASS = 200.0


def check_callback(callback: Any) -> None:
    """Raise TypeError unless ``callback`` is None or callable."""
    if callback is not None and not callable(callback):
        raise TypeError("callback must be callable: callback(iteration, coef)")


def check_clip(name: str, value: Any, epsilon: float, word: str = "adaptive") -> None:
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
        raise ValueError(
            f"n_nonzero_coefs={n_nonzero_coefs} is more than the {n_features} features of X"
        )


def warn_probabilities(
    model: Any, shape: PublicShape, mass: float, sure: float = SURE_MASS
) -> None:
    """Warn if a classifier's probabilities may be worse than the frequencies of the classes.

    Parameters
    ----------
    model : estimator
    shape : PublicShape
    mass : float
        Units times mu.
    sure : float, default=200.0
        The mass from which they hardly ever are.
    """
    if mass < sure:
        wanted = math.ceil(shape.n_units * sure / mass)
        warn_user(
            f"with {shape.counted()} at epsilon={model.epsilon:g} the probabilities of "
            f"{type(model).__name__} may be worse than the frequencies of the classes; labels are less "
            f"affected. About {float(f'{wanted:.2g}'):.0f} {shape.unit}s would be enough, or a larger epsilon",
            UtilityWarning,
        )
