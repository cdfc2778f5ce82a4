"""Discrete Laplace noise from random bits that no party knows: the constants, and what their error costs.

A geometric variable G on 0, 1, 2, ... with P(G = g) ~ exp(-g / s) has independent binary digits: digit i is one
with probability ``q_i = 1 / (1 + exp(2^i / s))``. The difference of two such variables is discrete Laplace
noise of scale s (Ghosh, Roughgarden and Sundararajan, 2009). A digit is one where a secret number of kappa_i
random bits is below the public constant ``c_i = round(2^kappa_i q_i)``.

Privacy ------- Added to integers of l1 sensitivity D, exact noise of scale ``s = D / epsilon`` is epsilon-DP.
What is drawn differs in two ways, and the release is not pure. Both go into (epsilon, delta) by
`laplace_bits_slack`.

* *Digits.* ``kappa_i = 40 + ceil(-log2 q_i)``, so that the rounding of c_i moves q_i, and 1 - q_i >= q_i, by at
  most 2^-41 of itself. The log-errors of all digits of both variables add up; the sum is computed for the very
  constants.
* *Cut-off.* There are digits until 2^n_digits >= 64 s. Below 2^n_digits a variable with exact digits is a
  geometric one, given that it is so small. The probability of a difference m misses the pairs with a larger
  member: a part of at most exp(-2 (64 - |m| / s)). Differences up to 44 s count, so the part is below exp(-40)
  < 2^-57, and the scale of the rest, 1 / (1 - exp(-64))^2, moves less. Beyond 44 s a difference counts as if it
  were wrong. A neighbour's noise differs by at most epsilon s in all entries together, so all outputs but a
  probability of ``2 exp(epsilon - 44)`` a value count on both data sets.

References
----------
A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally utility-maximizing privacy mechanisms" (STOC 2009);
C. Dwork, K. Kenthapadi, F. McSherry, I. Mironov and M. Naor, "Our data, ourselves: privacy via distributed noise
generation" (EUROCRYPT 2006), section 4.1, for the independent digits.
"""

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from functools import lru_cache
from math import exp
from typing import NamedTuple

__all__ = ["LAPLACE_SCALES", "Digit", "digits_of", "laplace_bits_slack", "log_error"]

LAPLACE_SCALES = (2.0**14, 2.0**40)
"""Scales, in units of the grid, for which noise is made of bits."""

_GUARD = 40  # bits of a digit's constant beyond its first one
_SCALES = 64  # that the digits reach
_COUNTED = 44.0  # scales up to which a difference counts
_MISSING = (
    2.0**-50
)  # covers what the cut-off moves within them, below 2^-57, and the rounding of these sums
_PRECISION = 80  # decimal places; a constant has at most 56 significant ones


class Digit(NamedTuple):
    """One binary digit of a geometric variable: one where a number of ``kappa`` random bits is below
    ``constant``."""

    kappa: int
    constant: int


@lru_cache(maxsize=32)
def digits_of(scale: float) -> tuple[Digit, ...]:
    """The digits of a geometric variable, the lowest first.

    Parameters
    ----------
    scale : float
        In `LAPLACE_SCALES`, in units of the grid.
    """
    _check(scale)
    digits = []
    with localcontext() as context:
        context.prec = _PRECISION
        for i in range(_n_digits(scale)):
            q = _probability(i, scale)
            # The least power of two that is at least 1 / q, without a logarithm.
            kappa = _GUARD + (int((1 / q).to_integral_value(ROUND_CEILING)) - 1).bit_length()
            digits.append(Digit(kappa, int((q * 2**kappa).to_integral_value(ROUND_HALF_EVEN))))
    return tuple(digits)


@lru_cache(maxsize=32)
def log_error(scale: float) -> float:
    """Bound on the log-error of any value that both variables' digits can make, from the digits' constants."""
    total = Decimal(0)
    with localcontext() as context:
        context.prec = _PRECISION
        for i, (kappa, constant) in enumerate(digits_of(scale)):
            q, made = _probability(i, scale), Decimal(constant) / 2**kappa
            total += max(abs((made / q).ln()), abs(((1 - made) / (1 - q)).ln()))
        return float(2 * total) * (1 + 2.0**-40)


def laplace_bits_slack(n_values: int, scale: float, epsilon: float) -> tuple[float, float]:
    """What ``n_values`` differences of variables made of bits add to (epsilon, delta) of a release.

    Parameters
    ----------
    n_values : int >= 0
        Number of values, over all releases.
    scale : float
        In `LAPLACE_SCALES`, in units of the grid.
    epsilon : float > 0
        Of one release: its l1 sensitivity over the scale.

    Returns
    -------
    slack : tuple of float
        Both data sets' probabilities carry the error, hence the factor 2 in epsilon.
    """
    each = log_error(scale) + _MISSING
    return 2 * n_values * each, n_values * 2.0 * exp(min(0.0, epsilon - _COUNTED))


def _check(scale: float) -> None:
    low, high = LAPLACE_SCALES
    if not low <= scale <= high:
        raise ValueError(f"the scale must be between {low:g} and {high:g} units, got {scale!r}")


def _n_digits(scale: float) -> int:
    n_digits = 0
    while 2**n_digits < _SCALES * scale:
        n_digits += 1
    return n_digits


def _probability(i: int, scale: float) -> Decimal:
    """That digit i is one."""
    return 1 / (1 + (Decimal(2**i) / Decimal(scale)).exp())
