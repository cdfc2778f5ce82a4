"""Regression in units of a released centre and reach of the targets: one part that all regressors share."""

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from skdp._compat import warn_user
from skdp.base.fit import Solution
from skdp.exceptions import UtilityWarning
from skdp.linear_model.glm import Problem
from skdp.linear_model.parts.calibration import MOST, calibrate
from skdp.linear_model.parts.portion import Portion
from skdp.linear_model.parts.quantiles import (
    RANGE_QUESTIONS,
    RANGE_SEARCHES,
    SMALLEST_SHARE,
    TargetRange,
    released_range,
)
from skdp.linear_model.parts.scales import grown_share
from skdp.privacy import PrivacySession, accounting

__all__ = ["InTargetUnits"]

# Chosen on inner splits of the training parts of the suite and on synthetic tables.
LEAST = 20.0  # units times mu below which no centre is searched for: it would end anywhere
LEAST_FACTOR = 0.5  # factor below which the fit warns
LARGEST_RANGE = 0.45  # largest part of mu^2 for centre and reach, if the units are few
CALIBRATION = 0.1  # least part of mu^2 for the calibration
CALIBRATION_ANSWERS = 60  # `grown_share` of so many questions


class InTargetUnits:
    """A mixin before the fit of a private regressor.

    Centre and reach of y are released first. The fit sees centred targets, and its coefficients are calibrated
    (`skdp.linear_model.parts.calibration`). The centre is added to the intercept in the end.

    The fit has a method ``_plan_first(session, problem)``. Before the first release it refuses what cannot be
    solved, and plans what must be planned. What it returns is ``problem.planned``.
    """

    fit_intercept: bool
    _largest_factor = MOST  # of the coefficients, by the calibration
    _needs_reach = False  # whether the method needs the reach of the targets by itself

    def _searches_targets(self, session: PrivacySession, problem: Problem) -> bool:
        """Whether centre and reach of the targets may be released: a public decision."""
        return session.exact or session.delta > 0

    def _given_range(self) -> TargetRange | None:
        """A public range of the targets, which costs nothing."""
        bounds = getattr(self, "y_bounds", "adaptive")
        return None if isinstance(bounds, str) else TargetRange.between(*bounds)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        last = self._last_share(session, problem)
        needed = bool(last) or self.fit_intercept or self._needs_reach
        if not needed or not self._searches_targets(session, problem):
            found: Solution = super().solve(session, problem)  # type: ignore[misc]
            return replace(found, attributes={"target_center_": 0.0, **found.attributes})
        records, target = problem.records, self._given_range()
        known = target is not None
        first = 0.0 if known else self._first_share(session, problem)
        rest = Portion.of(session, 1.0 - first - last)
        planned = self._plan_first(rest, problem)  # type: ignore[attr-defined]
        if target is None:
            mu = (
                math.inf
                if session.exact
                else accounting.gaussian_mu(session.epsilon, session.delta)
            )
            centered = self.fit_intercept and records.n_units * mu >= LEAST
            target = released_range(session, records, first, centered=centered)
        elif not self.fit_intercept:
            target = TargetRange(0.0, max(map(abs, target.bounds)))
        moved = records.centered(target.center) if target.center else records
        inner = replace(problem, records=moved, target=target, planned=planned)
        found = super().solve(rest, inner)  # type: ignore[misc]
        attributes: dict[str, Any] = {
            "target_center_": target.center,
            "target_reach_": target.bound,
        }
        theta = np.array(found.theta)
        if last:
            calibration = calibrate(
                session, moved, theta, target.bound, last, largest=self._largest_factor
            )
            theta = calibration.of(theta, records.n_features)
            attributes["shrinkage_"] = calibration.factor
        theta[records.n_features :] += target.center
        return replace(found, theta=theta, attributes={**found.attributes, **attributes})

    def _warn_after(self, solution: Solution) -> None:
        super()._warn_after(solution)  # type: ignore[misc]
        if cast("float", solution.attributes.get("shrinkage_", 1.0)) < LEAST_FACTOR:
            warn_user(
                "the predictions can hardly be told from noise, so the coefficients were shrunk to "
                f"{solution.attributes['shrinkage_']:.0%} of what they were, and the model predicts about the "
                "released centre of y; use fewer features, more records or a larger epsilon",
                UtilityWarning,
            )

    def _first_share(self, session: PrivacySession, problem: Problem) -> float:
        """Share of mu^2 for centre and reach of the targets."""
        return grown_share(
            session,
            problem.records.n_units,
            RANGE_SEARCHES * RANGE_QUESTIONS,
            SMALLEST_SHARE,
            largest=LARGEST_RANGE,
        )

    def _last_share(self, session: PrivacySession, problem: Problem) -> float:
        """Share of mu^2 for the calibration; weighted records and the user's own step size have none."""
        literal = getattr(self, "learning_rate", "auto") != "auto"
        if session.exact or literal or getattr(self, "max_weight", None) is not None:
            return 0.0
        return grown_share(session, problem.records.n_units, CALIBRATION_ANSWERS, CALIBRATION)
