"""The decision of a linear model, and the closing steps around its method, which take a part of the budget.

A fit runs the list of its closing steps around its method, the first outermost. Each step plans its part and
leaves the rest to the enclosed steps, in the decision as in the releases. Most regressions use `TargetUnits`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from skdp.base.plan import BudgetSplit, Decision, Step
from skdp.base.problem import Solution
from skdp.fitting.calibration import calibrate, released_shift
from skdp.fitting.quantiles import RANGE_QUESTIONS, RANGE_SEARCHES, SMALLEST_SHARE, TargetRange, released_range
from skdp.fitting.recalibrate import Recalibration, plan_recalibration
from skdp.fitting.scales import grown_share
from skdp.fitting.targets import Problem, expected_weight
from skdp.fitting.utility import Release
from skdp.privacy import PrivacySession, PrivateRecords, accounting

RELEASED = "released"  # stands for a number that follows from releases


@dataclass(frozen=True)
class TargetShares:
    """Shares of mu^2 for the range of the targets, the calibration and the mean residual; see `TargetUnits`.

    Attributes
    ----------
    given : TargetRange or None
        The public range of the targets, which takes no share.
    constant : bool
        Whether all coefficients become 0.
    """

    range: float
    calibration: float
    mean: float
    constant: bool = False
    given: TargetRange | None = None

    @property
    def rest(self) -> float:
        """The method's own share."""
        return 1.0 - self.range - self.calibration - self.mean


@dataclass(frozen=True)
class LinearDecision(Decision):
    """The decision of a linear model.

    Attributes
    ----------
    release : {"gradient", "second moments", ""}
        What holds all coefficients in one release, for the warnings.
    thresholds : str
        Row of the table of thresholds.
    constant : bool
        Whether only a constant is released, because the units are few.
    calibrated : bool
        Whether the coefficients of a regression are calibrated, where there are more units than for a constant.
    recalibration : Recalibration or None
        Of a classifier's scores, with a part of the budget.
    targets : TargetShares or None
        Of a regression in units of its targets.
    """

    release: Release = ""
    thresholds: str = ""
    constant: bool = False
    calibrated: bool = False
    recalibration: Recalibration | None = None
    targets: TargetShares | None = None


Method = Callable[[BudgetSplit, Problem], LinearDecision]


def sizes_of(**numbers: object) -> dict[str, object]:
    """Sizes of a decision; None stands for a number that the fit releases on the way."""
    return {name: RELEASED if value is None else value for name, value in numbers.items()}


class Closing(Protocol):
    """A closing step."""

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        """The decision of a method that leaves a part of the budget to this step; nothing is released."""

    def opened(self, budget: BudgetSplit, problem: Problem) -> tuple[BudgetSplit, Problem]:
        """Release what comes before the method; the rest of the budget, and the problem as the method sees it."""

    def closed(self, budget: BudgetSplit, problem: Problem, found: Solution) -> Solution:
        """Release what comes after the method, by this step's budget and the problem that `opened` gave."""


Opened = tuple[Closing, BudgetSplit, Problem]


@dataclass(frozen=True)
class Recalibrated:
    """The scores of a classifier are recalibrated after the method (`skdp.fitting.recalibrate`).

    Attributes
    ----------
    weights : tuple of float
        What rows are expected to weigh, and the most that one may weigh; public.
    steepest : float
        Largest slope; public.
    """

    weights: tuple[float, float] = (1.0, 1.0)
    steepest: float | None = None

    @classmethod
    def of(cls, model: BaseEstimator, problem: Problem) -> "Recalibrated":
        """The step of an estimator, by its parameters."""
        given, alpha = getattr(model, "max_weight", None), getattr(model, "alpha", None)
        # A penalty that the user asked for makes coefficients small on purpose.
        shrinks = isinstance(alpha, (int, float)) and alpha > 0 and getattr(model, "penalty", "l2") == "l2"
        largest = 1.0 if given is None else float(given)
        return cls((expected_weight(model, problem), largest), 1.0 if shrinks else None)

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        plan = plan_recalibration(budget.session, problem.records, problem.loss, self.weights, self.steepest)
        if plan is None:
            return method(budget, problem)
        made = method(budget.method(1.0 - plan.share), problem)
        counts = sum(each.releases for each in plan.plans)
        closing = Step("recalibration", budget.of_session(plan.share), counts)
        return replace(made, steps=(*made.steps, closing), recalibration=plan)

    def opened(self, budget: BudgetSplit, problem: Problem) -> tuple[BudgetSplit, Problem]:
        plan = problem.decision.recalibration
        return (budget if plan is None else budget.method(1.0 - plan.share)), problem

    def closed(self, budget: BudgetSplit, problem: Problem, found: Solution) -> Solution:
        plan = problem.decision.recalibration
        if plan is None:
            return found
        theta, noise = plan.with_noise(budget.session, problem.records, found.theta)
        return replace(found, theta=theta, slope_noise=noise)


