"""The cost of the best of a random number of private trials, by a pointwise bound.

A trial draws a candidate, fits it and scores it, all of it private: its outputs have the law Q on one data set and
Q' on a neighbour. K trials are made independently, K is drawn from a law that depends on nothing (`TrialCount`),
and the trial with the best score is released, without K. Ties are broken by independent uniform numbers.

Privacy
-------
Let s(y) = Q(score <= y) and s'(y) = Q'(score <= y). P(best <= y) = E s^K = phi(s), so the released trial has the
density q phi'(s), with q the density of Q, and q' phi'(s') on the neighbour. For every epsilon

    delta(epsilon) = integral of [q phi'(s) - e^epsilon q' phi'(s')]_+ .

1. Of all events of probability s under Q, let t(s) be the least probability under Q'. Then s' >= t(s), and
   phi'(s') >= phi'(t(s)) because phi' increases.
2. Let g(w) = max over s in [0, 1] of [phi'(s) - w phi'(t(s))]_+ . The integrand is at most q g(e^epsilon q'/q).
3. g is a maximum of lines that fall in w, and of 0: convex, falling, and 0 from some w on. It is therefore a sum
   of hinges, g(w) = sum_j a_j [1 - w / w_j]_+ with a_j > 0 and sum_j a_j = g(0) = E K. Hence

    delta(epsilon) <= sum_j a_j H(epsilon - log w_j),   H(x) = integral of [q - e^x q']_+ .

H is the profile of one trial: any upper bound of it, at negative x too, gives an upper bound. t follows from the
profile of the reverse direction, 1 - t <= e^x (1 - s) + H'(x) for every x. The same holds with Q and Q'
exchanged, so a profile that is not symmetric needs both (`best_of_delta` takes one direction).

*mu-GDP trials*: H(x) = Phi(mu/2 - x/mu) - e^x Phi(-mu/2 - x/mu) and t(s) = Phi(Phi^-1(s) - mu), in
both directions.

Trials of which only a dominating pair or (epsilon, delta) is known: `skdp.privacy.mechanisms.best_of.pairs`.

*Errors of drawn noise.* Trials that are drawn agree with the exact ones up to a factor e^a, except for outputs of
probability b that may not be drawn on the neighbour (`skdp.privacy.budget.filters`). Let V be the outputs of both,
and q1 = min(q, e^a q_exact on V). Then q - q1 has mass at most b, and q' >= e^-a q'_exact on V, hence

    delta(epsilon) <= b E K + e^a sum_j a_j H(epsilon - 2 a - log w_j).

An event of probability s has at least e^-a (s - b) within V under the exact Q, so s' >= e^-a t(e^-a (s - b)).
Hence 1 - s' is at most a + 1 - t, taken at 1 - s + a + b.

*Numbers.* With u = 1 - s and v = 1 - t, the points (phi'(t), phi'(s)) form a curve from (E K, E K) down.
Between two nodes both coordinates fall, and the slope of the curve lies between the bounds that its factors have
at the nodes. The curve thus lies below two lines, and the corner where they meet is added to the nodes. The upper
hull of all these points is above the curve, and a hinge is an edge of the hull: g is bounded from above, and
nothing else is approximated. The error is of second order in the width of a cell. Sums are raised by 1e-9, far
above their rounding.

Why the coarser bound of Koskela, Redberg and Wang (2024), E K H(epsilon - log C) with C the largest w_j, is
weaker: it moves all hinges to the largest w_j.

References
----------
Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy" (2022): the laws of K, and density
and RDP of the released trial.
Koskela, Redberg and Wang, "Privacy profiles for private selection" (2024): the coarser bound.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from skdp.kernels.protocols import Floats
from skdp.privacy.mechanisms.best_of.trials import TrialCount

Profile = Callable[[Floats], Floats]
Error = tuple[float, float]

# The relative rounding error of a sum of hinges is below 1e-11.
_UP = 1.0 + 1e-9
# A normal tail is off by less than this part at the arguments that matter, with a wide margin.
_TAIL_ERROR = 1e-12
# The curve has this many nodes, which is a choice: more nodes lower the total by less than 1e-4 of itself from
# 0.05 to 10.
_NODES = 2000
_LOWEST, _HIGHEST = (-37.5, 8.3)  # normal quantiles of u at the outer nodes: u is then 0 or 1 in float64
_EVEN = 0.02  # weight of the quantile itself in the distance of nodes, where the curve's logarithms have weight 1


class Hinges(NamedTuple):
    """The function g of the module's docstring, sum_j ``rises[j]`` [1 - w e^-``logs[j]``]_+ ."""

    rises: Floats
    logs: Floats


