"""The cost of pure releases on fresh uniform samples by other code than the calibration."""

import math

import numpy as np

from skdp.privacy.accounting.recheck.gaussian import pure_terms
from skdp.privacy.accounting.recheck.row_terms import Row, RowTerms, check_row, count_of, number

REQUIRED = ("sensitivity", "grid")  # keys of every row of a session


def terms(row: Row) -> RowTerms:
    """The terms of a row "sampled_pure": its own numbers, or the cost of its sampling if that is larger."""
    check_row(row, "epsilon", "epsilon_unsampled", "sampling_rate", sampling=("fresh uniform",))
    rate, inner = number(row, "sampling_rate"), number(row, "epsilon_unsampled")
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"sampling_rate must be in (0, 1], got {rate!r}.")
    stay = math.log1p(-rate) if rate < 1.0 else -math.inf
    amplified = float(np.logaddexp(stay, math.log(rate) + inner))
    return pure_terms(max(number(row, "epsilon"), amplified), count_of(row))