def decide(closing: Sequence[Closing], method: Method, budget: BudgetSplit, problem: Problem) -> LinearDecision:
    """The decision of a method with its closing steps."""
    for step in reversed(closing):
        method = partial(step.decided, method=method)
    return method(budget, problem)


def opened(closing: Sequence[Closing], budget: BudgetSplit, problem: Problem) -> tuple[Problem, list[Opened]]:
    """The problem as a method sees it, with its part of the budget, and the steps that `closed` needs then."""
    steps: list[Opened] = []
    for step in closing:
        rest, problem = step.opened(budget, problem)
        steps.append((step, budget, problem))
        budget = rest
    return replace(problem, budget=budget), steps


def closed(steps: Sequence[Opened], found: Solution) -> Solution:
    """The solution of a method after its closing steps, the innermost first."""
    for step, budget, problem in reversed(steps):
        found = step.closed(budget, problem, found)
    return found


# Chosen on inner splits of the training parts of the suite and on synthetic tables.
MIN_CENTRE_N = 20.0  # units times mu below which no centre is searched for: it would end anywhere
LARGEST_RANGE = 0.3  # largest part of mu^2 for centre and half-width, if the units are few
CALIBRATION = 0.1  # least part of mu^2 for the calibration
MEAN, MEAN_EFFECTIVE_N, LARGEST_MEAN = 0.05, 70.0, 0.2  # part of mu^2 for the mean residual
# Units times mu below which all coefficients are 0, and more for each root of the number of features. No slope can
# be told from noise there, and even a mean takes most of the budget. The parts of mu^2 pay for the range and for
# the mean. The method runs on the rest, so that its refusals and its report are there.
MIN_EFFECTIVE_N, EACH = 45.0, 8.0
CONSTANT_PARTS = (0.6, 0.3)
CALIBRATION_ANSWERS = 60  # `grown_share` of so many questions


def _effective_n(session: PrivacySession, n_units: int) -> float:
    """Units times mu of the whole session."""
    if session.exact:
        return math.inf
    return n_units * accounting.gaussian_mu(session.epsilon, session.delta)


