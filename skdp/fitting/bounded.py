"""Predictions of a regression that stay within bounds: given numbers, or a margin about a released range.

All bounds are released or public numbers, so a cut is post-processing and costs nothing. The parameter ``bounded``
of `NumberModel` changes no release, and the noise of a seeded fit does not depend on it.
"""

import math
from collections.abc import Mapping
from typing import Any

from skdp._export import clipped_regressor

__all__ = ["NOWHERE", "cut", "cut_export", "cut_lines", "cut_text", "prediction_bounds"]

# Reaches that a prediction may lie from the centre where the range of the targets was released. The reach leaves
# out 2 % of the targets, or more of skewed ones where noise hides the tail: a cut there costs accuracy. Of 1, 1.5,
# 2, 3 and 5 this is the smallest that took less than .002 of R^2 on every table of inner splits of the training
# parts of the suite, and from all but one in a thousand fits to the usual tables of
# `examples/prediction_bounds.py`, where 1.5 took up to .08 from skewed targets.
MARGIN = 2.0
NOWHERE = (-math.inf, math.inf)


def prediction_bounds(model: Any, found: Mapping[str, Any]) -> tuple[float, float]:
    """The bounds that follow from the attributes of a solution.

    They are, in this order: those among the attributes; the public range of the targets that the user gave;
    `MARGIN` released reaches about the released centre. They are infinite where nothing of the targets is given or
    released, and with ``bounded=False``.
    """
    if not model.bounded:
        return NOWHERE
    if "prediction_bounds_" in found:
        low, high = map(float, found["prediction_bounds_"])
        return low, high
    given: tuple[float, float] | None = model._given_bounds()
    if given is not None:
        return given
    center, reach = (float(found.get("target_center_", 0.0)), float(found.get("target_reach_", 0.0)))
    if not reach:  # none was released
        return NOWHERE
    return center - MARGIN * reach, center + MARGIN * reach


def cut(model: Any, found: Any) -> Any:
    """Predictions of a fitted model, cut in place; also those of an array on a device."""
    bounds = vars(model).get("prediction_bounds_", NOWHERE)
    return found if bounds == NOWHERE else found.clip(*bounds, out=found)


def cut_export(model: Any, made: Any) -> Any:
    """The exported model, in a ``TransformedTargetRegressor`` that cuts its predictions alike."""
    bounds = vars(model).get("prediction_bounds_", NOWHERE)
    return made if bounds == NOWHERE else clipped_regressor(made, *bounds)


def cut_lines(model: Any, found: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines of a report on a cut."""
    bounds = prediction_bounds(model, found)
    return () if bounds == NOWHERE else (cut_text(bounds),)


def cut_text(bounds: tuple[float, float]) -> str:
    """The line of a report."""
    return "predictions are cut to [{:.6g}, {:.6g}]".format(*bounds)
