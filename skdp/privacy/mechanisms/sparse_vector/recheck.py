"""The cost of rounds of the sparse vector technique by other code than the calibration."""

import math

from skdp.privacy.accounting.recheck.gaussian import pure_terms
from skdp.privacy.accounting.recheck.row_terms import Row, RowTerms, check_row, count_of, number

REQUIRED = ("sensitivity", "grid", "threshold_scale", "query_scale")  # keys of every row of a session


def terms(row: Row) -> RowTerms:
    """The terms of a row "above_threshold": its own numbers, or the cost of its scales if that is larger."""
    check_row(row, "epsilon", "threshold_scale", "query_scale")
    epsilon = number(row, "epsilon")
    if "query_scale" in row or "threshold_scale" in row:
        first, second = number(row, "threshold_scale"), number(row, "query_scale")
        moved = 1.0 / first + 2.0 / second if first and second else math.inf
        epsilon = max(epsilon, number(row, "sensitivity") * moved)
    return pure_terms(epsilon, count_of(row))
