"""The cost of selections by other code than the calibration."""

from skdp.privacy.accounting.recheck.gaussian import pure_mu
from skdp.privacy.accounting.recheck.rows import Row, Terms, check_row, count_of, number


def terms(row: Row) -> Terms:
    """The terms of a row "gumbel_top_k": a choice costs the mu of half its epsilon of randomised response."""
    check_row(row, "epsilon")
    epsilon, count = number(row, "epsilon"), count_of(row)
    return Terms(mu2=count * pure_mu(0.5 * epsilon) ** 2, pure=count * epsilon) if count else Terms(mu2=0.0)
