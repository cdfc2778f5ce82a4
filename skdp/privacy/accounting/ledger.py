"""What a list of ledger rows costs: one mu^2 per row, added up; basic composition where it is less.

A row is a dict of built-in types: `name`, `count`, a parameter, and `sampling` ("full batch" if absent).
The parameter is `noise_multiplier` of a "gaussian" release (standard deviation over L2 sensitivity), or
`epsilon` of one release: bounded range for one choice of "gumbel_top_k", pure for "laplace" and for an
"above_threshold" round; "sampled_pure" is a pure mechanism on a fresh uniform sample, whose `epsilon` is
amplified already; "objective_perturbation" is (`epsilon`, `delta`)-DP and has no mu. Other keys are for the
reader and the recheck.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.gaussian import (
    bounded_range_mu,
    compose_mu,
    gaussian_delta,
    gaussian_epsilon,
    pure_mu,
)

__all__ = [
    "APPROXIMATE_DP",
    "FRESH_UNIFORM",
    "FULL_BATCH",
    "PURE_DP",
    "check_row",
    "row_sampling",
    "rows_delta",
    "rows_epsilon",
    "rows_mu",
]

FULL_BATCH = "full batch"
FRESH_UNIFORM = "fresh uniform"
PURE_DP = ("laplace", "above_threshold", "sampled_pure")
_PURE = (*PURE_DP, "gumbel_top_k")
# An (epsilon, delta)-DP release of which no mu is proven.
APPROXIMATE_DP = ("objective_perturbation",)
_PARAMETER = {
    "gaussian": "noise_multiplier",
    **dict.fromkeys((*_PURE, *APPROXIMATE_DP), "epsilon"),
}


def check_row(row: Mapping[str, Any]) -> tuple[str, float, int]:
    """Name, parameter and count of a ledger row.

    Raises
    ------
    ValueError
        If the row names no known mechanism or a value is out of range.
    """
    name = row.get("name")
    if name not in _PARAMETER:
        raise ValueError(f"name of a ledger row must be one of {sorted(_PARAMETER)}, got {name!r}.")
    key = _PARAMETER[name]
    if key not in row:
        raise ValueError(f"A {name!r} row needs {key!r}.")
    parameter, count = float(row[key]), row.get("count", 1)
    if not parameter >= 0.0:
        raise ValueError(f"{key} of a {name!r} row must be >= 0, got {parameter!r}.")
    if int(count) != count or count < 0:
        raise ValueError(f"count of a {name!r} row must be an integer >= 0, got {count!r}.")
    return name, parameter, int(count)


def row_sampling(row: Mapping[str, Any]) -> str:
    """The sampling that an accountant must still account for; none where epsilon is amplified."""
    sampling = str(row.get("sampling", FULL_BATCH))
    amplified = row.get("name") == "sampled_pure" and sampling == FRESH_UNIFORM
    return FULL_BATCH if amplified else sampling


def _row_mu(row: Mapping[str, Any]) -> float:
    name, parameter, count = check_row(row)
    sampling = row_sampling(row)
    if sampling != FULL_BATCH:
        raise UnsupportedAccounting(
            f"sampling {sampling!r} has no mu; use skdp.privacy.accounting.adapter."
        )
    if count == 0:
        return 0.0
    if name in PURE_DP:
        return pure_mu(parameter, count)
    if name == "gaussian":
        mu = 1.0 / parameter if parameter > 0.0 else math.inf
    elif name in APPROXIMATE_DP:
        mu = math.inf
    else:
        mu = bounded_range_mu(parameter)
    return math.sqrt(count) * mu


def rows_mu(rows: Sequence[Mapping[str, Any]]) -> float:
    """The mu of all releases of the ledger together, rounded up.

    Examples
    --------
    >>> from skdp.privacy.accounting import rows_mu
    >>> round(rows_mu([{"name": "gaussian", "noise_multiplier": 10.0, "count": 100}]), 9)
    1.0
    """
    return compose_mu(_row_mu(row) for row in rows)


def _split_pure(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """The mu of the Gaussian rows and the sum of the pure epsilons of the others."""
    parts = [check_row(row) for row in rows]
    mu = rows_mu([row for row in rows if row["name"] not in _PURE])
    terms = [(parameter, count) for name, parameter, count in parts if name in _PURE and count]
    if any(parameter == math.inf for parameter, _ in terms):
        return mu, math.inf
    exact = sum((Fraction(parameter) * count for parameter, count in terms), Fraction(0))
    pure = float(exact)
    return mu, pure if Fraction(pure) >= exact else math.nextafter(pure, math.inf)


def rows_epsilon(rows: Sequence[Mapping[str, Any]], delta: float) -> float:
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
    mu, pure = _split_pure(rows)
    return min(gaussian_epsilon(rows_mu(rows), delta), gaussian_epsilon(mu, delta) + pure)


def rows_delta(rows: Sequence[Mapping[str, Any]], epsilon: float) -> float:
    """Smallest delta proven for the rows at `epsilon`; the two bounds of `rows_epsilon`.

    Examples
    --------
    >>> from skdp.privacy.accounting import rows_delta
    >>> rows_delta([{"name": "laplace", "epsilon": 0.5, "count": 1}], 1.0)
    0.0
    """
    mu, pure = _split_pure(rows)
    delta = gaussian_delta(rows_mu(rows), epsilon)
    if pure < epsilon or (pure == epsilon and mu == 0.0):
        delta = min(delta, gaussian_delta(mu, epsilon - pure))
    return min(1.0, delta * (1.0 + 1e-11))
