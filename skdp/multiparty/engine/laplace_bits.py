"""Discrete Laplace noise from random bits that no party knows: the constants, and the cost of their error.

A geometric variable G on 0, 1, 2, ... with P(G = g) ~ exp(-g / s) has independent binary digits: digit i is one
with probability ``q_i = 1 / (1 + exp(2^i / s))``. A digit is one where a secret number of kappa_i random bits is
below the public constant ``c_i = round(2^kappa_i q_i)``. With one more secret bit the noise is G or, as likely,
-1 - G, which gives ::

    P(noise = k) = C exp(-|k + 1/2| / s)    for every integer k, C = (1 - exp(-1 / s)) exp(1 / (2 s)) / 2,

discrete Laplace noise around -1/2. The half unit is at most 2^-15 of the scale. The usual difference of two
geometric variables takes twice as many bits for noise around 0, and protects no better.

Privacy
-------
Exact noise of scale ``s = D / epsilon`` added to integers of l1 sensitivity D is epsilon-DP, because moving k by m
changes |k + 1/2| by at most |m|. The noise that is drawn differs in two ways, and the release is not pure. Both go
into (epsilon, delta) by `laplace_bits_numerical_error`.

* *Digits.* ``kappa_i = 40 + ceil(-log2 q_i)``, so that the rounding of c_i moves q_i, and 1 - q_i >= q_i, by at
  most 2^-41 of itself. The log-errors of all digits add up; the sum is computed for the very constants.
* *Cut-off.* There are digits until 2^n >= 64 s. With exact digits G is then a geometric variable, given that it is
  below 2^n: every probability is larger by the factor 1 / (1 - exp(-2^n / s)), a log-error below 2^-92. On a
  neighbouring data set the same output needs another noise, different by at most epsilon s in all entries
  together: all outputs but a probability of ``exp(epsilon - 64)`` a value can be drawn on both.

References
----------
A. Ghosh, T. Roughgarden and M. Sundararajan, "Universally utility-maximizing privacy
mechanisms" (STOC 2009), for the noise; C. Dwork, K. Kenthapadi, F. McSherry, I. Mironov and M. Naor, "Our data,
ourselves: privacy via distributed noise generation" (EUROCRYPT 2006), for the independent digits.
"""

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, localcontext
from functools import lru_cache
from math import exp, inf, nextafter
from typing import NamedTuple

LAPLACE_SCALES = (2.0**14, 2.0**40)
"""Scales, in units of the grid, for which noise is made of bits."""

UNNOTICED = "one server that alters one message of mpyc's secret bits removes the noise, and nobody notices"
"""Assumption of the Laplace noise; the reason is in `mpyc_bits`."""

_GUARD = 40  # bits of a digit's constant beyond its first one
_SCALES = 64  # the digits reach at least this many scales of the noise
_CUT_OFF = 2.0**-92  # bound on the log-error of the cut-off
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


def bits_of(scale: float) -> int:
    """Random bits that one value of the noise takes."""
    return 1 + sum(digit.kappa for digit in digits_of(scale))


def most_bits() -> int:
    """Random bits that one value takes at most, whatever the scale.

    There is one digit more beyond every power of two, and up to the next one all digits get likelier, so shorter.
    The longest scale is therefore the first one beyond the last power of two.
    """
    return bits_of(nextafter(LAPLACE_SCALES[1] / 2, inf))


@lru_cache(maxsize=32)
def log_error(scale: float) -> float:
    """Bound on the log-error of any value that can be drawn, from the digits' constants."""
    total = Decimal(0)
    with localcontext() as context:
        context.prec = _PRECISION
        for i, (kappa, constant) in enumerate(digits_of(scale)):
            q, made = _probability(i, scale), Decimal(constant) / 2**kappa
            total += max(abs((made / q).ln()), abs(((1 - made) / (1 - q)).ln()))
        return float(total) * (1 + 2.0**-40) + _CUT_OFF


def laplace_bits_numerical_error(n_values: int, scale: float, epsilon: float) -> tuple[float, float]:
    """Additions to (epsilon, delta) of a release for the error in ``n_values`` values made of bits.

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
    numerical_error : tuple of float
        Both data sets' probabilities carry the error, hence the factor 2 in epsilon.
    """
    # Noise beyond the cut-off of a neighbour carries the digits' error as well: far below the 1 % here.
    far = 1.01 * exp(min(0.0, epsilon - _SCALES))
    return 2 * n_values * log_error(scale), n_values * far


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
