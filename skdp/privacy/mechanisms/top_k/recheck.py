"""The cost of selections by other code than the calibration."""

from skdp.privacy.accounting.recheck.gaussian import pure_mu
from skdp.privacy.accounting.recheck.row_terms import Row, RowTerms, check_row, count_of, number

REQUIRED = ("sensitivity", "grid")  # keys of every row of a session


def terms(row: Row) -> RowTerms:
    """The terms of a row "gumbel_top_k": a choice costs the mu of half its epsilon of randomised response."""
    check_row(row, "epsilon")
    epsilon, count = number(row, "epsilon"), count_of(row)
    return RowTerms(mu2=count * pure_mu(0.5 * epsilon) ** 2, pure=count * epsilon) if count else RowTerms(mu2=0.0)
