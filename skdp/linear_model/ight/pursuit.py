"""Hard thresholding in a few rounds, for a model that keeps few of many features.

A round finds features at the current model, then fits all that were found by gradient steps on them alone.
Restricted rows are short, so these steps need little of the budget; and after each round residuals are smaller, so
that the next round can clip, and add noise, less: clip norms are released anew.

There are two ways to find features, and released scales say which has less noise. Where rows are spread over many
features (their sup norm is far below their l2 norm) the largest entries of the gradient are chosen by Gumbel
noise, rows clipped in the sup norm. Else the whole gradient is released by Gaussian noise, and features are
ranked by what all rounds have found.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.linear_model.frame import Solution
from skdp.linear_model.parts.progress import Monitor
from skdp.linear_model.parts.scales import (
    Scales,
    gradient_median,
    median,
    released_scales,
)
from skdp.linear_model.parts.steps import DistanceOverGradients, shrinkage, square
from skdp.linear_model.two_stage.solver import released_prior
from skdp.privacy import accounting
from skdp.privacy.bounded import Bounded
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession

__all__ = ["pays", "pursue", "require_room"]


@dataclass(frozen=True)
class Rounds:
    """Steps of each round's fit, and shares of what is left of mu^2 after the first scales."""

    steps: tuple[int, ...]
    fits: tuple[float, ...]
    finding: float

    def __len__(self) -> int:
        return len(self.steps)


PRIOR_SHARE = 0.005  # of a classifier's first intercept
SUP_SHARE = 0.01  # of the median sup norm of the gradients at the start
CLIP_SHARE = 0.015  # of the clip norms from the second round on
SCALE_SHARE = 0.015  # of the scales of the restricted rows
RANKED = Rounds((20, 20, 40), (0.02, 0.02, 0.2), 0.715)
CHOSEN = Rounds((20, 20, 20, 20, 40), (0.03, 0.03, 0.03, 0.03, 0.14), 0.695)
# A classifier's residuals shrink little from round to round.
CHOSEN_BY_CLASSIFIERS = Rounds((20, 40), (0.05, 0.21), 0.695)
SPREAD = 3.0  # least l2 norm of a gradient over its sup norm and sqrt(s), for Gumbel noise
SUP_CLIP = (0.5, 1.0)  # of regression and classification: sup-norm clip over the median
FIT_CLIP = (2.0, 3.0)  # the same: clip norm of the fits over that of the scales
START = (
    0.1  # first distance over that of the scales: it grows by itself, but noise never takes it back
)
CURVATURE = 0.8  # over smoothness times squared row norm a feature
SMALLER = 16.0  # the median gradient norm falls by less than this in a round
SHRINK = (
    2.0  # standard deviations; the steps gather more noise than one release of the same budget has
)
NEGLIGIBLE = 2.0**-40  # intercept's feature where features are chosen: no row is clipped for it


def pays(session: PrivacySession, records: PrivateRecords, n_kept: int) -> bool:
    """Whether rounds are better than many steps on all features, by public numbers.

    They are where the fits have little noise: where at most ``2 sqrt(n mu)`` coefficients, and at most a tenth of
    all, are kept. The factor, like every constant here, was chosen on synthetic data of other seeds and on a
    part held out of IMDb's training data.
    """
    mu = math.inf if session.exact else accounting.gaussian_mu(session.epsilon, session.delta)
    return 10 * n_kept <= records.n_features and n_kept**2 <= 4 * records.n_units * mu


def require_room(
    session: PrivacySession, records: PrivateRecords, s: int, n_outputs: int, share: float
) -> None:
    """Refuse rounds whose releases the budget cannot hold, before the first of them."""
    size, few = records.n_parameters * n_outputs, (s + 1) * n_outputs
    session.require_feasible(size, len(RANKED), share * RANKED.finding)
    session.require_feasible(few, sum(CHOSEN.steps), share * sum(RANKED.fits))


