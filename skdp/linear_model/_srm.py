"""Stochastic recursive momentum: private (DP-SRM) and exact (STORM).

Algorithm 4 of the dissertation (ch. 4; STORM is Cutkosky & Orabona 2019). With B_t a fresh minibatch and every
v_t released::

    v_0 = mean over B_0 of clip(grad_i(theta_0), C1)                                                  + noise
    v_t = mean over B_t of (1 - g) clip(grad_i(theta_t) - grad_i(theta_{t-1}), C2) + g clip(grad_i(theta_t), C1)
          + (1 - g) v_{t-1}                                                                           + noise
    theta_{t+1} = theta_t - min(a / |d_t|, r_t) d_t,   d_t = v_t + gradient of the penalty at theta_t

a is the longest step and r_t the largest step size: zeta / (n0 L) and 1 / (2 n0 L) in the paper. v_{t-1} and
theta_{t-1} were released, so a record enters v_t by its fresh part only, a vector of norm (1 - g) C2 + g C1 over
the public batch size. The penalty is a function of theta alone, which is released.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.linear_model._descent import precision, scale_part
from skdp.linear_model._frame import Solution
from skdp.linear_model._ight import Rescaled
from skdp.linear_model._penalties import Penalty
from skdp.linear_model._progress import Monitor
from skdp.linear_model._scales import CLIP_FACTOR, Scales, given_scales, released_scales
from skdp.linear_model._steps import square
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import BatchGroup, BatchPlan, PrivacySession

__all__ = ["RecursiveMomentum", "Schedule", "recursive_momentum"]

# All found on hold-outs of the training data of a9a, and checked on those of ijcnn1 (user guide).
PASSES, EXACT_PASSES = 4.0, 20.0  # over the data, the first batch included
STEPS = 1.25  # planned, over `precision` ...
LEAST_STEPS, MOST_STEPS = 20, 2000  # ... between these
FIRST = 4.5  # first batch over the others
FIRST_WEIGHT = 1.45  # noise multiplier of the first release over the others'
WINDOW = 8.0  # momentum times the number of steps
LARGEST_CLIP, LEAST_CLIP = 1.57, 0.5  # over the median gradient norm at the start ...
PRECISION_PER_CLIP = 90.0  # ... by `precision`
DIFFERENCES = 0.55  # clip norm of differences times the number of steps, over the other clip norm
PATH = 45.0  # longest steps together, over 1 / row norm
RATE, DECAY = 1.5, 0.32  # largest step size over 1 / curvature; what it loses linearly to the end


@dataclass(frozen=True)
class Schedule:
    """Numbers of steps and records, from public numbers alone.

    Attributes
    ----------
    max_iter : int
        Planned steps; each uses one released v, so there is one release on a first batch and ``max_iter - 1`` on
        others.
    batch_size, initial_batch_size : int
    momentum : float
    """

    max_iter: int
    batch_size: int
    initial_batch_size: int
    momentum: float

    @classmethod
    def of(
        cls,
        n_units: int,
        seen: float,
        *,
        max_iter: int | str,
        batch_size: int | str,
        initial_batch_size: int | str,
        momentum: float | str,
    ) -> "Schedule":
        """Decide what "auto" is; ``seen`` is `precision`."""
        reads = (PASSES if math.isfinite(seen) else EXACT_PASSES) * n_units
        if not isinstance(max_iter, str):
            steps = int(max_iter)
        elif not isinstance(batch_size, str):
            steps = max(1, round(reads / min(int(batch_size), n_units) - FIRST + 1))
        else:
            steps = round(min(MOST_STEPS, max(LEAST_STEPS, STEPS * seen)))
        size = reads / (steps - 1 + FIRST) if isinstance(batch_size, str) else int(batch_size)
        size = min(n_units, max(1, round(size)))
        first = round(FIRST * size) if isinstance(initial_batch_size, str) else initial_batch_size
        g = min(1.0, WINDOW / steps) if isinstance(momentum, str) else float(momentum)
        return cls(steps, size, min(n_units, int(first)), g)

    def groups(self) -> list[BatchGroup]:
        """The releases to plan."""
        weight = FIRST_WEIGHT if self.max_iter > 1 else 1.0
        first = BatchGroup(1, self.initial_batch_size, weight, "first gradient")
        rest = BatchGroup(max(1, self.max_iter - 1), self.batch_size, 1.0, "steps")
        return [first, rest] if self.max_iter > 1 else [first]


class RecursiveMomentum:
    """The released v of recursive momentum, at one iterate after the other.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    loss : object from `skdp.losses`
    plans : sequence of BatchPlan
        Of the first release, and of the others.
    momentum, clip_norm, clip_diff_norm : float
        g in [0, 1], C1 and C2.
    """

    def __init__(
        self,
        session: PrivacySession,
        records: PrivateRecords,
        loss: Any,
        plans: tuple[BatchPlan, ...],
        *,
        momentum: float,
        clip_norm: float,
        clip_diff_norm: float,
    ) -> None:
        self._session, self._records, self._loss, self._plans = session, records, loss, plans
        self._clips = {
            "momentum": momentum,
            "clip_norm": clip_norm,
            "clip_diff_norm": clip_diff_norm,
        }
        self._previous: np.ndarray | None = None
        self._released: np.ndarray | None = None

    def at(self, theta: np.ndarray) -> np.ndarray:
        """Release v at the next iterate."""
        session, records = self._session, self._records
        if self._previous is None or self._released is None:
            batch = session.draw(self._plans[0], records)
            mean = records.mean_gradient(self._loss, theta, self._clips["clip_norm"], batch=batch)
            self._released = session.gaussian(mean, self._plans[0])
        else:
            batch = session.draw(self._plans[1], records)
            fresh = records.recursive_gradient(
                self._loss, theta, self._previous, batch=batch, **self._clips
            )
            kept = 1.0 - self._clips["momentum"]
            self._released = session.gaussian(fresh, self._plans[1]) + kept * self._released
        self._previous = theta
        return self._released


@dataclass(frozen=True)
class Steps:
    """Longest step, and largest step size by iteration."""

    length: float
    rate: float
    decay: float
    max_iter: int

    def move(self, theta: np.ndarray, direction: np.ndarray, iteration: int) -> np.ndarray:
        """Return the next iterate."""
        rate = self.rate * (1.0 - self.decay * iteration / self.max_iter)
        norm = math.sqrt(square(direction))
        return theta - (min(rate, self.length / norm) if norm else rate) * direction


def recursive_momentum(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    penalty: Penalty,
    theta: np.ndarray,
    monitor: Monitor,
    max_iter: int | str,
    batch_size: int | str,
    initial_batch_size: int | str,
    sampling: str,
    momentum: float | str,
    clip_norm: float | str,
    clip_diff_norm: float | str,
    learning_rate: float | str,
    max_step_norm: float | str,
    output: str,
) -> Solution:
    """Run (private) stochastic recursive momentum; an exact session gives STORM.

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
    max_iter, batch_size, initial_batch_size : int or "auto"
    sampling : {"Poisson", "without replacement"}
    momentum : float or "auto"
    clip_norm, clip_diff_norm : float or str
        C1 and C2; a word where they are to be found.
    learning_rate, max_step_norm : float or "auto"
    output : {"last", "random"}

    Returns
    -------
    Solution
    """
    plan = Schedule.of(
        records.n_units,
        precision(session, records, theta.size),
        max_iter=max_iter,
        batch_size=batch_size,
        initial_batch_size=initial_batch_size,
        momentum=momentum,
    )
    aside = scale_part(session, records, loss, clip_norm, learning_rate)
    plans = session.plan_batches(
        plan.groups(), sampling=sampling, n_units=records.n_units, share=1.0 - aside
    )
    # The paper draws the output from the iterates before the last one, the start among them; which one it is does
    # not depend on the records, so the steps after it are not taken. The claim is that of the plan.
    kept = plan.max_iter
    if output == "random":
        kept = int(session.integers(plan.max_iter, 1)[0])
    literal = not isinstance(learning_rate, str)
    scales = given_scales(float(clip_norm)) if not aside else released_scales(
        session, records, loss, theta, share=aside, literal=literal
    )
    clip, diff = clips(clip_norm, clip_diff_norm, scales, plan.max_iter,
                       precision(session, records, theta.size))
    steps = step_sizes(records, loss, penalty, scales, plan.max_iter, learning_rate, max_step_norm)
    inner = Rescaled(monitor, scales.intercept, records.fit_intercept)
    theta = inner.inward(theta)
    released = RecursiveMomentum(
        session,
        records.with_intercept(scales.intercept),
        loss,
        plans,
        momentum=plan.momentum,
        clip_norm=clip,
        clip_diff_norm=diff,
    )
    for iteration in range(kept):
        direction = released.at(theta) + penalty.gradient(theta)
        theta = steps.move(theta, direction, iteration)
        inner(iteration, theta)
    attributes = {
        "learning_rate_": steps.rate,
        "max_step_norm_": steps.length,
        "clip_norm_": clip,
        "clip_diff_norm_": diff,
        "momentum_": plan.momentum,
        "batch_size_": plan.batch_size,
        "initial_batch_size_": plan.initial_batch_size,
    }
    return Solution(inner.outward(theta), kept, attributes)


def clips(
    clip_norm: float | str, clip_diff_norm: float | str, scales: Scales, max_iter: int, seen: float
) -> tuple[float, float]:
    """C1 and C2, from public and released numbers."""
    if isinstance(clip_norm, str):
        factor = min(LARGEST_CLIP, max(LEAST_CLIP, seen / PRECISION_PER_CLIP))
        clip = factor * scales.clip_norm / CLIP_FACTOR
    else:
        clip = float(clip_norm)
    if isinstance(clip_diff_norm, str):
        return clip, DIFFERENCES * clip / max_iter
    return clip, float(clip_diff_norm)


def step_sizes(
    records: PrivateRecords,
    loss: Any,
    penalty: Penalty,
    scales: Scales,
    max_iter: int,
    learning_rate: float | str,
    max_step_norm: float | str,
) -> Steps:
    """Longest step and largest step size, from public and released numbers."""
    length = math.inf if isinstance(max_step_norm, str) else float(max_step_norm)
    if isinstance(max_step_norm, str) and scales.row:
        length = PATH / (scales.row * max_iter)
    if not isinstance(learning_rate, str):
        return Steps(length, float(learning_rate), 0.0, max_iter)
    row = math.hypot(scales.row, scales.intercept if records.fit_intercept else 0.0)
    # A group's gradient is a sum over its rows.
    unit = scales.clip_norm / CLIP_FACTOR / scales.gradient if scales.gradient else 1.0
    curvature = float(loss.smoothness) * row**2 * max(1.0, unit) + penalty.smoothness
    return Steps(length, RATE / curvature, DECAY, max_iter)
