"""Hard thresholding in a few rounds, for a model that keeps few of many features.

A round finds features at the current model, then fits all that were found by gradient steps on them alone.
Restricted rows are short, so these steps need little of the budget. After each round residuals are smaller. Clip
norms are then released anew, so that the next round clips, and adds noise, less.

There are two ways to find features, and released scales say which has less noise. Where rows are spread over many
features (their sup norm is far below their l2 norm) the largest entries of the gradient are chosen by Gumbel
noise, rows clipped in the sup norm. Else the whole gradient is released by Gaussian noise, and features are ranked
by the releases of all rounds.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting.loop import NoisyGradient, square
from skdp.fitting.refit import Refit, refit
from skdp.fitting.scales import Between, Scales, released_prior
from skdp.fitting.search import noisy_search
from skdp.fitting.task import Task
from skdp.losses import is_shipped
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import gradient_scores


@dataclass(frozen=True)
class Rounds:
    """Steps of each round's fit, and shares of the mu^2 that is left after the first scales."""

    steps: tuple[int, ...]
    fits: tuple[float, ...]
    finding: float

    def __len__(self) -> int:
        return len(self.steps)


# All chosen on synthetic data of other seeds and on a part held out of IMDb's training data.
# The first four are shares of the mu^2 that the first scales leave.
PRIOR_SHARE = 0.005  # share for a classifier's first intercept
SUP_SHARE = 0.01  # share for the median sup norm of the gradients at the start
CLIP_SHARE = 0.015  # share for the clip norms from the second round on
SCALE_SHARE = 0.015  # share for the scales of the restricted rows
# Steps of each fit, shares of the fits, and share of finding features.
RANKED = Rounds((20, 20, 40), (0.02, 0.02, 0.2), 0.715)
CHOSEN = Rounds((20, 20, 20, 20, 40), (0.03, 0.03, 0.03, 0.03, 0.14), 0.695)
# A classifier's residuals shrink little from round to round.
CHOSEN_BY_CLASSIFIERS = Rounds((20, 40), (0.05, 0.21), 0.695)
SPREAD = 3.0  # least l2 norm of gradients for Gumbel noise, over sup norm and sqrt(s)
SUP_CLIP = (0.5, 1.0)  # sup-norm clip over the median: for regression and classification
SMALLER = 16.0  # largest factor by which the median gradient norm falls in a round
NEGLIGIBLE = 2.0**-40  # intercept's feature while features are chosen: it clips no row


def check_feasible(budget: BudgetSplit, records: PrivateRecords, s: int, n_outputs: int) -> None:
    """Refuse rounds whose releases the budget cannot hold, before the first of them."""
    size, few = records.n_parameters * n_outputs, (s + 1) * n_outputs
    budget.require_feasible(size, len(RANKED), RANKED.finding)
    budget.require_feasible(few, sum(CHOSEN.steps), sum(RANKED.fits))


def pursue(task: Task, s: int, scales: Scales) -> Solution:
    """Run the rounds.

    Parameters
    ----------
    task : Task
        Its records have the intercept's feature of ``scales``, and its theta is 0. All of its budget is used.
    s : int
        Number of features to keep.
    scales : Scales
        Released: the clip norm of the first gradient, and bounds on the scales of the fits.
    """
    budget, records, loss, theta = task.budget, task.records, task.loss, task.theta
    between = (scales.gradient / math.sqrt(theta.size), scales.gradient)
    sup, prior_budget, clip_budget = budget.split(sup=SUP_SHARE, prior=PRIOR_SHARE, clip=CLIP_SHARE)
    largest = sup_median(replace(task, budget=sup), theta, between)
    one_each = records.shape.fit_intercept and records.shape.unit == "record"
    if is_shipped(loss) and loss.is_classification and one_each:
        # Without the prior, gradients of unequal classes would show the class frequencies, not the features.
        prior = theta.copy()
        prior[-1] = released_prior(prior_budget, records, loss, theta)
        theta = prior
    if SPREAD * largest * math.sqrt(s) <= scales.gradient:
        rounds = CHOSEN_BY_CLASSIFIERS if loss.is_classification else CHOSEN
        finder: Ranking | RoundsChoice = RoundsChoice(task, s, rounds, largest)
    else:
        rounds, finder = RANKED, Ranking(task, s)
    clip_norm, n_iter, part = scales.clip_norm, 0, clip_budget.equal(len(rounds)).equal(2)
    for k in range(len(rounds)):
        # A classifier's clip norm stays. A smaller one would fit the frequent class and cut off the rare one.
        if k and not loss.is_classification:
            between = (clip_norm * 2.0 / SMALLER, clip_norm * 2.0)
            count = partial(records.norm_count, loss=loss, theta=theta)
            clip_norm = noisy_search(part, count, between=between) / 2
        chosen = finder.find(theta, clip_norm, part)
        of_scales, of_fit = budget.split(scales=SCALE_SHARE, fit=rounds.fits[k])
        again = Refit(
            of_scales.equal(len(rounds)),
            of_fit,
            rounds.steps[k],
            scales_between(records, scales, clip_norm, math.sqrt(len(chosen) / records.n_features)),
        )
        found = refit(replace(task, theta=theta), chosen, again, first=n_iter)
        theta, n_iter = found.theta, n_iter + found.n_iter
        finder.learn(theta)
    attributes = {**found.attributes, "clip_norm_": scales.clip_norm}
    return Solution(theta, n_iter, attributes=attributes)


