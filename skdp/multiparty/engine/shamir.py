"""Shamir's secret sharing: k shares of a number, of which t tell nothing and t + 1 tell all.

A secret s becomes a polynomial f of degree t with f(0) = s and t further coefficients, uniform on the field.
Server i (1 .. k) gets f(i). Any t values of f are uniform and independent of s: for every s there is exactly
one choice of the coefficients that gives them. Shares of sums are sums of shares.

All shares of an opening are compared: k values lie on one polynomial of degree t if and only if all their
differences of order t + 1 vanish. Where they do not, some server computed wrongly, and nobody can say which.

References
----------
A. Shamir, "How to share a secret" (Communications of the ACM 22, 1979).
"""

from collections.abc import Sequence
from math import comb

from skdp.multiparty.engine.field import Elements, combine, random_elements
from skdp.privacy.noise import KeyStream

# Number of servers, and how many of them may be corrupted: less than half.
THRESHOLDS = {3: 1, 5: 2}


class Contradiction(ValueError):
    """The shares do not lie on one polynomial."""


def threshold_of(n_servers: int) -> int:
    """How many of this many servers may be corrupted."""
    if n_servers not in THRESHOLDS:
        raise ValueError(f"n_servers must be 3 or 5, got {n_servers!r}")
    return THRESHOLDS[n_servers]


def share(secrets: Elements, n_servers: int, threshold: int, stream: KeyStream) -> list[Elements]:
    """One array of shares for each server, of the same shape as the secrets."""
    coefficients = [random_elements(secrets.shape[1:], stream) for _ in range(threshold)]
    return [
        combine([x**power for power in range(threshold + 1)], [secrets, *coefficients])
        for x in range(1, n_servers + 1)
    ]


def recombine(shares: Sequence[Elements], threshold: int) -> Elements:
    """The secrets, from the shares of all servers in their order.

    Raises
    ------
    Contradiction
        If the shares do not lie on one polynomial of degree ``threshold``.
    """
    t = threshold
    differences = [(-1) ** j * comb(t + 1, j) for j in range(t + 2)]
    for first in range(len(shares) - t - 1):
        if combine(differences, list(shares[first : first + t + 2])).any():
            raise Contradiction("the shares contradict each other")
    # Lagrange's weights of the points 1 .. t + 1 at 0 are integers.
    weights = [(-1) ** (i - 1) * comb(t + 1, i) for i in range(1, t + 2)]
    return combine(weights, list(shares[: t + 1]))
