"""The minimiser of an l2-regularised mean loss, and the largest change that one unit can make.

Privacy
-------
Let F(theta) = (1/n) sum_i l_i(theta) + (alpha/2) ||theta - c||^2 with every coordinate penalised, the intercept
too, a public (or released) center c, 0 by default, and ||grad l_i|| <= G at every theta. F is alpha-strongly
convex, so for any theta with minimiser theta*

    ||theta - theta*|| <= ||grad F(theta)|| / alpha.                                                     (1)

Put the minimiser of a data set into the F of a neighbour: its gradient there is the unit's change of the gradient,
at most 2G/n if a unit was replaced and G/n if one came or went (n the same public number in both). By (1) exact
minimisers differ by at most factor * G / (n alpha), factor 2 or 1 (Chaudhuri, Monteleoni & Sarwate 2011). The
computed points have ||grad F|| <= tau, so each is within tau / alpha of its minimiser:

    Delta_theta = factor * G / (n alpha) + 2 tau / alpha.                                                 (2)

A unit that is a group has the loss l_i = mean of its rows' losses: a mean of gradients of norm <= G again has
norm <= G.

`skdp.kernels.minimizer` computes the points. Their tau follows from public numbers and holds on every data set.
"""

import numpy as np
from numpy.typing import ArrayLike

from skdp.kernels.minimizer import UNIT, Domain, Objective, lipschitz, solve
from skdp.kernels.protocols import Floats, is_cupy
from skdp.losses import Loss
from skdp.privacy.adjacency import factor
from skdp.privacy.bounded import BoundedStatistic, rounded_source
from skdp.privacy.rows import HoldsRows, Rows, canonical

__all__ = ["objective_of", "ridge_minimizer"]


def ridge_minimizer(
    records: HoldsRows,
    loss: Loss,
    *,
    alpha: float,
    row_norm: float,
    adjacency: str,
    mask: ArrayLike | None = None,
    center: ArrayLike | None = None,
) -> BoundedStatistic:
    """Minimiser of the mean loss plus ``alpha / 2 * ||theta - center||^2``, the intercept penalised too.

    Rows are restricted to ``mask``, then clipped to ``row_norm``, then the intercept's feature is appended.
    A row weighs nothing if its target is not finite, or is no class index 0, 1, ... of a classification loss.
    A group's loss is the mean over its rows.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
        Logistic, multinomial or Huber. The squared loss has unbounded gradients and is refused.
    alpha : float
        Weight of the penalty, > 0.
    row_norm : float
        Largest l2 norm of a row, > 0.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's. Where ``n_public`` was given, at most 16 ``n_public`` units are assumed.
    mask : ndarray of bool of shape (n_parameters,), default=None
        Coordinates that may differ from 0. Public or released.
    center : ndarray of shape (n_parameters,) or (n_parameters, n_classes), default=None
        Where the penalty is 0; None is the origin. Public or released.

    Returns
    -------
    BoundedStatistic
        Of shape (n_parameters,) or (n_parameters, n_classes), the intercept last; computed at its release.

    Raises
    ------
    ValueError
        For the squared loss, sample weights, add-remove without ``n_public``, or numbers out of range.

    Notes
    -----
    **Privacy.** With G the largest gradient norm of a unit (the loss's Lipschitz constant times
    ``hypot(row_norm, intercept_value)``) neighbours' minimisers differ by at most ``factor * G / (n_units *
    alpha)`` in l2 norm, factor 2 under replace-one and 1 otherwise (Chaudhuri, Monteleoni and Sarwate 2011).
    The solver's gap, which no data set can widen, is added. Proof: ``skdp.privacy.statistics.minimizer``.
    """
    rows = records._rows
    steepness = lipschitz(loss)
    for name, number in (("alpha", alpha), ("row_norm", row_norm)):
        if not 1e-50 <= number <= 1e50:
            raise ValueError(f"{name} must be a number between 1e-50 and 1e50, got {number!r}")
    if rows.weight is not None:
        raise ValueError("sample_weight is not supported: the minimiser weighs every unit alike")
    if adjacency == "add-remove" and rows.shape.n_public is None:
        raise ValueError("under adjacency='add-remove' give n_public, which the mean divides by")
    p, k = rows.shape.n_parameters, loss.n_outputs
    chosen = np.ones(p, dtype=bool) if mask is None else np.array(mask, dtype=bool)
    if chosen.shape != (p,):
        raise ValueError(f"mask must have shape ({p},), got {chosen.shape}")
    shape = (p,) if k == 1 else (p, k)
    middle = np.zeros(shape) if center is None else np.array(center, dtype=np.float64)
    if middle.shape != shape:
        raise ValueError(f"center must have shape {shape}, got {middle.shape}")
    domain = Domain(rows.shape, loss, float(alpha), float(row_norm), chosen, center=middle[chosen])
    solved: list[Floats] = []

    def value() -> Floats:
        if not solved:
            theta = np.zeros(shape)
            theta[chosen] = domain.center + solve(objective_of(domain, rows), domain.tau)
            theta.setflags(write=False)
            solved.append(theta)
        return solved[0]

    reach = domain.far + (domain.gradient + domain.tau) / domain.alpha  # by (1) at the center
    source = rounded_source(
        value, magnitude=reach, owner=rows, unit=rows.shape.unit, needs_public_n=rows.shape.n_public is None
    )
    n, gradient = rows.shape.n_units, steepness * domain.radius
    moved = factor(adjacency) * gradient / (n * domain.alpha) + 2 * domain.tau / domain.alpha
    if domain.far:  # the center is added in float64
        moved += 2 * UNIT * reach
    return BoundedStatistic.from_source(source, shape, l2=moved * (1 + 2.0**-40), adjacency=adjacency)


def objective_of(domain: Domain, rows: Rows, linear: Floats | None = None) -> Objective:
    """Read the records: private values, which no session has released."""
    X = canonical(rows.matrix.get() if is_cupy(rows.matrix) else rows.matrix)
    return domain.objective(X, np.asarray(rows.y), rows.groups, rows.n_real_units, linear)
