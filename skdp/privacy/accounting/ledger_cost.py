"""The cost of ledger rows: the sum of their mu^2, or basic composition if that is less.

A row is a mapping of built-in types, see `skdp.privacy.accounting.releases`: `name`, `count`, the parameter of its
kind, and `sampling` ("full batch" if absent). Other keys are for people and the recheck.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from skdp.privacy.accounting.gaussian import compose_mu, gaussian_delta, gaussian_epsilon
from skdp.privacy.accounting.releases import Row, releases_of


def rows_mu(rows: Sequence[Row]) -> float:
    """The mu of all releases of the ledger together, rounded up.

    Examples
    --------
    >>> from skdp.privacy.accounting import rows_mu
    >>> round(rows_mu([{"name": "gaussian", "noise_multiplier": 10.0, "count": 100}]), 9)
    1.0
    """
    return compose_mu(release.mu() for release in releases_of(rows))


def _split_pure(rows: Sequence[Row]) -> tuple[float, float, float]:
    """The mu of all rows, the mu of the rows without a pure epsilon, and the sum of the other rows' epsilons."""
    releases = releases_of(rows)
    everything = compose_mu(release.mu() for release in releases)
    epsilons = [release.pure_epsilon() for release in releases]
    mu = compose_mu(r.mu() for r, epsilon in zip(releases, epsilons) if epsilon is None)
    exact = sum((epsilon for epsilon in epsilons if epsilon is not None), Fraction(0))
    pure = float(exact)
    return everything, mu, pure if Fraction(pure) >= exact else math.nextafter(pure, math.inf)


def rows_epsilon(rows: Sequence[Row], delta: float) -> float:
    """Smallest epsilon proven for the rows at `delta`, rounded up.

    Two bounds hold: everything in mu-GDP; or the Gaussian rows in mu-GDP and the pure epsilons
    added to that. The second is the smaller one for few pure releases, and the only one at delta 0.

    Parameters
    ----------
    rows : sequence of dict
    delta : float in [0, 1)

    Returns
    -------
    float
        inf if nothing finite holds.

    Examples
    --------
    >>> from skdp.privacy.accounting import rows_epsilon
    >>> rows_epsilon([{"name": "laplace", "epsilon": 0.5, "count": 2}], 0.0)
    1.0
    """
    everything, mu, pure = _split_pure(rows)
    return min(gaussian_epsilon(everything, delta), gaussian_epsilon(mu, delta) + pure)


def rows_delta(rows: Sequence[Row], epsilon: float) -> float:
    """Smallest delta proven for the rows at `epsilon`; the two bounds of `rows_epsilon`.

    Examples
    --------
    >>> from skdp.privacy.accounting import rows_delta
    >>> rows_delta([{"name": "laplace", "epsilon": 0.5, "count": 1}], 1.0)
    0.0
    """
    everything, mu, pure = _split_pure(rows)
    delta = gaussian_delta(everything, epsilon)
    if pure < epsilon or (pure == epsilon and mu == 0.0):
        delta = min(delta, gaussian_delta(mu, epsilon - pure))
    return min(1.0, delta * (1.0 + 1e-11))
