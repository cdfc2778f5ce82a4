"""Warnings at the user's line, however many classes and functions lie between it and the cause."""

import sys
import warnings

__all__ = ["warn_user"]

# Packages through which a fit may be called, by a Pipeline or a search. A warning at their lines is of no use.
_PASSED_OVER = frozenset(
    (
        *("skdp", "sklearn", "joblib", "multiprocessing", "concurrent", "threading", "distributed"),
        *("imblearn", "optuna", "optuna_integration", "skrub", "fairlearn", "cleanlab", "mlxtend"),
        *("mapie", "doubleml", "feature_engine", "dask_ml", "category_encoders"),
    )
)


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
