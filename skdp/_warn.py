"""Warnings that point at the user's own line."""

import sys
import warnings

__all__ = ["warn_user"]

# A fit may be called through these: a Pipeline, a search, a worker's loop. Their lines help nobody.
_PASSED_OVER = ("skdp", "sklearn", "joblib", "imblearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line outside of skdp, scikit-learn and joblib that led here.

    The place is found by walking the stack, so that it does not depend on how many classes and functions lie
    between the user's call and the cause. Tests are users: modules of ``tests`` are not passed over.

    Parameters
    ----------
    message : str
    category : type of Warning
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _passed_over(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    # `warnings.warn` counts itself as 0 and this function as 1.
    warnings.warn(message, category, stacklevel=level)


def _passed_over(module: str) -> bool:
    return module.partition(".")[0] in _PASSED_OVER
