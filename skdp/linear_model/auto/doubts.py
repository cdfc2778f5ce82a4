"""Warnings that a fitted model may be no better than a constant, from released numbers.

The noise of the last releases and the variance that the model explains are known after a fit. The noise alone says
little, because a strong model stands it: the expected loss by noise is compared with a power of the gain. Power,
weights and limits were chosen on inner splits of the training parts of the suite and on generated tables with
tails (`examples/heavy_tails.py`), so that at most one fit in 400 was worse than a constant by more than .02
without a warning.
"""

from skdp.base.plan import Advice
from skdp.exceptions import UtilityWarning
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.privacy import PublicShape

Warnings = tuple[Advice, ...]


def doubt_of_numbers(
    shape: PublicShape, n_seen: int, signal: float, unknown: float, mean: float, left: float
) -> Warnings:
    """The warning of a regression, or none.

    Parameters
    ----------
    n_seen : int
        Columns that were not given up.
    signal, left : float
        Variance of the predictions, and mean square of the residuals.
    unknown, mean : float
        Variance of the predictions, and of their mean, that is noise.
    """
    defaults = DEFAULTS.doubts
    whole = max(signal + left, 1e-300)
    loss = (mean + defaults.numbers_unknown * unknown + defaults.record_loss * left / shape.n_units) / whole
    if loss <= defaults.numbers_limit * (signal / whole) ** defaults.numbers_power:
        return ()
    return _told(shape, n_seen, f"{signal / whole:.0%} of the variance of y")


def doubt_of_classes(shape: PublicShape, n_seen: int, signal: float, unknown: float) -> Warnings:
    """The warning of a classification, or none.

    Parameters
    ----------
    n_seen : int
        Columns that were not given up.
    signal, unknown : float
        Variance of the scores, times the variance of the labels (twice the gain in log loss), and the part of it
        that may be noise.
    """
    defaults = DEFAULTS.doubts
    signal = max(signal, 0.0)
    loss = defaults.classes_unknown * unknown + defaults.record_loss / shape.n_units / (1.0 + signal)
    if loss <= defaults.classes_limit * signal**defaults.classes_power:
        return ()
    return _told(shape, n_seen, f"a gain of {0.5 * signal:.2g} in log loss")


def _told(shape: PublicShape, n_seen: int, learnt: str) -> Warnings:
    return _warning(
        f"the model may be no better than a constant: what it learnt (about {learnt}, by released numbers) can "
        f"hardly be told from noise with {shape.counted()} at this epsilon; {n_seen} of {shape.n_features} "
        f"columns could be seen. What helps is more {shape.unit}s, fewer features, feature_bounds= or a larger "
        "epsilon"
    )


def no_targets(shape: PublicShape) -> Warnings:
    """The warning where nothing of the targets was found."""
    return _warning(
        f"the size of y cannot be told from noise with {shape.counted()}, so the model predicts 0 for every row: "
        f"give y_bounds=(low, high) as public numbers, more {shape.unit}s or a larger epsilon"
    )


def _warning(text: str) -> Warnings:
    return (Advice(text, UtilityWarning),)
