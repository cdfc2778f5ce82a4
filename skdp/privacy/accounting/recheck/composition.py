"""Epsilon of a ledger by other code than the calibration, so that a mistake in one of them shows.

Each mechanism's module ``recheck`` computes the cost of its rows; here the costs are added up. Neither uses the
calibration or the types of releases. This checks the calibration; the sensitivity is tested on replaced records.
"""

import math
from collections.abc import Sequence

from skdp.privacy.accounting.recheck.gaussian import mu_epsilon
from skdp.privacy.accounting.recheck.row_terms import Point, Row, RowTerms, check_complete
from skdp.privacy.accounting.recheck.sampled import sampled_epsilon
from skdp.privacy.mechanisms.registry import module_of


def _terms_of(row: Row, complete: bool = False) -> RowTerms | Point:
    module = module_of(row, "recheck")
    if complete:
        check_complete(row, getattr(module, "REQUIRED", ()))
    found: RowTerms | Point = module.terms(row)
    known = (
        (found.mu2, found.pure or 0.0)
        if isinstance(found, RowTerms)
        else (found.epsilon, found.delta, found.count)
    )
    if not all(cost >= 0.0 for cost in (*known, found.tail)):
        raise ValueError(f"the recheck of {row['name']!r} must say costs >= 0, got {found!r}.")
    return found


def recheck_tail(rows: Sequence[Row]) -> float:
    """Probability of outputs that a neighbour never has; the numerical error pays for it, not epsilon."""
    return math.fsum(_terms_of(row).tail for row in rows)


def recheck_epsilon(
    rows: Sequence[Row], delta: float, adjacency: str | None = None, *, complete: bool = False
) -> float:
    """Recompute the epsilon of ledger rows at `delta`, independently of the calibration.

    Parameters
    ----------
    rows : sequence of dict
        As in `PrivacyReport.mechanisms`.
    delta : float in [0, 1)
    adjacency : {"replace-one", "zero-out", "add-remove"}, optional
        Needed for sampled rows only.
    complete : bool, default=False
        Whether a row without its noise, sensitivity or grid is refused. Sessions write all three, and their own
        recheck asks for them; rows by hand may leave out what does not change the cost.

    Returns
    -------
    float
        With a relative error of about 1e-11, or 1e-8 with many pure releases; up to 1e-4 for a delta near 1. The
        smaller of "everything in mu-GDP" and "Gaussian rows in mu-GDP plus the sum of the pure epsilons". With
        sampled rows by dp-accounting, all others as one Gaussian of their mu: Poisson samples to about 1e-3.

    Raises
    ------
    ValueError
        For an unknown mechanism, a row with a missing, unknown or impossible value, or a delta outside [0, 1).
    UnsupportedAccounting
        For a mechanism without a recheck, and for sampled rows without an adjacency or that no proof covers.

    Examples
    --------
    >>> from skdp.privacy.accounting import recheck_epsilon
    >>> row = {"name": "gaussian", "noise_multiplier": 10.0, "count": 100}
    >>> round(recheck_epsilon([row], 1e-5), 4)
    4.3772
    """
    delta = float(delta)
    if not 0.0 <= delta < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
    try:
        return _epsilon([_terms_of(row, complete) for row in rows], delta, adjacency)
    except ArithmeticError:  # a row has numbers that no release has
        return math.inf


def _epsilon(found: Sequence[RowTerms | Point], delta: float, adjacency: str | None) -> float:
    points = [each for each in found if isinstance(each, Point)]
    if any(not point.found <= point.delta for point in points):
        return math.inf
    # Rows that are (epsilon, delta)-DP at one point only: basic composition with all others.
    left = delta - math.fsum(point.delta * point.count for point in points)
    if left < 0.0:
        return math.inf
    epsilon = math.fsum(point.epsilon * point.count for point in points)
    return epsilon + _composed([each for each in found if isinstance(each, RowTerms)], left, adjacency)


def _composed(rows: Sequence[RowTerms], delta: float, adjacency: str | None) -> float:
    """Epsilon of rows that compose as Gaussian releases, as pure ones, or by the laws of their losses."""
    whole = [row for row in rows if row.sample is None]
    samples = [row.sample for row in rows if row.sample is not None]
    mu = math.sqrt(math.fsum(row.mu2 for row in whole))
    if samples:
        # Sampling never costs more than the same releases on all records.
        everything = math.sqrt(math.fsum(row.mu2 for row in rows))
        return min(sampled_epsilon(samples, mu, delta, adjacency), mu_epsilon(everything, delta))
    pure = [row.pure for row in whole if row.pure is not None]
    gaussian = math.fsum(row.mu2 for row in whole if row.pure is None)
    basic = mu_epsilon(math.sqrt(gaussian), delta) + math.fsum(pure) if pure else math.inf
    return min(mu_epsilon(mu, delta), basic)
