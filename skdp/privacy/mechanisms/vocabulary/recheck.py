"""The cost of a released vocabulary by other code than the calibration."""

import math

from skdp.privacy.accounting.recheck.row_terms import Row, RowTerms, check_row, count_of, number, whole_number
from skdp.privacy.mechanisms.gaussian.recheck import mu2_of, multiplier_of

REQUIRED = ("sensitivity", "grid", "noise_std")  # keys of every row of a session

_MOST_WORDS = 10**6  # largest number of words of a unit


def terms(row: Row) -> RowTerms:
    """The terms of a row "gaussian" with a ``threshold``, of which a unit adds 1 / sqrt(k) to each of its k words.

    The tail is the probability that a word which one unit alone has is released: the largest over k, times the
    number of releases.
    """
    check_row(row, "noise_multiplier", "noise_std", "threshold", "max_words", "delta")
    z, std, words = multiplier_of(row), number(row, "noise_std"), whole_number(row, "max_words", least=1)
    if words > _MOST_WORDS:
        raise ValueError(f"max_words of a vocabulary must be at most {_MOST_WORDS}, got {words}.")
    number(row, "delta")
    reach = number(row, "threshold") - 0.5 * number(row, "grid")
    found, count = 0.0, count_of(row)
    for k in range(1, words + 1):
        one = 0.5 * math.erfc((reach - 1.0 / math.sqrt(k)) / (std * math.sqrt(2.0)))
        found = max(found, -math.expm1(k * math.log1p(-one)) if one < 1.0 else 1.0)
    return RowTerms(mu2=mu2_of(z, count), tail=count * found)
