"""The cost of Laplace releases by other code than the calibration."""

from skdp.privacy.accounting.recheck.gaussian import pure_terms
from skdp.privacy.accounting.recheck.row_terms import Row, RowTerms, check_row, count_of, number

REQUIRED = ("sensitivity", "grid")  # keys of every row of a session


def terms(row: Row) -> RowTerms:
    """The terms of a row "laplace"."""
    check_row(row, "epsilon")
    return pure_terms(number(row, "epsilon"), count_of(row))
