"""Gradient descent with an adaptive privacy budget (DP-AGD, Lee & Kifer 2018).

A step releases the gradient and then chooses, privately, how far to go along it: among a few distances, 0 being
one of them. Where 0 wins the gradient was too noisy to help. It is measured again with the next part of the
budget, both measurements are averaged by their inverse variances, and all later gradients are released that
precisely. How often this happens depends on what was released, so the budget is spent as the run goes: the session
holds a total in mu^2 and admits every release before it happens (a filter), and the claim is the total.
"""

import math
from typing import Any

import numpy as np

from skdp.linear_model.descent.solver import Start, begin, scale_part
from skdp.linear_model.frame import Solution
from skdp.linear_model.parts.penalties import Penalty
from skdp.linear_model.parts.progress import Monitor
from skdp.linear_model.parts.steps import square
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["Purse", "adaptive_descent"]

# Found on hold-outs of the training data of a9a, ijcnn1 and MNIST, near the published ones.
STEPS = 30  # of which the first would be one, if no gradient were measured again
CHOICE = 0.25  # share of a step's budget that chooses the distance
GROWTH = 0.1  # of a gradient's budget, when it is measured again
CANDIDATES = 5  # distances besides 0, evenly spaced
# Largest distance at the start, in gradient norm / curvature, times root of the outputs.
REACH = 2.0
# So often the largest distance becomes 1.1 times the largest that was chosen.
EVERY, LONGER = 5, 1.1
SHORTER = 0.8  # what a lost choice makes of the largest distance
LOSS_BOUND = 3.0  # in losses of a model that knows nothing
# Penalties that are more loss bounds apart than this are hopeless, and need no digits.
_LARGEST_GAP = 2.0**20
_ALMOST_ALL = 1.0 - 2.0**-30  # so that shares which add up to all are not one ulp more


class Purse:
    """The share of a session's mu^2 that is left, and what a gradient and a choice cost.

    A mirror of the session's filter, which alone decides: it lets the run end before a release is refused.

    Parameters
    ----------
    share : float
        Of the session's mu^2, for all steps together.
    steps : int
        The first gradient and choice together cost ``share / steps``.
    """

    def __init__(self, share: float, steps: int) -> None:
        self.left = share * _ALMOST_ALL  # and `holds` is generous by less
        self.choice = CHOICE * self.left / steps
        self.gradient = (1.0 - CHOICE) * self.left / steps

    def holds(self, *costs: float) -> bool:
        """Whether all of ``costs`` can be paid."""
        return self.left * (1.0 + 2.0**-40) >= math.fsum(costs)

    def spend_the_rest(self) -> None:
        """Let the gradient of the last step cost all that its choice leaves."""
        self.gradient = self.left - self.choice

    def pay(self, cost: float) -> float:
        """Take ``cost`` out and return it."""
        self.left -= cost
        return cost