def pursue(
    session: PrivacySession,
    records: PrivateRecords,
    loss: Any,
    *,
    n_nonzero_coefs: int,
    scales: Scales,
    alpha: float,
    share: float,
    theta: np.ndarray,
    monitor: Monitor,
) -> Solution:
    """Run the rounds.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
        With the intercept's feature of ``scales``.
    loss : object from `skdp.losses`
    n_nonzero_coefs : int
    scales : Scales
        Released; the clip norm of the first gradient and bounds on the scales of the fits.
    alpha : float
    share : float
        Share of the session's mu^2 that everything here takes.
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Start, 0.
    monitor : callable
        Called with the iteration and the released iterate.

    Returns
    -------
    Solution
    """
    task = Task(session, records, loss, n_nonzero_coefs, alpha, share)
    between = (scales.gradient / math.sqrt(theta.size), scales.gradient)
    largest = task.sup_median(theta, share * SUP_SHARE, between)
    spread = SPREAD * largest * math.sqrt(n_nonzero_coefs) <= scales.gradient
    if task.classifier and records.fit_intercept and records.unit == "record":
        # At equal odds of unequal classes every gradient would show the odds, not the features.
        theta = theta.copy()
        theta[-1] = released_prior(session, records, loss, theta, share * PRIOR_SHARE)
    if spread:
        rounds = CHOSEN_BY_CLASSIFIERS if task.classifier else CHOSEN
        finder: Ranking | Choice = Choice(task, rounds, largest)
    else:
        rounds, finder = RANKED, Ranking(task, rounds=RANKED)
    clip_norm, n_iter, part = scales.clip_norm, 0, share * CLIP_SHARE / len(rounds)
    for k in range(len(rounds)):
        if k and not task.classifier:
            between = (clip_norm * 2.0 / SMALLER, clip_norm * 2.0)
            clip_norm = gradient_median(session, records, loss, theta, part / 2, between) / 2
        chosen = finder.find(theta, clip_norm, part / 2)
        fit = FitOnFeatures(task, chosen, scales, clip_norm, rounds.steps[k])
        shares = (share * SCALE_SHARE / len(rounds), share * rounds.fits[k])
        for iterate in fit.run(theta, *shares):
            monitor(n_iter, iterate)
            n_iter += 1
        theta = fit.found
        finder.learn(theta)
    attributes = {"learning_rate_": fit.learning_rate, "clip_norm_": scales.clip_norm}
    return Solution(theta, n_iter, attributes=attributes)


@dataclass(frozen=True)
class Task:
    """What does not change from round to round."""

    session: PrivacySession
    records: PrivateRecords
    loss: Any
    n_nonzero_coefs: int
    alpha: float
    share: float

    @property
    def classifier(self) -> bool:
        """Whether clip norms stay: clipped to the gradients of a frequent class, a rare one is lost."""
        return bool(self.loss.is_classification)

    def sup_median(self, theta: np.ndarray, share: float, between: tuple[float, float]) -> float:
        """Release the median sup norm of the rows' gradients at theta, the intercept's entry apart."""
        blind, start = self.blind(theta)

        def count(bound: float) -> Bounded:
            return blind.gradient_sup_norm_count(self.loss, start, bound)

        return median(self.session, share, count, between)

    def blind(self, theta: np.ndarray) -> tuple[PrivateRecords, np.ndarray]:
        """Records, and theta, with an intercept's feature that no gradient is clipped for."""
        start = theta.copy()
        start[self.records.n_features :] *= self.records.intercept_value / NEGLIGIBLE
        return self.records.with_intercept(NEGLIGIBLE), start


