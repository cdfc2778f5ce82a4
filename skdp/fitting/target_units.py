"""Regression in units of a released centre and reach of the targets: one part that all regressors share."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from skdp.base.fit import Solution
from skdp.fitting.budget import BudgetSplit
from skdp.fitting.calibration import MOST, calibrate, released_shift
from skdp.fitting.decision import LinearDecision, TargetShares
from skdp.fitting.glm import Problem
from skdp.fitting.quantiles import (
    RANGE_QUESTIONS,
    RANGE_SEARCHES,
    SMALLEST_SHARE,
    TargetRange,
    released_range,
)
from skdp.fitting.scales import grown_share
from skdp.privacy import PrivacySession, PrivateRecords, accounting

__all__ = ["InTargetUnits"]

# Chosen on inner splits of the training parts of the suite and on synthetic tables.
LEAST = 20.0  # units times mu below which no centre is searched for: it would end anywhere
LARGEST_RANGE = 0.3  # largest part of mu^2 for centre and reach, if the units are few
CALIBRATION = 0.1  # least part of mu^2 for the calibration
MEAN, MEAN_MASS, LARGEST_MEAN = 0.05, 70.0, 0.2  # part of mu^2 for the mean residual
# Units times mu below which all coefficients are 0, and more for each root of the number of features. No slope can
# be told from noise there, and even a mean takes most of the budget. The parts of mu^2 are those of the range and
# of the mean. The method runs on the rest, so that what it refuses is refused, and what it reports is there.
HOPELESS, EACH = 45.0, 8.0
CONSTANT_PARTS = (0.6, 0.3)
CALIBRATION_ANSWERS = 60  # `grown_share` of so many questions


def _mass(session: PrivacySession, n_units: int) -> float:
    """Units times mu of the whole session."""
    if session.exact:
        return math.inf
    return n_units * accounting.gaussian_mu(session.epsilon, session.delta)


class InTargetUnits:
    """A mixin before the fit of a private regressor.

    Centre and reach of y are released first. The fit sees centred targets, and its coefficients are calibrated
    (`skdp.fitting.calibration`). The centre is added to the intercept in the end. With
    very few records, a public decision, all coefficients are 0 and most of the budget goes to the mean of y.

    The method gets the rest of the budget, in its decision as in its releases.
    """

    target_center_: float
    target_reach_: float
    fit_intercept: bool
    _largest_factor = MOST  # of the coefficients, by the calibration
    _hopeless = HOPELESS
    _needs_reach = False  # whether the method needs the reach of the targets by itself

    def _searches_targets(self, budget: BudgetSplit, problem: Problem) -> bool:
        """Whether centre and reach of the targets may be released: a public decision."""
        return budget.session.exact or budget.session.delta > 0

    def _given_range(self) -> TargetRange | None:
        """A public range of the targets, which costs nothing."""
        bounds = getattr(self, "y_bounds", "auto")
        if isinstance(bounds, str):
            return None
        target = TargetRange.between(*bounds)
        return target if self.fit_intercept else TargetRange(0.0, max(map(abs, target.bounds)))

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        last = self._last_share(budget, problem)
        shares = self._shares(budget, problem, last)
        if shares is None:
            made: LinearDecision = super()._method(budget, problem)  # type: ignore[misc]
            return replace(made, calibrated=last > 0)
        (rest,) = budget.split(method=shares.rest)
        made = super()._method(rest, problem)  # type: ignore[misc]
        steps = (
            *budget.step("scale", shares.range, RANGE_SEARCHES * RANGE_QUESTIONS),
            *made.steps,
            *budget.step("calibration", shares.calibration, None),
            *budget.step("calibration", shares.mean),
        )
        return replace(made, steps=steps, calibrated=last > 0, targets=shares)

    def _solved(self, budget: BudgetSplit, problem: Problem) -> Solution:
        shares = problem.decision.targets
        if shares is None:
            found: Solution = super()._solved(budget, problem)  # type: ignore[misc]
            return replace(found, attributes={"target_center_": 0.0, **found.attributes})
        records, target = problem.records, shares.given
        (rest,) = budget.split(method=shares.rest)
        if target is None:
            centered = self.fit_intercept and _mass(budget.session, records.n_units) >= LEAST
            target = released_range(budget, records, shares.range, centered=centered)
        moved = records.centered(target.center) if target.center else records
        found = super()._solved(rest, replace(problem, records=moved, target=target))  # type: ignore[misc]
        theta, calibrated = self._calibrated(budget, moved, target, np.array(found.theta), shares)
        theta[records.n_features :] += target.center
        attributes = {"target_center_": target.center, "target_reach_": target.bound, **calibrated}
        return replace(found, theta=theta, attributes={**found.attributes, **attributes})

    def _shares(self, budget: BudgetSplit, problem: Problem, last: float) -> TargetShares | None:
        """Divide mu^2, by public numbers; None where nothing of the targets is released."""
        given = self._given_range()
        needed = bool(last) or self.fit_intercept or self._needs_reach
        if not needed or not self._searches_targets(budget, problem):
            return None
        constant, mean = False, 0.0
        first = 0.0 if given else self._first_share(budget, problem)
        if last and self.fit_intercept:
            hopeless = self._hopeless + EACH * math.sqrt(problem.records.n_features)
            constant = _mass(budget.session, problem.records.n_units) < hopeless
            mean = self._mean_share(budget, problem)
        if constant:
            first, last, mean = 0.0 if given else CONSTANT_PARTS[0], 0.0, CONSTANT_PARTS[1]
        return TargetShares(first, last, mean, constant, given)

    def _calibrated(
        self,
        budget: BudgetSplit,
        records: PrivateRecords,
        target: TargetRange,
        theta: np.ndarray,
        shares: TargetShares,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The coefficients after the last releases, in units of centred targets, and their attributes."""
        found: dict[str, Any] = {}
        if shares.constant:
            theta, found["shrinkage_"] = np.zeros_like(theta), 0.0
        if shares.calibration:
            calibration = calibrate(
                budget,
                records,
                theta,
                target.bound,
                shares.calibration,
                largest=self._largest_factor,
            )
            theta, found["shrinkage_"] = (
                calibration.of(theta, records.n_features),
                calibration.factor,
            )
        if shares.mean:
            shift = released_shift(budget, records, theta, target.bound, shares.mean)
            theta[records.n_features :] += shift / records.intercept_value
        return theta, found

    def _first_share(self, budget: BudgetSplit, problem: Problem) -> float:
        """Share of mu^2 for centre and reach of the targets."""
        return grown_share(
            budget,
            problem.records.n_units,
            RANGE_SEARCHES * RANGE_QUESTIONS,
            SMALLEST_SHARE,
            largest=LARGEST_RANGE,
        )

    def _mean_share(self, budget: BudgetSplit, problem: Problem) -> float:
        """Share of mu^2 for the mean residual."""
        mass = _mass(budget.session, problem.records.n_units)
        return min(LARGEST_MEAN, max(MEAN, (MEAN_MASS / mass) ** 2))

    def _last_share(self, budget: BudgetSplit, problem: Problem) -> float:
        """Share of mu^2 for the calibration; weighted records and the user's own step size have none."""
        literal = getattr(self, "learning_rate", "auto") != "auto"
        if budget.session.exact or literal or getattr(self, "max_weight", None) is not None:
            return 0.0
        return grown_share(budget, problem.records.n_units, CALIBRATION_ANSWERS, CALIBRATION)