def hinges(trials: TrialCount, u: Floats, v: Floats, least: Floats, most: Floats) -> Hinges:
    """An upper bound of g from nodes of the curve and bounds of its derivative.

    Parameters
    ----------
    trials : TrialCount
    u, v : ndarray of shape (n + 1,)
        Values of 1 - s and of 1 - t or more, not decreasing. u begins at 0, and after the last node v counts as 1.
    least, most : ndarray of shape (n,)
        Bounds of dv/du between two nodes, positive.
    """
    top, low = trials.slope(u), trials.slope(v)
    wu, wv, power = trials.weight(u), trials.weight(v), trials.shape + 2
    steep = (wv[1:] / wu[:-1]) ** power / least
    flat = (wv[:-1] / wu[1:]) ** power / most
    # The lines of slope `steep` from the right node's point and of slope `flat` from the left node's meet here.
    gap = top[:-1] - top[1:] - flat * (low[:-1] - low[1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        at = low[1:] + np.maximum(gap, 0.0) / (steep - flat)
    at = np.where(np.isfinite(at), np.clip(at, low[1:], low[:-1]), low[1:])
    corner = np.minimum(top[:-1], top[:-1] - flat * (low[:-1] - at))
    end = trials.slope(np.ones(1))
    x = np.concatenate([[0.0], end, at, low])
    y = np.concatenate([[0.0], top[-1:], corner, top])
    order = np.lexsort((-y, x))
    return _hull(x[order].tolist(), y[order].tolist())


def _hull(x: list[float], y: list[float]) -> Hinges:
    """The edges of the upper hull of points in the order of x, up to the highest one."""
    kept_x, kept_y = [x[0]], [y[0]]
    for a, b in zip(x[1:], y[1:]):
        if b <= kept_y[-1]:  # further to the right and not higher
            continue
        while len(kept_x) > 1 and (kept_y[-1] - kept_y[-2]) * (a - kept_x[-1]) <= (b - kept_y[-1]) * (
            kept_x[-1] - kept_x[-2]
        ):
            kept_x.pop()
            kept_y.pop()
        if len(kept_x) > 1 and a <= kept_x[-1]:  # above the last one
            kept_x.pop()
            kept_y.pop()
        kept_x.append(a)
        kept_y.append(b)
    rises, runs = np.diff(kept_y), np.diff(kept_x)
    return Hinges(rises, np.log(rises / runs))


def best_of_delta(found: Hinges, profile: Profile, epsilon: float, *, error: Error = (0.0, 0.0)) -> float:
    """Upper bound of delta at ``epsilon`` in one direction.

    Parameters
    ----------
    found : Hinges
        With the error in the curve already.
    profile : callable ndarray -> ndarray
        Upper bound of the profile of one exact trial, at all real arguments.
    epsilon : float
    error : (float, float), default=(0, 0)
        The a and b of the module's docstring.
    """
    a, b = error
    exact = float(found.rises @ profile(epsilon - 2.0 * a - found.logs))
    return min(1.0, (math.exp(a) * exact + float(found.rises.sum()) * b) * _UP)


# ---------------------------------------------------------------------- trials that are mu-GDP


def gaussian_profile(mu: float, x: Floats) -> Floats:
    """Upper bound of the profile of mu-GDP at any real x."""
    near = ndtr(0.5 * mu - x / mu)
    found = near - np.exp(np.minimum(x + log_ndtr(-0.5 * mu - x / mu), 0.0))
    return np.asarray(np.clip(found, 0.0, 1.0) + _TAIL_ERROR * near)


def gaussian_hinges(trials: TrialCount, mu: float, error: Error = (0.0, 0.0)) -> Hinges:
    """The hinges of mu-GDP trials.

    With u = Phi(x), 1 - t = Phi(x + mu), and its derivative in u is e^(-mu x - mu^2 / 2).
    """
    a, shift = error[0], sum(error)
    start = max(_LOWEST, float(ndtri(shift))) if shift > 0.0 else _LOWEST
    x = _even_nodes(trials, np.linspace(start, _HIGHEST, 2 * _NODES), mu)
    u = np.maximum(ndtr(x) - shift, 0.0)
    u[0] = 0.0
    v = np.minimum(ndtr(x + mu) + a, 1.0)
    derivative = np.exp(np.clip(-mu * x - 0.5 * mu * mu, -600.0, 600.0))
    return hinges(trials, u, v, derivative[1:], derivative[:-1])


def _even_nodes(trials: TrialCount, x: Floats, mu: float) -> Floats:
    """Normal quantiles between which the logarithms of both coordinates of the curve fall by the same amount."""
    both = np.log(trials.weight(ndtr(x))) + np.log(trials.weight(ndtr(x + mu)))
    found = np.interp(np.linspace(0.0, 1.0, _NODES), _share(both + _EVEN * x), x)
    return np.asarray(found)


def _share(values: Floats) -> Floats:
    """Increasing values as shares of their range."""
    share: Floats = (values - values[0]) / (values[-1] - values[0])
    return share


def best_of_gaussian(trials: TrialCount, mu: float, epsilon: float, error: Error = (0.0, 0.0)) -> float:
    """Upper bound of delta at ``epsilon`` of the best of K trials that are each mu-GDP.

    Parameters
    ----------
    trials : TrialCount
    mu : float > 0
    epsilon : float >= 0
    error : (float, float), default=(0, 0)
        How far drawn noise may be from exact noise, in one trial.

    Examples
    --------
    >>> from skdp.privacy.mechanisms.best_of.bound import best_of_gaussian
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> best_of_gaussian(TrialCount(10), 0.177, 1.0) < 1e-5 < best_of_gaussian(TrialCount(10), 0.18, 1.0)
    True
    """
    found = gaussian_hinges(trials, mu, error)
    return best_of_delta(found, lambda x: gaussian_profile(mu, x), epsilon, error=error)