class Choice:
    """Choose features by Gumbel noise on the gradient's entries, rows clipped in the sup norm.

    Each of the s choices of a fit costs the same. They are divided among the rounds; one that falls on a feature
    that has been chosen is lost.
    """

    def __init__(self, task: Task, rounds: Rounds, largest: float) -> None:
        self._task, self._rounds, self._largest, self._round = task, len(rounds), largest, 0
        s = task.n_nonzero_coefs
        self._cost = task.session.selection_epsilon(s, task.share * rounds.finding)
        self._chosen = np.empty(0, dtype=np.int64)

    def find(self, theta: np.ndarray, clip_norm: float, share: float) -> np.ndarray:
        """Numbers of all features chosen so far, sorted."""
        task, s = self._task, self._task.n_nonzero_coefs
        if self._round and not task.classifier:
            between = (self._largest / SMALLER, self._largest)
            self._largest = task.sup_median(theta, share, between)
        before, self._round = self._round, self._round + 1
        wanted = -(-s * self._round // self._rounds) + (-s * before // self._rounds)
        if wanted:
            blind, start = task.blind(theta)
            clip = SUP_CLIP[task.classifier] * self._largest
            scores = blind.gradient_scores(task.loss, start, clip)
            new = task.session.gumbel_top_k(scores, wanted, self._cost)
            self._chosen = np.union1d(self._chosen, new)
        return self._chosen

    def learn(self, theta: np.ndarray) -> None:
        """Nothing: a choice leaves no numbers."""


class Ranking:
    """Rank features by a weighted mean of ``theta - gradient / curvature`` over the rounds.

    A gradient counts with the inverse of its noise variance. The curvature is the slope of the first gradient
    against the first fit, on the features that it ranked highest.
    """

    def __init__(self, task: Task, rounds: Rounds = RANKED) -> None:
        self._task = task
        share = task.share * rounds.finding
        self._plan = task.session.plan_gaussian(len(rounds), share)
        self._first: np.ndarray | None = None
        self._curvature = 0.0
        self._points: Any = 0.0
        self._gradients: Any = 0.0

    def find(self, theta: np.ndarray, clip_norm: float, share: float) -> np.ndarray:
        """Numbers of the features of largest evidence, sorted."""
        task, d = self._task, self._task.records.n_features
        mean = task.records.mean_gradient(task.loss, theta, clip_norm)
        gradient = task.session.gaussian(mean, self._plan)
        gradient[:d] += task.alpha * theta[:d]
        self.add(theta[:d], gradient[:d], task.session.noise_std(mean, self._plan))
        return self.largest(task.n_nonzero_coefs)

    def add(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> None:
        """Take note of a gradient released at ``theta``."""
        weight = 1.0 / noise_std**2 if noise_std else 1.0
        self._points = self._points + weight * theta
        self._gradients = self._gradients + weight * gradient
        self._first = gradient if self._first is None else self._first

    def learn(self, theta: np.ndarray) -> None:
        """Fix the curvature from the first gradient, at 0, and the fit that followed."""
        if not self._curvature and self._first is not None:
            slope = -float(np.sum(self._first * theta[: len(self._first)]))
            self._curvature = max(slope, 0.0) / max(square(theta[: len(self._first)]), 1e-300)

    def largest(self, s: int) -> np.ndarray:
        """Numbers of the s features of largest evidence, sorted; ties go to the lowest number."""
        values = self._curvature * self._points - self._gradients
        size = np.abs(values) if values.ndim == 1 else np.sqrt(np.sum(values**2, axis=1))
        return np.sort(np.argsort(-size, kind="stable")[:s])


class FitOnFeatures:
    """Gradient steps on released features only, then shrinkage of what may be noise."""

    def __init__(
        self, task: Task, chosen: np.ndarray, scales: Scales, clip_norm: float, steps: int
    ) -> None:
        self._task, self._chosen, self._steps = task, chosen, steps
        self._outer, self._clip_norm = scales, clip_norm
        self.learning_rate = 0.0
        self.found = np.empty(0)

    def run(self, theta: np.ndarray, scale_share: float, share: float) -> Iterator[np.ndarray]:
        """Yield the iterates, 0 elsewhere; `found` is the result."""
        session, records, loss = self._task.session, self._task.records, self._task.loss
        d, s, alpha = records.n_features, len(self._chosen), self._task.alpha
        places = np.append(self._chosen, np.arange(d, records.n_parameters))
        few = records.restricted(self._chosen)
        scales = self._scales(few, theta[places], scale_share, math.sqrt(s / d))
        few = few.with_intercept(scales.intercept)
        factor = records.intercept_value / scales.intercept if records.fit_intercept else 1.0
        inner = theta[places]
        inner[s:] *= factor

        def outward(point: np.ndarray) -> np.ndarray:
            whole = np.zeros_like(theta)
            whole[places] = point
            whole[d:] /= factor
            return whole

        clip = FIT_CLIP[self._task.classifier] * scales.clip_norm
        size, start = inner.size, START * scales.distance
        rule = DistanceOverGradients(inner, start, self._steps, size, size)
        plan = session.plan_gaussian(self._steps, share, purpose="refit")
        for _ in range(self._steps):
            mean = few.mean_gradient(loss, inner, clip)
            gradient = session.gaussian(mean, plan)
            gradient[:s] += alpha * inner[:s]
            noise = session.noise_std(mean, plan)
            inner = rule.moved(rule.move(inner, gradient, noise))
            yield outward(inner)
        found = rule.output(inner)
        curvature = CURVATURE * loss.smoothness * scales.row**2 / s + alpha
        found[:s] *= shrinkage(found[:s], SHRINK * noise / math.sqrt(self._steps) / curvature)
        self.learning_rate = rule.learning_rate
        self.found = outward(found)

    def _scales(self, few: PrivateRecords, theta: np.ndarray, share: float, least: float) -> Scales:
        """Scales of the restricted records.

        At most those of the whole, and at least, as most restricted rows of sparse data may be empty,
        those of rows whose features are all alike.
        """
        row, unit = self._outer.row, 2 * self._clip_norm
        of_unit, of_row = (least * unit, unit), (least * unit, unit)
        if few.unit == "group":  # what is known of its rows is older
            of_row = (least * self._outer.gradient / SMALLER, self._outer.gradient)
        return released_scales(
            self._task.session,
            few,
            self._task.loss,
            theta,
            share=share,
            row_between=(least * row, row),
            gradient_between=of_row,
            unit_between=of_unit,
        )
