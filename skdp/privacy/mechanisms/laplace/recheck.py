"""The cost of Laplace releases by other code than the calibration."""

from skdp.privacy.accounting.recheck.gaussian import pure_terms
from skdp.privacy.accounting.recheck.row_terms import Row, RowTerms, check_row, count_of, number


def terms(row: Row) -> RowTerms:
    """The terms of a row "laplace"."""
    check_row(row, "epsilon")
    return pure_terms(number(row, "epsilon"), count_of(row))
