"""The callers of a fit: the user's line, for warnings, and the parts of scikit-learn around the fit.

Callers pass nothing about themselves to `fit`, so their frames on the call stack are read: classes and parameters,
never data. A fit in a worker process or another thread has no such frames, and is not warned.
"""

import inspect
import sys
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["around_this_fit", "paid_before_this_fit", "warn_user"]

# Packages through which a fit may be called, by a Pipeline or a search. A warning at their lines is of no use.
_PASSED_OVER = ("skdp", "sklearn", "joblib", "imblearn")

_ENSEMBLE = "sklearn.ensemble"

# (module, classes, what they do to the claim of a fit inside)
_META: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        _ENSEMBLE,
        ("BaggingClassifier", "BaggingRegressor"),
        "repeats records (bootstrap), so one record counts several times in a fit, and makes many fits",
    ),
    (
        _ENSEMBLE,
        ("AdaBoostClassifier", "AdaBoostRegressor"),
        "repeats or weights records by the errors of earlier fits, so one record counts several times",
    ),
    (
        _ENSEMBLE,
        ("StackingClassifier", "StackingRegressor"),
        "fits its last estimator on scores of these records, and makes many fits",
    ),
    (
        "sklearn.model_selection",
        ("TunedThresholdClassifierCV",),
        "chooses its threshold by non-private scores of these records",
    ),
    (
        "sklearn.calibration",
        ("CalibratedClassifierCV",),
        "fits its calibrator without noise to scores and labels of these records",
    ),
    (
        "sklearn.semi_supervised",
        ("SelfTrainingClassifier",),
        "chooses and labels records by non-private scores of them, and makes many fits",
    ),
)

# Their `fit` reads the shape or nothing, although scikit-learn's tag `requires_fit` is True.
_SHAPE_ONLY = {
    "sklearn.preprocessing": ("PolynomialFeatures",),
    "sklearn.random_projection": ("GaussianRandomProjection", "SparseRandomProjection"),
    "sklearn.kernel_approximation": ("PolynomialCountSketch", "RBFSampler", "SkewedChi2Sampler"),
    "sklearn.frozen": ("FrozenEstimator",),
}


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


def around_this_fit() -> list[tuple[str, str]]:
    """Find the parts of scikit-learn around this fit that no epsilon covers.

    Returns
    -------
    list of (str, str)
        A warning and the line for the report, once for each kind.
    """
    found: dict[str, str] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "fit" and "self" in frame.f_code.co_varnames:
            found.update(_about(frame.f_locals.get("self")))
        frame = frame.f_back
    return list(found.items())


def _about(caller: Any) -> Iterator[tuple[str, str]]:
    # A search sets `best_params_` before it refits, and always refits in the caller's process.
    if "best_params_" in getattr(caller, "__dict__", {}):
        yield (
            "a scikit-learn search chose hyper-parameters by scores on these records, which no "
            "epsilon covers; the report says so",
            "hyper-parameters chosen by non-private scores on the same data: "
            "no epsilon covers the choice",
        )
    for module, names, what in _META:
        if not _is_a(caller, module, names):
            continue
        if names[0] != "BaggingClassifier" or caller.bootstrap:
            line = f"{type(caller).__name__} around this fit {what}: no epsilon covers that"
            yield f"{line}; the report says so", line
    before: list[Any] = []
    if _is_a(caller, "sklearn.pipeline", ("Pipeline",)):
        before = [step for _, step in caller.steps[:-1]]
    elif _is_a(caller, "sklearn.compose", ("TransformedTargetRegressor",)):
        before = [getattr(caller, "transformer_", None)]
    learnt = list(dict.fromkeys(name for step in before for name in _learnt(step)))
    if learnt:
        line = (
            f"{', '.join(learnt)} learnt from these records before this fit: no epsilon covers that"
        )
        yield f"{line}; the report says so", line


def _is_a(thing: Any, module: str, names: tuple[str, ...]) -> bool:
    """Whether a thing is of one of these classes. Nothing is imported: an object's module is there already."""
    home = sys.modules.get(module)
    kinds = (getattr(home, name, None) for name in names)
    return any(isinstance(thing, kind) for kind in kinds if isinstance(kind, type))


def paid_before_this_fit() -> list[str]:
    """Names of the private transformers that pipelines around this fit fitted before it.

    They learnt from the records, and their own reports say what that cost.
    """
    found: dict[str, None] = {}
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "fit" and "self" in frame.f_code.co_varnames:
            caller: Any = frame.f_locals.get("self")
            if _is_a(caller, "sklearn.pipeline", ("Pipeline",)):
                for _, step in caller.steps[:-1]:
                    found.update(dict.fromkeys(_paid(step)))
        frame = frame.f_back
    return list(found)


def _paid(step: Any) -> Iterator[str]:
    """Names of the transformers in a step that hold the report of a private fit."""
    for part in _inside(step) or ():
        yield from _paid(part)
    if getattr(getattr(step, "privacy_", None), "guarantee", None) == "proven":
        yield type(step).__name__


def _inside(step: Any) -> list[Any] | None:
    """The parts of a step that is made of others; None for any other step."""
    if _is_a(step, "sklearn.compose", ("ColumnTransformer",)):
        return [part[1] for part in getattr(step, "transformers_", ())]
    if _is_a(step, "sklearn.pipeline", ("FeatureUnion",)):
        return [part[1] for part in step.transformer_list]
    if _is_a(step, "sklearn.pipeline", ("Pipeline",)):
        return [part[1] for part in step.steps]
    return None


def _learnt(step: Any) -> Iterator[str]:
    """Names of the transformers in a step that were fitted and may have learnt from records.

    A class says by an attribute ``learns_from_data = False`` that its ``fit`` takes nothing from records, or
    nothing that its own report does not cover.
    """
    if step is None or isinstance(step, str) or not getattr(step, "learns_from_data", True):
        return
    inside = _inside(step)
    if inside is not None:
        for part in inside:
            yield from _learnt(part)
    elif _is_fitted(step) and not _public(step):
        yield type(step).__name__


def _is_fitted(step: Any) -> bool:
    """Whether a step needs a fit and had one: whether it holds more than its parameters.

    The attribute need not end in an underscore: a class may keep what it learnt under any name.
    """
    from sklearn.utils import get_tags

    try:
        if not get_tags(step).requires_fit:
            return False
        return not set(vars(step)) <= set(step.get_params(deep=False))
    except Exception:  # not a class of scikit-learn's kind: assume that it learnt something
        return True


def _public(step: Any) -> bool:
    """Whether the parameters of scikit-learn's class leave nothing to learn but the shape."""
    if any(_is_a(step, module, names) for module, names in _SHAPE_ONLY.items()):
        return True
    if _is_a(step, "sklearn.preprocessing", ("OneHotEncoder", "OrdinalEncoder")):
        counted = (getattr(step, name, None) for name in ("min_frequency", "max_categories"))
        return not isinstance(step.categories, str) and all(limit is None for limit in counted)
    if _is_a(step, "sklearn.preprocessing", ("StandardScaler",)):
        return not (step.with_mean or step.with_std)
    if _is_a(step, "sklearn.impute", ("SimpleImputer",)):
        return bool(step.strategy == "constant" and not step.add_indicator)
    if _is_a(step, "sklearn.feature_extraction.text", ("CountVectorizer",)):
        return step.vocabulary is not None and not getattr(step, "use_idf", False)
    if _is_a(step, "sklearn.feature_extraction.text", ("TfidfTransformer",)):
        return not step.use_idf
    return False
