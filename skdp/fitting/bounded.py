"""Predictions of a regression that stay within bounds: given numbers, or a margin about a released range."""

import math
from collections.abc import Mapping
from typing import Any

from skdp._export import clipped_regressor
from skdp.base.declare import Declared, fitted, parameter
from skdp.base.fit import Solution
from skdp.base.kinds import flag
from skdp.fitting.glm import Problem

__all__ = ["BoundedPredictions", "cut_text"]

# Reaches that a prediction may lie from the centre where the range of the targets was released. The reach leaves
# out 2 % of the targets, or more of skewed ones where noise hides the tail: a cut there costs accuracy. Of 1, 1.5,
# 2, 3 and 5 this is the smallest that took less than .002 of R^2 on every table of inner splits of the training
# parts of the suite, and from all but one in a thousand fits to the usual tables of
# `examples/prediction_bounds.py`, where 1.5 took up to .08 from skewed targets.
MARGIN = 2.0
NOWHERE = (-math.inf, math.inf)


class BoundedPredictions(Declared):
    """A mixin before a private regressor: `predict` is cut to ``prediction_bounds_``.

    The bounds are, in this order: those among the attributes of the solution; the public range of the targets
    that the user gave; `MARGIN` released reaches about the released centre. They are infinite where nothing of the
    targets is given or released, and with ``bounded=False``.

    All of these are released or public numbers, so a cut is post-processing and costs nothing. The parameter
    changes no release, and the noise of a seeded fit does not depend on it.
    """

    bounded: bool = parameter(
        flag(),
        """Whether `predict` is cut to ``prediction_bounds_``. These are released or public numbers, so a cut
        costs nothing and changes no coefficient. False leaves ``X @ coef_ + intercept_``. Like every parameter it
        acts in `fit`: set after a fit, it changes the next one.""",
        default=True,
        releases=False,
        place="last",
    )
    prediction_bounds_: tuple[float, float] = fitted()

    def _given_bounds(self) -> tuple[float, float] | None:
        """The public range of the targets, if the user gave one."""
        bounds = getattr(self, "y_bounds", None)
        if bounds is None or isinstance(bounds, str):
            return None
        low, high = map(float, bounds)
        return low, high

    def _bounds_of(self, found: Mapping[str, Any]) -> tuple[float, float]:
        """The bounds that follow from the attributes of a solution."""
        if not self.bounded:
            return NOWHERE
        if "prediction_bounds_" in found:
            low, high = map(float, found["prediction_bounds_"])
            return low, high
        given = self._given_bounds()
        if given is not None:
            return given
        center, reach = (float(found.get("target_center_", 0.0)), float(found.get("target_reach_", 0.0)))
        if not reach:  # none was released
            return NOWHERE
        return center - MARGIN * reach, center + MARGIN * reach

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, Any]:
        fitted: dict[str, Any] = super()._fitted(problem, solution)  # type: ignore[misc]
        return {**fitted, "prediction_bounds_": self._bounds_of(solution.attributes)}

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        lines: tuple[str, ...] = super()._post_processing(solution)  # type: ignore[misc]
        bounds = self._bounds_of(solution.attributes)
        return lines if bounds == NOWHERE else (*lines, cut_text(bounds))

    def predict(self, X: Any) -> Any:
        """Predicted targets, cut to ``prediction_bounds_``.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        found = super().predict(X)  # type: ignore[misc]
        bounds = self.prediction_bounds_
        if bounds == NOWHERE:
            return found
        return found.clip(*bounds, out=found)  # in place, and also of an array on a device

    def _finished(self, made: Any) -> Any:
        """The exported model, in a ``TransformedTargetRegressor`` that cuts its predictions alike."""
        made = super()._finished(made)  # type: ignore[misc]
        bounds = self.prediction_bounds_
        return made if bounds == NOWHERE else clipped_regressor(made, *bounds)


def cut_text(bounds: tuple[float, float]) -> str:
    """The line of a report."""
    return "predictions are cut to [{:.6g}, {:.6g}]".format(*bounds)
