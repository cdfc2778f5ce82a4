"""Delta of objective perturbation from its ledger row, by other code than the calibration.

delta(epsilon) is the integral over z > epsilon of e^(epsilon - z) P(Z > z), with the tail of the privacy loss Z
bounded as in this package's `cost`. It is taken numerically, without code of the calibration.
"""

import math

import numpy as np

from skdp.privacy.accounting.recheck.gaussian import upper_tail
from skdp.privacy.accounting.recheck.row_terms import Point, Row, check_row, count_of, flag, number

REQUIRED = ("sensitivity", "grid")  # keys of every row of a session

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def terms(row: Row) -> Point:
    """The terms of a row "objective_perturbation"."""
    return Point(number(row, "epsilon"), number(row, "delta"), count_of(row), recheck_objective(row))


def recheck_objective(row: Row) -> float:
    """Delta of a ledger row "objective_perturbation" at its epsilon.

    Parameters
    ----------
    row : dict
        ``epsilon``, ``noise_std``, ``sensitivity``, ``curvature``, ``trade``, ``one_signed``, ``replaced``.

    Returns
    -------
    float
        1 where the theorem's condition fails.
    """
    check_row(row, "epsilon", "delta", "noise_std", "penalty", "curvature", "trade", "one_signed", "replaced")
    epsilon, std, f = number(row, "epsilon"), number(row, "noise_std"), 2 if flag(row, "replaced") else 1
    one = number(row, "sensitivity") / f / std  # largest norm of one record's gradient
    sides = 1 if flag(row, "one_signed") else 2
    least = {(1, 1): 0.0, (1, 2): 0.0, (2, 1): 1.0, (2, 2): math.sqrt(3.0)}[f, sides]

    def tail_of(shift: float, records: int) -> tuple[float, float]:
        """Where P(shift + |g|^2/2 + <g, N> > z) turns into a normal tail at z = epsilon, and its slope."""
        size = records * one
        return (epsilon - shift - size * size / 2) / size, size

    def integral(shift: float, records: int, least: float) -> float:
        u, size = tail_of(shift, records)
        if u < least:
            return 1.0
        # z = epsilon + w; the integrand e^-w Q(u + w / size) is below e^-60 of its start beyond `end`.
        end = min(60.0, size * 60.0 / max(u, 1.0), size * 12.0 + 1e-300)
        edges = np.concatenate([[0.0], end * 2.0 ** np.arange(-12.0, 0.5)])
        half = 0.5 * np.diff(edges)
        w = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
        values = np.exp(-w) * upper_tail(u + w / size)
        rest = math.exp(-end) * float(upper_tail(np.array([u + end / size]))[0])
        return sides * (float(np.sum(half[:, None] * _WEIGHTS * values)) + rest)

    bounds = [integral(math.log1p(number(row, "curvature")), f, least)]
    trade = number(row, "trade")
    if epsilon >= trade:
        second = integral(trade, 1, 0.0) if f == 2 else 0.0
        bounds.append(integral(0.0, f, least) + second)
    return min(1.0, *bounds)