def scales_between(records: PrivateRecords, scales: Scales, clip_norm: float, least: float) -> Between:
    """Where the scales of restricted records lie.

    They are at most the scales of whole rows, and at least the scales of rows whose features are all alike,
    because most restricted rows of sparse data may be empty. Of a group's rows only the first gradients are known.
    """
    unit = (least * 2 * clip_norm, 2 * clip_norm)
    of_row = unit
    if records.shape.unit == "group":
        of_row = (least * scales.gradient / SMALLER, scales.gradient)
    return Between((least * scales.row, scales.row), of_row, unit)


def sup_median(task: Task, theta: np.ndarray, between: tuple[float, float]) -> float:
    """Release the median sup norm of the rows' gradients at theta, the intercept's entry apart."""
    records, start = blind(task.records, theta)
    count = partial(records.norm_count, loss=task.loss, theta=start, norm="max")
    return noisy_search(task.budget, count, between=between)


def blind(records: PrivateRecords, theta: np.ndarray) -> tuple[PrivateRecords, np.ndarray]:
    """Records, and theta, with an intercept's feature that no gradient is clipped for."""
    start = theta.copy()
    start[records.n_features :] *= records.shape.intercept_value / NEGLIGIBLE
    return records.with_intercept(NEGLIGIBLE), start


class RoundsChoice:
    """Choose features by Gumbel noise on the gradient's entries, rows clipped in the sup norm.

    Each of the s choices of a fit costs the same. They are divided among the rounds. A choice is wasted if its
    feature was chosen before.
    """

    def __init__(self, task: Task, s: int, rounds: Rounds, largest: float) -> None:
        self._task, self._s, self._rounds, self._largest = task, s, len(rounds), largest
        self._round = 0
        self._cost = task.budget.selection_epsilon(s, rounds.finding)
        self._chosen = np.empty(0, dtype=np.int64)

    def find(self, theta: np.ndarray, clip_norm: float, budget: BudgetSplit) -> np.ndarray:
        """Numbers of all features chosen so far, sorted."""
        task, classifier = self._task, self._task.loss.is_classification
        if self._round and not classifier:
            between = (self._largest / SMALLER, self._largest)
            self._largest = sup_median(replace(task, budget=budget), theta, between)
        before, self._round = self._round, self._round + 1
        wanted = -(-self._s * self._round // self._rounds) + (-self._s * before // self._rounds)
        if wanted:
            records, start = blind(task.records, theta)
            scores = gradient_scores(records, task.loss, start, SUP_CLIP[classifier] * self._largest)
            new = task.session.gumbel_top_k(scores, wanted, self._cost)
            self._chosen = np.union1d(self._chosen, new)
        return self._chosen

    def learn(self, theta: np.ndarray) -> None:
        """Do nothing: a choice releases no numbers."""


class Ranking:
    """Rank features by a weighted mean of ``theta - gradient / curvature`` over the rounds.

    A gradient counts with the inverse of its noise variance. The curvature is the slope of the first gradient
    against the first fit, on the features that it ranked highest.
    """

    def __init__(self, task: Task, s: int) -> None:
        self._task, self._s = task, s
        self._plan = task.budget.plan_gaussian(len(RANKED), RANKED.finding)
        self._first: np.ndarray | None = None
        self._curvature = 0.0
        self._points: Any = 0.0
        self._gradients: Any = 0.0

    def find(self, theta: np.ndarray, clip_norm: float, budget: BudgetSplit) -> np.ndarray:
        """Numbers of the features of largest evidence, sorted."""
        d = self._task.records.n_features
        gradient, noise_std = NoisyGradient(self._task, self._plan, clip_norm)(theta, 0)
        self.add(theta[:d], gradient[:d], noise_std)
        return self.largest(self._s)

    def add(self, theta: np.ndarray, gradient: np.ndarray, noise_std: float) -> None:
        """Add a gradient released at ``theta``."""
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
