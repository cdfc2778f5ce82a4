"""Delta of a released vocabulary from its ledger row, by other code than the calibration."""

import math

from skdp.privacy.accounting.recheck.rows import Row, count_of, number

__all__ = ["recheck_vocabulary"]


def recheck_vocabulary(row: Row) -> float:
    """Probability that a word which one unit alone has is released, at most, over all releases of the row.

    Parameters
    ----------
    row : dict
        ``threshold``, ``max_words``, ``noise_std`` and ``grid``, the width of the grid. A unit adds 1 / sqrt(k) to
        each of its k words.

    Returns
    -------
    float
        The largest over k, times the number of releases.
    """
    std, words = number(row, "noise_std"), int(number(row, "max_words"))
    reach = number(row, "threshold") - 0.5 * number(row, "grid")
    found = 0.0
    for k in range(1, words + 1):
        one = 0.5 * math.erfc((reach - 1.0 / math.sqrt(k)) / (std * math.sqrt(2.0)))
        found = max(found, -math.expm1(k * math.log1p(-one)) if one < 1.0 else 1.0)
    return count_of(row) * found