@dataclass(frozen=True)
class TargetUnits:
    """The first and the last releases of a private regression, in public numbers.

    Centre and half-width of y are released first. The fit sees centred targets, and its coefficients are
    calibrated (`skdp.fitting.calibration`). The centre is added to the intercept in the end. With very few
    records, a public decision, all coefficients are 0 and most of the budget goes to the mean of y.

    The method gets the rest of the budget, in its decision as in its releases.

    Attributes
    ----------
    fit_intercept : bool
    given : TargetRange or None
        A public range of the targets, which costs nothing.
    searched : bool or None
        Whether centre and half-width of the targets may be released; None where delta > 0 allows Gaussian noise.
    calibrates : bool
        Whether the coefficients are calibrated; fits of weighted records and with the user's own steps are not.
    needs_reach : bool
        Whether the method needs the half-width of the targets by itself.
    largest_factor : float
        Of the coefficients, by the calibration.
    min_effective_n : float or None
        Units times mu below which all coefficients are 0; None is `MIN_EFFECTIVE_N`.
    shares : tuple of float or None
        Shares of mu^2 for the range, the calibration and the mean residual; None makes them of the shape.
    """

    fit_intercept: bool
    given: TargetRange | None = None
    searched: bool | None = None
    calibrates: bool = True
    needs_half_width: bool = False
    largest_factor: float | None = None
    min_effective_n: float | None = None
    shares: tuple[float, float, float] | None = None

    @classmethod
    def of(cls, model: BaseEstimator, **options: Any) -> "TargetUnits":
        """Those of an estimator by its parameters."""
        bounds, target = getattr(model, "y_bounds", "auto"), None
        if not isinstance(bounds, str):
            target = TargetRange.between(*bounds)
            if not model.fit_intercept:
                target = TargetRange(0.0, max(map(abs, target.bounds)))
        own_steps = getattr(model, "learning_rate", "auto") != "auto"
        calibrates = not own_steps and getattr(model, "max_weight", None) is None
        return cls(model.fit_intercept, target, **{"calibrates": calibrates, **options})

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        """The decision of a method that leaves a part of the budget to the start and the close."""
        last = self.calibration_share(budget, problem)
        shares = self.divided(budget, problem, last)
        if shares is None:
            return replace(method(budget, problem), calibrated=last > 0)
        made = method(budget.method(shares.rest), problem)
        steps = (
            *budget.step("scale", RANGE_SEARCHES * RANGE_QUESTIONS, shares.range),
            *made.steps,
            *budget.step("calibration", None, shares.calibration),
            *budget.step("calibration", 1, shares.mean),
        )
        return replace(made, steps=steps, calibrated=last > 0, targets=shares)

    def opened(self, budget: BudgetSplit, problem: Problem) -> tuple[BudgetSplit, Problem]:
        """Release the range of the targets; the method sees centred ones."""
        shares = problem.decision.targets
        if shares is None:
            return budget, problem
        records, target = problem.records, shares.given
        if target is None:
            centered = self.fit_intercept and _effective_n(budget.session, records.n_units) >= MIN_CENTRE_N
            target = released_range(budget.part(shares.range), records, centered=centered)
        moved = records.centered(target.center) if target.center else records
        return budget.method(shares.rest), replace(problem, records=moved, target=target)

    def closed(self, budget: BudgetSplit, problem: Problem, found: Solution) -> Solution:
        """Calibrate, and move the intercept back."""
        shares, target = problem.decision.targets, problem.target
        if shares is None or target is None:
            return replace(found, attributes={"target_center_": 0.0, **found.attributes})
        records, theta = problem.records, np.array(found.theta)
        theta, calibrated = self._calibrated(budget, records, target, theta, shares)
        theta[records.n_features :] += target.center
        attributes = {"target_center_": target.center, "target_scale_": target.bound, **calibrated}
        return replace(found, theta=theta, attributes={**found.attributes, **attributes})

    def divided(self, budget: BudgetSplit, problem: Problem, last: float) -> TargetShares | None:
        """Divide mu^2, by public numbers; None where nothing of the targets is released."""
        given, n_units = self.given, problem.records.n_units
        needed = bool(last) or self.fit_intercept or self.needs_half_width
        session, searched = budget.session, self.searched
        searched = session.exact or session.delta > 0 if searched is None else searched
        if not needed or not searched:
            return None
        constant, mean = False, 0.0
        first = 0.0 if given else self._range_share(budget, n_units)
        if last and self.fit_intercept:
            min_effective_n = MIN_EFFECTIVE_N if self.min_effective_n is None else self.min_effective_n
            min_effective_n += EACH * math.sqrt(problem.records.n_features)
            constant = _effective_n(budget.session, n_units) < min_effective_n
            mean = self._mean_share(budget, n_units)
        if constant:
            first, last, mean = 0.0 if given else CONSTANT_PARTS[0], 0.0, CONSTANT_PARTS[1]
        return TargetShares(first, last, mean, constant, given)

    def calibration_share(self, budget: BudgetSplit, problem: Problem) -> float:
        """Share of mu^2 for the calibration."""
        if budget.session.exact or not self.calibrates:
            return 0.0
        if self.shares is not None:
            return self.shares[1]
        return grown_share(budget, problem.records.n_units, CALIBRATION_ANSWERS, CALIBRATION)

    def _range_share(self, budget: BudgetSplit, n_units: int) -> float:
        """Share of mu^2 for centre and half-width of the targets."""
        if self.shares is not None:
            return self.shares[0]
        questions = RANGE_SEARCHES * RANGE_QUESTIONS
        return grown_share(budget, n_units, questions, SMALLEST_SHARE, largest=LARGEST_RANGE)

    def _mean_share(self, budget: BudgetSplit, n_units: int) -> float:
        """Share of mu^2 for the mean residual."""
        if self.shares is not None:
            return self.shares[2]
        effective_n = _effective_n(budget.session, n_units)
        return min(LARGEST_MEAN, max(MEAN, (MEAN_EFFECTIVE_N / effective_n) ** 2))

    def _calibrated(
        self,
        budget: BudgetSplit,
        records: PrivateRecords,
        target: TargetRange,
        theta: np.ndarray,
        shares: TargetShares,
    ) -> tuple[np.ndarray, dict[str, object]]:
        """The coefficients after the last releases, in units of centred targets, and their attributes."""
        found: dict[str, object] = {}
        if shares.constant:
            theta, found["shrinkage_"] = np.zeros_like(theta), 0.0
        if shares.calibration:
            last = budget.part(shares.calibration)
            calibration = calibrate(last, records, theta, target.bound, largest=self.largest_factor)
            theta, found["shrinkage_"] = (calibration.of(theta, records.n_features), calibration.factor)
        if shares.mean:
            shift = released_shift(budget.part(shares.mean), records, theta, target.bound)
            theta[records.n_features :] += shift / records.shape.intercept_value
        return theta, found