def adaptive_descent(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    penalty: Penalty,
    theta: np.ndarray,
    monitor: Monitor,
    max_iter: int | str,
    learning_rate: float | str,
    clip_norm: float | str,
    loss_bound: float | str,
) -> Solution:
    """Run DP-AGD until the budget does not hold another step, or for ``max_iter`` steps.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    loss : object from `skdp.losses`
    penalty : Penalty
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start.
    monitor : callable
        Called with the iteration and the released iterate.
    max_iter : int or "auto"
        The first step gets 1 / max_iter of the budget.
    learning_rate : float or "auto"
        Largest distance that the first steps may go.
    clip_norm : float or "adaptive"
    loss_bound : float or "auto"
        A unit's loss is clipped to [0, loss_bound] where distances are compared.

    Returns
    -------
    Solution
    """
    steps = STEPS if isinstance(max_iter, str) else int(max_iter)
    aside = scale_part(session, records, loss, clip_norm, learning_rate)
    purse = Purse(1.0 - aside, steps)
    _require_feasible(session, purse, theta.size)
    start = begin(
        session,
        records,
        loss,
        theta=theta,
        monitor=monitor,
        clip_norm=clip_norm,
        learning_rate=learning_rate,
        share=aside,
    )
    reach = learning_rate
    if isinstance(reach, str):
        downhill = start.scales.gradient * start.rows_per_unit / start.curvature(loss)
        reach = REACH * math.sqrt(loss.n_outputs) * downhill
    if isinstance(loss_bound, str):
        loss_bound = LOSS_BOUND * loss.start_value * start.rows_per_unit
    first = float(reach)
    line = _Line(session, start, loss, penalty, purse, float(loss_bound), first)
    distances: list[float] = []
    point, n_iter, moving = start.theta, 0, True
    most = math.inf if isinstance(max_iter, str) else steps
    while moving and n_iter < most and purse.holds(purse.gradient, purse.choice):
        if n_iter + 1 == most or not purse.holds(*2 * (purse.gradient, purse.choice)):
            purse.spend_the_rest()
        distance, point = line.step(point)
        moving, distances = distance > 0, [*distances, distance]
        start.monitor(n_iter, point)
        n_iter += 1
        if n_iter % EVERY == 0:
            line.reach = LONGER * max(distances[-EVERY:])
    return Solution(
        start.monitor.outward(point),
        n_iter,
        {
            "learning_rate_": first,
            "last_distance_": distances[-1],
            "clip_norm_": start.clip_norm,
            "loss_bound_": float(loss_bound),
        },
    )


class _Line:
    """One step: a gradient, and a distance along it; everything it returns is released."""

    def __init__(
        self,
        session: PrivacySession,
        start: Start,
        loss: Any,
        penalty: Penalty,
        purse: Purse,
        loss_bound: float,
        reach: float,
    ) -> None:
        self._session, self._records, self._loss = session, start.records, loss
        self._penalty, self._purse = penalty, purse
        self._bound, self._clip = loss_bound, start.clip_norm
        self.reach = reach

    def step(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the distance that was chosen, 0 where the budget ended before, and the point there."""
        purse = self._purse
        gradient = self._measure(point, purse.gradient)
        while True:
            distance, moved = self._choose(point, gradient)
            extra = GROWTH * purse.gradient
            if distance > 0 or not purse.holds(extra, purse.choice):
                return distance, moved
            self.reach *= SHORTER
            again = self._measure(point, extra)
            # By inverse variances, which are in proportion to what was paid.
            gradient = (purse.gradient * gradient + extra * again) / (purse.gradient + extra)
            purse.gradient += extra

    def _measure(self, point: np.ndarray, share: float) -> np.ndarray:
        plan = self._session.plan_gaussian(1, self._purse.pay(share), purpose="gradient")
        mean = self._records.mean_gradient(self._loss, point, self._clip)
        return self._session.gaussian(mean, plan)

    def _choose(self, point: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        direction = gradient + self._penalty.gradient(point)
        size = math.sqrt(square(direction))
        distances = self.reach * np.arange(CANDIDATES + 1) / CANDIDATES
        points = np.stack([point - far / max(size, 1e-300) * direction for far in distances])
        with np.errstate(over="ignore", invalid="ignore"):
            values = [self._penalty.value(each) for each in points]
        # Beyond what float64 holds, NaN included, a penalty counts as the largest.
        public = np.array([value if value < 1e100 else 1e100 for value in values])
        public = np.minimum(public - public.min(), _LARGEST_GAP * self._bound)
        losses = self._records.mean_losses(self._loss, points, self._bound)
        epsilon = self._session.selection_epsilon(1, self._purse.pay(self._purse.choice))
        scores = (-losses).shifted(-public)
        best = int(self._session.gumbel_top_k(scores, 1, epsilon, purpose="distance")[0])
        return float(distances[best]), points[best]


def _require_feasible(session: PrivacySession, purse: Purse, size: int) -> None:
    """Refuse a fit whose sampling error the budget cannot hold, before the first release.

    Every gradient is followed by a choice, so there are at most as many of each as choices can be paid; the
    error of a choice is that of 128 Gaussian values.
    """
    most = math.ceil(purse.left / purse.choice)
    session.require_feasible(size + 128, most, purse.gradient * most)
