"""Noisy gradient descent and random round private SGD, the rivals of recursive momentum.

DP-GD (Wang, Ye & Xu 2017) takes a fixed number of steps on full gradients. Random round private SGD (Zhang,
Zheng, Mou & Wang 2017) takes steps on minibatches and keeps the iterate of a round that was drawn before
the data were touched. Both are a fixed plan of Gaussian releases, and the claim is that of the whole plan.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.linear_model.frame import Solution
from skdp.linear_model.ight.solver import Rescaled, step_rule
from skdp.linear_model.parts.penalties import Penalty
from skdp.linear_model.parts.progress import Monitor, announce
from skdp.linear_model.parts.scales import (
    CLIP_FACTOR,
    QUESTIONS,
    Scales,
    count_searches,
    given_scales,
    grown_share,
    released_scales,
)
from skdp.privacy import accounting
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import BatchGroup, PrivacySession

__all__ = ["Start", "begin", "descend", "precision", "random_round", "scale_part"]

# All found on hold-outs of the training data of a9a, ijcnn1 and MNIST.
PRECISION_PER_CLIP = 100.0  # of `precision`, for one median gradient norm of clip norm ...
LEAST_CLIP, LARGEST_CLIP = 0.5, 1.4  # ... between these
PRECISION_PER_STEP = 8.0
LEAST_STEPS, MOST_STEPS = 20, 100
ROUNDS = 500  # planned steps of random round SGD
PARTS = 64  # batches of which an epoch consists: 500 / 64 is about 8 data passes, as published
LEAST_BATCH = 64
WALK = 4.0  # how far all noise together may carry, over the first distance of the tuning-free steps
LARGEST_RATE = 5.0  # step size in 1 / curvature


@dataclass(frozen=True)
class Start:
    """What the first releases decided, in the units of a record with a rescaled intercept."""

    records: PrivateRecords
    scales: Scales
    clip_norm: float
    theta: np.ndarray
    monitor: Rescaled

    @property
    def rows_per_unit(self) -> float:
        """How much larger a unit's gradient is than a row's: 1 but for groups."""
        of_unit = self.scales.clip_norm / CLIP_FACTOR
        return max(1.0, of_unit / self.scales.gradient) if self.scales.gradient else 1.0

    @property
    def clip_factor(self) -> float:
        """Clip norm over the median gradient norm of the units at the start."""
        return self.clip_norm * CLIP_FACTOR / self.scales.clip_norm

    def curvature(self, loss: Any) -> float:
        """Smoothness of the mean loss, as far as the released scales tell."""
        row = math.hypot(self.scales.row, self.records.intercept_value * self.records.fit_intercept)
        return float(loss.smoothness) * row**2 * self.rows_per_unit


def precision(session: PrivacySession, records: PrivateRecords, size: int) -> float:
    """Public number that says how much a budget can see: units times mu over the root of the parameters.

    A gradient that takes the whole budget has noise of norm 2 clip_norm / precision under replace-one.
    """
    if session.exact:
        return math.inf
    return (
        records.n_units * accounting.gaussian_mu(session.epsilon, session.delta) / math.sqrt(size)
    )


def scale_part(
    session: PrivacySession, records: PrivateRecords, loss: Any, clip_norm: Any, learning_rate: Any
) -> float:
    """Share of mu^2 for the scales of the data; 0 where both numbers are given."""
    if not isinstance(clip_norm, str) and not isinstance(learning_rate, str):
        return 0.0
    return grown_share(session, records.n_units, QUESTIONS * count_searches(records, loss))


def begin(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    theta: np.ndarray,
    monitor: Monitor,
    clip_norm: float | str,
    learning_rate: float | str,
    share: float,
) -> Start:
    """Release the scales that are not given, and move the start into their units.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    loss : object from `skdp.losses`
    theta : ndarray
        Start, in the user's units.
    monitor : callable
    clip_norm, learning_rate : float or str
        With two numbers nothing is asked of the data, and the intercept multiplies 1.
    share : float
        Of `scale_part`.

    Returns
    -------
    Start
    """
    if share:
        literal = not isinstance(learning_rate, str)
        scales = released_scales(session, records, loss, theta, share=share, literal=literal)
    else:
        scales = given_scales(float(clip_norm))
    if isinstance(clip_norm, str):
        seen = precision(session, records, theta.size) / PRECISION_PER_CLIP
        clip = min(LARGEST_CLIP, max(LEAST_CLIP, seen)) * scales.clip_norm / CLIP_FACTOR
    else:
        clip = float(clip_norm)
    inner = Rescaled(monitor, scales.intercept, records.fit_intercept)
    records = records.with_intercept(scales.intercept)
    return Start(records, scales, clip, inner.inward(theta), inner)


def descend(
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
) -> Solution:
    """Take noisy steps on full gradients; all of the budget that the scales leave goes to them equally.

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
    learning_rate, clip_norm : float or str

    Returns
    -------
    Solution
    """
    seen = precision(session, records, theta.size) / PRECISION_PER_STEP
    automatic = round(min(MOST_STEPS, max(LEAST_STEPS, seen)))
    steps = automatic if isinstance(max_iter, str) else int(max_iter)
    aside = scale_part(session, records, loss, clip_norm, learning_rate)
    session.require_feasible(theta.size, steps, 1.0 - aside)
    announce(monitor, steps)
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
    point, size = start.theta, theta.size
    rule = step_rule(learning_rate, point, start.scales.distance, steps, size, size)
    plan = session.plan_gaussian(steps, 1.0 - aside)
    for iteration in range(steps):
        mean = start.records.mean_gradient(loss, point, start.clip_norm)
        gradient = session.gaussian(mean, plan) + penalty.gradient(point)
        point = rule.moved(rule.move(point, gradient, session.noise_std(mean, plan)))
        start.monitor(iteration, point)
    return Solution(
        start.monitor.outward(rule.output(point)),
        steps,
        {"learning_rate_": rule.learning_rate, "clip_norm_": start.clip_norm},
    )


def random_round(
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
    batch_size: int | str,
    sampling: str,
) -> Solution:
    """Take noisy steps on minibatches up to a round drawn beforehand, whose iterate is the result.

    The round R is uniform on 1..T and does not depend on the records, so the steps after it, of which nothing
    would be kept, are not taken. The noise, and the claim, are those of all T steps. Parameters as for
    `descend`, and:

    Parameters
    ----------
    batch_size : int or "auto"
        Expected number of units in a batch.
    sampling : {"Poisson", "without replacement"}
    """
    rounds = ROUNDS if isinstance(max_iter, str) else int(max_iter)
    fair = max(LEAST_BATCH, -(-records.n_units // PARTS))
    size = fair if isinstance(batch_size, str) else int(batch_size)
    aside = scale_part(session, records, loss, clip_norm, learning_rate)
    (plan,) = session.plan_batches(
        [BatchGroup(rounds, size)], sampling=sampling, n_units=records.n_units, share=1.0 - aside
    )
    session.require_feasible_batches(theta.size, [plan])
    last = 1 + int(session.integers(rounds, 1)[0])
    announce(monitor, last)
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
    point, rate = start.theta, learning_rate
    if isinstance(rate, str):
        # K classes: at 0 the softmax bends by 1 / K, at most by 1 / 2.
        flatter = max(1.0, loss.n_outputs / 2.0)
        walk = WALK * flatter * precision(session, records, theta.size) / start.clip_factor / rounds
        rate = min(LARGEST_RATE, walk) / (start.curvature(loss) + penalty.smoothness)
    for iteration in range(last):
        batch = session.draw(plan, start.records)
        mean = start.records.mean_gradient(loss, point, start.clip_norm, batch=batch)
        gradient = session.gaussian(mean, plan) + penalty.gradient(point)
        point = point - rate * gradient
        start.monitor(iteration, point)
    return Solution(
        start.monitor.outward(point),
        last,
        {"learning_rate_": rate, "clip_norm_": start.clip_norm},
    )
